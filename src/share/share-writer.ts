import type { ShareRole } from "../model/status/share-status.ts";
import { hasHistory, type RowStream, streamTable } from "../model/streams.ts";
import type { Micros } from "../model/time.ts";
import { subtract, type TimeRange } from "../model/time-range.ts";
import type { SettledRange } from "../rule/answer.ts";
import type { Clock } from "../runtime/clock.ts";
import { type ForwardedRow, readRange } from "../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import type { LedgerPiece } from "./ledger-difference.ts";
import type { Lease } from "./server/lease.ts";
import { SharedDictionaries } from "./tables/dictionaries.ts";
import { type CommittedRange, SharedRows } from "./tables/row-store.ts";
import type { ShareReport } from "./thread/share-messages.ts";

/** Rows of one transaction: more gain little, and keep the rows of a range longer from its readers. */
const MAX_ROWS_PER_TRANSACTION = 20_000;
/** Ranges of one transaction: a first load has thousands of series without any row. */
const MAX_UNITS_PER_TRANSACTION = 500;

export interface ShareWriterOptions {
  readonly connection: Connection;
  readonly lease: Lease;
  /** `alone`: PostgreSQL equals this file. `pair`: it has what any of the daemons has. */
  readonly role: ShareRole;
  /** The name of this daemon, for people. */
  readonly name: string;
  readonly clock: Clock;
  readonly report?: (report: ShareReport) => void;
}

/** A range of one key to be forwarded: rows with their coverage; `append`: rows alone, of which PostgreSQL has none. */
export interface Unit {
  readonly key: number;
  readonly range: TimeRange;
  readonly kind: LedgerPiece["kind"] | "append";
}

/** The content of a unit, from one snapshot. */
interface UnitContent {
  readonly unit: Unit;
  readonly rows: readonly ForwardedRow[];
  readonly ledger: readonly SettledRange[];
}

/** Writes ranges of the SQLite file to PostgreSQL, each with its proof in one transaction that only the holder can commit. */
export class ShareWriter {
  readonly #options: ShareWriterOptions;
  readonly dictionaries: SharedDictionaries;
  readonly rows: SharedRows;
  /** Since someone has set them. */
  counts = { rows: 0, ranges: 0 };
  /** What `replaceRanges` is to do, for the progress. */
  #plannedMicros: Micros = 0;
  #doneMicros: Micros = 0;

  constructor(options: ShareWriterOptions) {
    this.#options = options;
    this.dictionaries = new SharedDictionaries(options.connection, options.lease);
    this.rows = new SharedRows(options.lease, this.dictionaries);
  }

  /** Whether PostgreSQL has an entry for the key. */
  knows(stream: RowStream, key: number): boolean {
    return this.dictionaries.find(streamTable[stream].dictionary, key) !== undefined;
  }

  /** Replaces ranges, several of them in one transaction while they have few rows. */
  async replaceRanges(stream: RowStream, units: readonly Unit[]): Promise<void> {
    this.#plannedMicros += lengthOf(units);
    let batch: UnitContent[] = [];
    let rows = 0;
    const flush = async () => {
      if (batch.length > 0) await this.#commitBatch(stream, batch);
      batch = [];
      rows = 0;
    };
    for (const unit of units) {
      for (let { from } = unit.range; from < unit.range.to; ) {
        const rest = { from, to: unit.range.to };
        const content = readRange(
          this.#options.connection,
          { stream, key: unit.key },
          rest,
          MAX_ROWS_PER_TRANSACTION - rows,
        );
        const part = { ...unit, range: { from, to: content.to } };
        if (content.to > from) batch.push(...this.#withoutDetached(stream, part, content));
        rows += content.rows.length;
        const isCut = content.to < unit.range.to;
        from = content.to;
        if (isCut || rows >= MAX_ROWS_PER_TRANSACTION || batch.length >= MAX_UNITS_PER_TRANSACTION)
          await flush();
      }
    }
    await flush();
  }

  /** Months that were detached get no rows. */
  #withoutDetached(
    stream: RowStream,
    unit: Unit,
    { rows, ledger }: Pick<UnitContent, "rows" | "ledger">,
  ): UnitContent[] {
    const detached = this.rows.months.detachedOf(stream);
    if (detached.length === 0) return [{ unit, rows, ledger }];
    return subtract([unit.range], detached).map(({ from, to }) => ({
      unit: { ...unit, range: { from, to } },
      // Only ticks have months, and their time is a number.
      rows: rows.filter(([, ts]) => Number(ts) >= from && Number(ts) < to),
      ledger,
    }));
  }

