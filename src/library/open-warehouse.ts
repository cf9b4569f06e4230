import { Failure } from "../model/failure.ts";
import type { GapRow } from "../model/status/gap-state.ts";
import type { Micros } from "../model/time.ts";
import { nextTurn } from "../runtime/clock.ts";
import { readPresentTs } from "../warehouse/coverage/targets.ts";
import { runReadQuery } from "../warehouse/query/query.ts";
import { openReader, toReaderFailure } from "../warehouse/reader.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { citeState, findRelationsOfNow, showKnownAt } from "../warehouse/tables/known-at.ts";
import type {
  AsOfJoinOptions,
  AsOfOptions,
  BarArrayOptions,
  BarOptions,
  KnownAtOptions,
  LedgerOptions,
  QueryRow,
  QueryValues,
  Schedule,
  SeriesSelection,
  TickArrayOptions,
  TickOptions,
  TimeInput,
  WholeOptions,
} from "./read-options.ts";
import { joinAsOf, readAsOf } from "./reading/as-of-reader.ts";
import { readBars } from "./reading/bar-reader.ts";
import { checkFile } from "./reading/check-citation.ts";
import { cite, toQuestion } from "./reading/citation.ts";
import { findMissing } from "./reading/completeness.ts";
import { readCoverage, readLedgerGaps } from "./reading/ledger-reader.ts";
import {
  describeMissingRows,
  planMoments,
  planReads,
  readQueryValues,
  readTime,
  resolveKnownAt,
} from "./reading/read-plan.ts";
import {
  type BarPlan,
  readSeries,
  resolveSeries,
  type SourcedSeries,
  type TickPlan,
} from "./reading/series-names.ts";
import { readTickArrays, readTickRows, toNumbers, toTimestamps } from "./reading/tick-reader.ts";
import { findTimeZone } from "./reading/time-zone.ts";
import type {
  AsOfRow,
  AsOfValue,
  BarArrays,
  BarRow,
  CheckResult,
  CoverageRow,
  ListedSeries,
  SeriesInfo,
  TickArrays,
  TickRow,
} from "./rows.ts";

/* The library of the package: `import { openWarehouse } from "mds-sync"`. Everything that a user needs is exported here. */
export { toArrow } from "./arrow.ts";
export { IncompleteFailure } from "./incomplete-failure.ts";
export type * from "./read-options.ts";
export type * from "./rows.ts";
export type { GapRow };
export { Failure };

/**
 * Opens a warehouse for reading, also while a daemon writes it.
 */
export function openWarehouse(path: string): Warehouse {
  const { node } = process.versions;
  const [major = 0, minor = 0] = node.split(".").map(Number);
  // The native module of SQLite crashes an older Node without a word.
  if (major < 22 || (major === 22 && minor < 12))
    throw new Failure(`Node ${node} is too old`, { code: "old_node", remedy: "use Node 22.12 or newer" });
  return Warehouse.open(path);
}

/** A warehouse that is open for reading. */
export class Warehouse implements Disposable {
  readonly path: string;
  readonly #connection: Connection;
  /** Shows an earlier state. */
  #past: Connection | undefined;
  #shownToken: string | undefined;
  readonly #warnings = new Set<string>();

  private constructor(connection: Connection) {
    this.path = connection.path;
    this.#connection = connection;
  }

  static open(path: string): Warehouse {
    return new Warehouse(openReader(path));
  }