  async #commitBatch(stream: RowStream, batch: readonly UnitContent[]): Promise<void> {
    const { lease } = this.#options;
    const replacements = batch.filter(({ unit }) => unit.kind === "replace");
    const proven = hasHistory(stream) ? batch.filter(({ unit }) => unit.kind !== "append") : [];
    const copied = batch.filter(({ unit }) => unit.kind !== "merge").flatMap(({ rows }) => rows);
    const merged = batch.filter(({ unit }) => unit.kind === "merge").flatMap(({ rows }) => rows);
    const all = [...copied, ...merged];
    await this.rows.months.createFor(stream, all);
    // Nothing is there above the newest row: the usual case of live rows, and of a first load.
    const deletions = replacements
      .filter(({ unit }) => unit.range.from <= this.rows.newestOf(stream, unit.key))
      .flatMap(({ unit }) => this.rows.deleteSql(stream, unit.key, unit.range));
    await lease.transaction(async () => {
      if (deletions.length > 0) await lease.session.query(deletions.join("; "));
      if (copied.length > 0) await this.rows.copyRows(stream, this.rows.encode(stream, copied));
      if (merged.length > 0) await this.rows.mergeRows(stream, this.rows.encode(stream, merged));
      const sql = [
        ...(stream === "index_ticks" ? this.rows.bars.writeSql(batch) : []),
        ...proven.flatMap(({ unit, ledger }) =>
          this.rows.replaceLedger(stream, unit.key, unit.range, ledger),
        ),
        ...this.rows.notifySql(stream, batch.flatMap(toCommittedRange)),
      ];
      if (sql.length > 0) await lease.session.query(sql.join("; "));
    });
    this.rows.raiseNewest(stream, all);
    this.counts.rows += all.length;
    this.counts.ranges += proven.length;
    this.#doneMicros += lengthOf(batch.map(({ unit }) => unit));
    this.#options.report?.({
      kind: "rows",
      rows: all.length,
      doneMicros: this.#doneMicros,
      plannedMicros: this.#plannedMicros,
    });
  }

  /** Replaces the ledger of a subscription inside `ranges`, whose rows are there already. */
  async commitLedger(
    stream: RowStream,
    series: number,
    ranges: readonly TimeRange[],
    content: readonly SettledRange[],
  ): Promise<void> {
    if (this.dictionaries.find("series", series) === undefined) return;
    for (let i = 0; i < ranges.length; i += MAX_UNITS_PER_TRANSACTION) {
      const statements = ranges
        .slice(i, i + MAX_UNITS_PER_TRANSACTION)
        .flatMap((range) => this.rows.replaceLedger(stream, series, range, content));
      if (statements.length === 0) continue;
      await this.#options.lease.run(statements.join("; "));
      this.counts.ranges += statements.length;
    }
  }
}

/** The range that a unit has changed; that of rows alone begins and ends with them. */
function toCommittedRange({ unit, rows }: UnitContent): CommittedRange[] {
  const { key, kind, range } = unit;
  if (kind !== "append") return [{ key, ...range }];
  const [first, last] = [rows[0], rows.at(-1)];
  return first && last ? [{ key, from: first[1], to: last[1] + 1 }] : [];
}

/** The time that the units are about; that of rows alone has no end. */
function lengthOf(units: readonly Unit[]): Micros {
  const settled = units.filter(({ kind }) => kind !== "append");
  return settled.reduce((sum, { range }) => sum + range.to - range.from, 0);
}