  /** Every series of which the warehouse has ticks or daily bars: indices, tickers of exchanges, contracts and market caps. */
  series(): ListedSeries[] {
    return readSeries(this.#connection);
  }

  /** The bars that begin in the range, series by series. */
  bars(series: SeriesSelection, options: BarArrayOptions): BarArrays[];
  bars(series: SeriesSelection, options: BarOptions): BarRow[];
  bars(series: SeriesSelection, options: BarOptions & { readonly as?: "columns" }): BarRow[] | BarArrays[] {
    return this.#inTransaction(options, (connection) => {
      const plans = this.#warnOfMissing(planReads(connection, series, options));
      const rows = plans.map((plan) => [...readBars(connection, plan, options.running)]);
      if (options.as !== "columns") return rows.flat();
      return plans.map((plan, at) => toBarArrays(plan.series, rows[at] ?? []));
    });
  }

  /** The ticks of the range, series by series. */
  ticks(series: SeriesSelection, options: TickArrayOptions): TickArrays[];
  ticks(series: SeriesSelection, options?: TickOptions): TickRow[];
  ticks(series: SeriesSelection, options: TickOptions | TickArrayOptions = {}): TickRow[] | TickArrays[] {
    return this.#inTransaction(options, (connection) => {
      const plans = this.#warnOfMissing(planReads(connection, series, options));
      if ("as" in options) {
        const { columns = ["price"] } = options;
        return plans.map((plan) => readTickArrays(connection, plan.series, plan.range, columns));
      }
      return plans.flatMap((plan) => [...readTickRows(connection, plan)]);
    });
  }

  /**
   * The bars of `bars`, one by one in constant memory: `for await (const bar of …)`. All are of the state at the first one.
   */
  async *iterBars(series: SeriesSelection, options: BarOptions): AsyncGenerator<BarRow, void, undefined> {
    yield* this.#iterate(
      options,
      (connection) => planReads(connection, series, options),
      (connection, plan) => readBars(connection, plan, options.running),
    );
  }

  /** The ticks of `ticks`, in the same way. */
  async *iterTicks(
    series: SeriesSelection,
    options: TickOptions = {},
  ): AsyncGenerator<TickRow, void, undefined> {
    yield* this.#iterate(options, (connection) => planReads(connection, series, options), readTickRows);
  }

  /** What each series was worth at or before a moment, each of several, or one a day: series by series. */
  asOf(
    at: TimeInput | readonly TimeInput[] | Schedule,
    series: SeriesSelection,
    options: AsOfOptions = {},
  ): AsOfRow[] {
    return this.#inTransaction(options, (connection) =>
      planMoments(connection, at, series, options).flatMap((plan) => readAsOf(connection, plan)),
    );
  }

  /** Your rows, such as trades, each with what its series was worth at its time. */
  asOfJoin<Row extends object>(rows: readonly Row[], options: AsOfJoinOptions = {}): (Row & AsOfValue)[] {
    return this.#inTransaction(options, (connection) => joinAsOf(connection, rows, options));
  }

  /** What the ledger has settled: rows of the view `coverage`. */
  coverage(options: LedgerOptions = {}): CoverageRow[] {
    return this.#inTransaction(options, (connection) => readCoverage(connection, options));
  }

  /**
   * Everything that is missing. With `from` or `to` it is clipped to the range, and includes what the ledger does not mention;
   * otherwise these are the rows of the view `gaps`.
   */
  gaps(options: LedgerOptions = {}): GapRow[] {
    return this.#inTransaction(options, (connection) => readLedgerGaps(connection, options));
  }

  /** Whether every second of the range is proven, for each of the series. */
  isWhole(series: SeriesSelection, options: WholeOptions): boolean {
    return this.#inTransaction(options, (connection) => {
      const [now, zone] = [readPresentTs(connection), findTimeZone(options.tz)];
      const range = { from: readTime(options.from, now, zone), to: readTime(options.to, now, zone) };
      const all = resolveSeries(connection, series, options);
      const streamed = all.map((one) => ({ series: one, stream: options.stream ?? one.stream }));
      return findMissing(connection, streamed, range).length === 0;
    });
  }

  /**
   * A token that names the newest state: as `knownAt` it reproduces every answer of now. With a question, one line that cites its
   * answer, which others can check.
   */
  cite(): string;
  cite(method: "bars", series: SeriesSelection, options: BarOptions): string;
  cite(method: "ticks", series: SeriesSelection, options?: TickOptions): string;
  cite(
    method: "asOf",
    at: TimeInput | readonly TimeInput[] | Schedule,
    series: SeriesSelection,
    options?: AsOfOptions,
  ): string;
  cite(method?: "bars" | "ticks" | "asOf", ...args: readonly unknown[]): string {
    if (method === undefined) return this.#inTransaction({}, citeState);
    if (method === "asOf") {
      const [at, series, options = {}] = args as Parameters<Warehouse["asOf"]>;
      return this.#inTransaction(options, (connection) =>
        cite(connection, toQuestion(connection, planMoments(connection, at, series, options), options)),
      );
    }
    const [series, given = {}] = args as [SeriesSelection, (TickOptions & Partial<BarOptions>)?];
    const options = { ...given, every: method === "bars" ? (given.every ?? "") : undefined };
    return this.#inTransaction(options, (connection) =>
      cite(connection, toQuestion(connection, planReads(connection, series, options), options)),
    );
  }

  /** Recomputes what a line of `cite` cites, in whichever warehouse of the same service. */
  check(citation: string): CheckResult {
    return checkFile(this.path, citation);
  }

  /** Runs one read-only statement. A bound on `time` is as fast as one on `ts`. `Row` must match its columns. */
  query<Row = QueryRow>(sql: string, parameters: QueryValues = {}, options: KnownAtOptions = {}): Row[] {
    return this.#inTransaction(options, (connection) => {
      if (connection.knownAt)
        for (const name of findRelationsOfNow(connection, sql))
          this.#warn(`${name} has no earlier states: its rows are those of now`, "MDS_NO_PAST");
      const values = readQueryValues(parameters, readPresentTs(connection));
      const { columns, rows } = runReadQuery(connection, sql, values);
      return [...rows].map(
        (row) => Object.fromEntries(columns.map((name, at) => [name, toPlainInteger(row[at])])) as Row,
      );
    });
  }

  /** Closes the file, as `using` does at the end of the block. */
  close(): void {
    this.#connection.close();
    this.#past?.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #warnOfMissing<Plan extends SourcedSeries>(plans: Plan[]): Plan[] {
    // A name alone gives an empty result, which says the same.
    if (plans.length > 1)
      for (const one of plans) this.#warn(describeMissingRows(one.series, one.source), "MDS_NO_ROWS");
    return plans;
  }

  /** Reads blocks of the state that the plans are of, on a connection of its own: a commit between two blocks changes nothing. */
  async *#iterate<Plan extends TickPlan & Partial<BarPlan>, Row extends { readonly ts: Micros }>(
    options: KnownAtOptions,
    plan: (connection: Connection) => Plan[],
    read: (connection: Connection, plan: Plan) => Iterable<Row>,
  ): AsyncGenerator<Row, void, undefined> {
    const { plans, token } = this.#inTransaction(options, (connection) => ({
      plans: this.#warnOfMissing(plan(connection)),
      token: citeState(connection),
    }));
    const reader = openReader(this.path);
    try {
      showKnownAt(reader, resolveKnownAt(reader, token));
      for (const one of plans) {
        for (let rest = one.range; rest.from < rest.to; ) {
          const block = reader.database.transaction(() => readBlock(reader, { ...one, range: rest }, read))();
          yield* block.rows;
          rest = { from: block.next, to: rest.to };
          // Other work of the process takes its turn.
          await nextTurn();
        }
      }
    } catch (error) {
      throw toReaderFailure(error, this.path);
    } finally {
      reader.close();
    }
  }

  /** A warning of the process, once. */
  #warn(text: string | undefined, code: string): void {
    if (text === undefined || this.#warnings.has(text)) return;
    this.#warnings.add(text);
    process.emitWarning(text, { code });
  }

  /** All reads of a call see one state of the warehouse. */
  #inTransaction<T>(
    { knownAt, tz }: KnownAtOptions & { tz?: string },
    work: (connection: Connection) => T,
  ): T {
    try {
      const connection = knownAt === undefined ? this.#connection : this.#openPast(knownAt, tz);
      return connection.database.transaction(() => work(connection))();
    } catch (error) {
      throw toReaderFailure(error, this.path);
    }
  }

  /** A connection of its own, so that no statement is prepared again whenever the state changes. */
  #openPast(knownAt: TimeInput, tz?: string): Connection {
    // A token names one state for ever; a moment that is not over long ago may get another commit.
    if (this.#past && knownAt === this.#shownToken) return this.#past;
    const state = resolveKnownAt(this.#connection, knownAt, findTimeZone(tz));
    this.#past ??= openReader(this.path);
    showKnownAt(this.#past, state);
    this.#shownToken = typeof knownAt === "string" && knownAt.includes("@") ? knownAt : undefined;
    return this.#past;
  }
}

function toPlainInteger(value: unknown): unknown {
  return typeof value === "bigint" && Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

function toBarArrays({ index_type, index_id, name }: SeriesInfo, rows: readonly BarRow[]): BarArrays {
  type NumberColumn = "open" | "high" | "low" | "close" | "volume_24h" | "n_ticks" | "coverage";
  const column = (of: NumberColumn) => toNumbers(rows.map((row) => row[of]));
  return {
    index_type,
    index_id,
    name,
    length: rows.length,
    ts: toTimestamps(rows.map(({ ts }) => ts)),
    open: column("open"),
    high: column("high"),
    low: column("low"),
    close: column("close"),
    volume_24h: column("volume_24h"),
    n_ticks: column("n_ticks"),
    coverage: column("coverage"),
    is_complete: Uint8Array.from(rows, (row) => row.is_complete),
    source: rows[0]?.source ?? null,
  };
}

/** How many rows a reader of an iteration holds. */
const ROWS_PER_BLOCK = 4_096;

/** The first rows of a range, and where the rest of it begins. */
function readBlock<Plan extends TickPlan & Partial<BarPlan>, Row extends { readonly ts: Micros }>(
  connection: Connection,
  plan: Plan,
  read: (connection: Connection, plan: Plan) => Iterable<Row>,
): { readonly rows: readonly Row[]; readonly next: Micros } {
  const { grid, range } = plan;
  const to = grid
    ? Math.min(range.to, grid.startOf(grid.startOf(range.from) + ROWS_PER_BLOCK * grid.length))
    : range.to;
  const rows: Row[] = [];
  for (const row of read(connection, { ...plan, range: { from: range.from, to } }))
    if (rows.push(row) === ROWS_PER_BLOCK && !grid) return { rows, next: row.ts + 1 };
  return { rows, next: to };
}
