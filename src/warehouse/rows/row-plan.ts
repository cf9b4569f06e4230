import type { IndexTick, StreamRecords } from "../../model/records.ts";
import { hasHistory, type RowStream, streamTable } from "../../model/streams.ts";
import type { TickColumns } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import type { SettledRange } from "../../rule/answer.ts";
import { type LedgerChange, reopenAt } from "../../rule/apply.ts";
import { findProofAt, findTouching, readTouched } from "../coverage/ledger.ts";
import { isParted, slotBefore } from "../tables/row-parts.ts";
import {
  encodeRow,
  hasSameValues,
  type Moment,
  type RowTable,
  rowTables,
  type SqlValue,
} from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { hasDuplicateNote, noteDuplicateInDetails } from "./duplicate-timestamps.ts";
import { ROWS_PER_STATEMENT, rowSql } from "./row-sql.ts";

/**
 * `rest`: a current REST page. `live`: the websocket, or a stale REST page (cached, or overtaken by a later request);
 * neither replaces what a current page wrote or settled (docs/decisions/live-ticks.md).
 */
export type RecordSource = "rest" | "live";

/** One step of writing records of a series. */
export type RowStep<Row extends Moment> =
  /** No row exists between these records: of a page, ascending. */
  | { readonly kind: "fill"; readonly records: readonly Row[]; readonly slot: number | undefined }
  /** The same of a whole page of ticks, newest first. */
  | { readonly kind: "columns"; readonly columns: TickColumns }
  /** `isNewest`: newer than all rows of its series. */
  | {
      readonly kind: "insert";
      readonly record: Row;
      readonly isNewest: boolean;
      /** Where a live row goes that is older than the newest of its key; undefined: to the open part. */
      readonly slot: number | undefined;
    }
  /** A REST page equals a live row. */
  | { readonly kind: "confirm"; readonly ts: Micros }
  | {
      readonly kind: "replace";
      readonly ts: Micros;
      readonly values: readonly SqlValue[];
      readonly isRevision: boolean;
      /** Only undocumented properties or the quality differ. */
      readonly hasSame: boolean;
    };

/** What is written of the records of one series, decided by what is stored before anything is written. */
export interface SeriesPlan<Row extends Moment> {
  readonly key: number;
  readonly name: string | null | undefined;
  readonly newest: Micros;
  readonly steps: readonly RowStep<Row>[];
  /** What live ticks open again, and where. */
  readonly reopened: readonly LedgerChange[];
  readonly touched: readonly SettledRange[];
}

export interface RowPlan<Row extends Moment> {
  readonly table: RowTable<Row>;
  readonly source: RecordSource;
  readonly series: readonly SeriesPlan<Row>[];
  readonly unchanged: number;
  /** Live records that are ignored because a REST row of the same tick takes precedence. */
  readonly outranked: number;
}

/**
 * Decides what is written of records of a stream, in any order and of any number of series: identical rows are left alone, different
 * ones replaced. REST rows and settled rows take precedence over live records; a live record less than `tolerance` from a REST row is
 * the same tick, stamped by another clock.
 */
export function planRecords<S extends RowStream>(
  transaction: Transaction,
  stream: S,
  records: readonly StreamRecords[S][],
  source: RecordSource,
  tolerance: Micros = 0,
): RowPlan<StreamRecords[S]> {
  const table: RowTable<StreamRecords[S]> = rowTables[stream];
  const planner = new RowPlanner(transaction, table, source, stream === "index_ticks" ? tolerance : 0);
  const byKey = Map.groupBy(records, (record) => table.key(transaction, record));
  const series = [...byKey]
    .sort(([a], [b]) => a - b)
    .map(([key, group]) =>
      planner.plan(key, sortAscending(group, source), table.nameOf?.(group[0] as StreamRecords[S])),
    );
  const { unchanged, outranked } = planner;
  return { table, source, series, unchanged, outranked };
}

/** Sorts by time. Of records with the same timestamp, returns the first of a page, or all of the live feed in their order. */
function sortAscending<Row extends Moment>(records: readonly Row[], source: RecordSource): readonly Row[] {
  if (records.length === 1) return records;
  const ofPage = () => new Map(records.toReversed().map((record) => [record.ts, record])).values();
  return [...(source === "live" ? records : ofPage())].sort((a, b) => a.ts - b.ts);
}

/** The first and the last timestamp. */
const spanOf = (ascending: readonly Moment[]) =>
  [(ascending[0] as Moment).ts, (ascending.at(-1) as Moment).ts] as const;

/** The plan of a page of ticks from REST, newest first, in whose range no row exists. */
export function planVacantTicks(transaction: Transaction, columns: TickColumns): RowPlan<IndexTick> {
  const key = transaction.dictionary.getSeriesKey(columns.indexType, columns.indexId);
  const steps = [{ kind: "columns", columns } as const];
  const series = { key, name: null, newest: columns.ts[0] as Micros, steps, reopened: [], touched: [] };
  return { table: rowTables.index_ticks, source: "rest", series: [series], unchanged: 0, outranked: 0 };
}

class RowPlanner<Row extends Moment> {
  unchanged = 0;
  outranked = 0;
  readonly #transaction: Transaction;
  readonly #table: RowTable<Row>;
  readonly #source: RecordSource;
  readonly #tolerance: Micros;

  constructor(transaction: Transaction, table: RowTable<Row>, source: RecordSource, tolerance: Micros) {
    this.#transaction = transaction;
    this.#table = table;
    this.#source = source;
    this.#tolerance = tolerance;
  }

  /** `records`: of one series, ascending; one per timestamp, unless they are live. */
  plan(key: number, records: readonly Row[], name: string | null | undefined): SeriesPlan<Row> {
    const { stream } = this.#table;
    const newest = (records.at(-1) as Row).ts;
    if (this.#source === "rest")
      return { key, name, newest, steps: this.#planPage(key, records), reopened: [], touched: [] };
    const { steps, reopened } = this.#planLive(key, records);
    const touched =
      reopened.length > 0 ? readTouched(this.#transaction, { stream, series: key }, reopened) : [];
    return { key, name, newest, steps, reopened, touched };
  }

  #planPage(key: number, records: readonly Row[]): RowStep<Row>[] {
    if (this.#isVacant(key, records)) return [this.#fill(key, records)];
    const [first, last] = spanOf(records);
    const steps: RowStep<Row>[] = [];
    for (let i = 0; i < records.length; i += ROWS_PER_STATEMENT) {
      const chunk = records.slice(i, i + ROWS_PER_STATEMENT);
      if (this.#isVacant(key, chunk)) steps.push(this.#fill(key, chunk));
      else
        for (const record of chunk) {
          // Only pages of a history show all records of a moment together, and two pages may share their first and last moment.
          const isWhole = hasHistory(this.#table.stream) && record.ts > first && record.ts < last;
          const before = this.#readStored(key, record.ts);
          const step: RowStep<Row> | undefined = before
            ? this.#merge(key, record, before, isWhole)
            : { kind: "insert", record, isNewest: false, slot: this.#findSlot(key, record.ts) };
          if (step) steps.push(step);
        }
    }
    return steps;
  }

  /** Live records may repeat a moment: the second one meets what the first one leaves. */
  #planLive(key: number, records: readonly Row[]) {
    const steps: RowStep<Row>[] = [];
    const reopened: LedgerChange[] = [];
    let last:
      | { readonly ts: Micros; readonly values: () => readonly SqlValue[]; readonly isNew: boolean }
      | undefined;
    const insert = (record: Row, isNewest: boolean) => {
      const slot = isNewest ? undefined : this.#findSlot(key, record.ts);
      steps.push({ kind: "insert", record, isNewest, slot });
      last = { ts: record.ts, values: () => this.#encode(record), isNew: true };
    };
    for (const record of records) {
      const { ts } = record;
      const again = last?.ts === ts ? last : undefined;
      last = undefined;
      if (!again && this.#isAboveMark(key, ts) && !this.#hasRestRowNear(key, ts)) {
        insert(record, true);
        continue;
      }
      const before = again ? again.values() : this.#readStored(key, ts);
      if (before !== undefined) {
        const step = this.#merge(key, record, before, false, again?.isNew);
        if (step) steps.push(step);
        const values = step?.kind === "replace" ? step.values : before;
        last = { ts, values: () => values, isNew: again?.isNew ?? false };
      } else if (this.#hasRestRowNear(key, ts)) this.outranked++;
      else {
        reopened.push(...this.#reopenAt(key, ts));
        insert(record, false);
      }
    }
    return { steps, reopened };
  }

  /** `isWhole`: the page has all records of the moment; `isNew`: the batch itself has brought the row. */
  #merge(key: number, record: Row, before: readonly SqlValue[], isWhole: boolean, isNew = false) {
    const table = this.#table;
    const isLive = this.#source === "live";
    const { ts } = record;
    const values = this.#encode(record);
    const detailsAt = values.length - 1;
    if (hasDuplicateNote(before[detailsAt]) && !isWhole)
      values[detailsAt] = noteDuplicateInDetails(values[detailsAt]);
    if (values.every((value, i) => value === before[i] || i === table.sourceAt)) {
      this.unchanged++;
      return !isLive && before[table.sourceAt] === 1 ? ({ kind: "confirm", ts } as const) : undefined;
    }
    const settled = !isNew && this.#isSettled(key, ts);
    // Streams without a `source` column come from REST only.
    const isFromRest = table.sourceAt < 0 || before[table.sourceAt] === 0;
    if (isLive && (settled || isFromRest)) {
      this.outranked++;
      return undefined;
    }
    const hasSame = hasSameValues(table, before, values);
    if (!hasSame && isLive) values[detailsAt] = noteDuplicateInDetails(values[detailsAt]);
    // A bar of an unsettled day is provisional: every poll replaces it, without a revision.
    const isRevision = !hasSame && (settled || !streamTable[table.stream].isProvisional);
    return { kind: "replace", ts, values, isRevision, hasSame } as const;
  }

  #encode(record: Row): SqlValue[] {
    return encodeRow(this.#table, record, this.#source === "live" ? 1 : 0);
  }

  /** Whether no row exists from the first record to the last: the usual case in the first backfill. */
  #isVacant(key: number, records: readonly Row[]): boolean {
    const { stream } = this.#table;
    const [first, last] = spanOf(records);
    if (isParted(stream) && this.#isAboveMark(key, first)) return true;
    return this.#transaction.findRow(rowSql[stream].selectAny, [key, first, last, null]) === undefined;
  }

  #isAboveMark(key: number, ts: Micros): boolean {
    return this.#transaction.highWaterMarks.isAbove(this.#table.stream, key, ts);
  }

  #fill(key: number, records: readonly Row[]): RowStep<Row> {
    return { kind: "fill", records, slot: this.#findSlot(key, (records[0] as Row).ts) };
  }

  #findSlot(key: number, ts: Micros): number | undefined {
    const { stream } = this.#table;
    if (!isParted(stream) || this.#isAboveMark(key, ts)) return undefined;
    return this.#transaction.findValue<number>(slotBefore(stream), [key, key, ts]);
  }

  #readStored(key: number, ts: Micros): readonly SqlValue[] | undefined {
    return this.#transaction.findTuple<readonly SqlValue[]>(rowSql[this.#table.stream].selectOne, [key, ts]);
  }

  #isSettled(key: number, ts: Micros): boolean {
    const { stream } = this.#table;
    const proof = hasHistory(stream)
      ? findProofAt(this.#transaction, { stream, series: key }, ts)
      : undefined;
    return proof !== undefined && proof !== "lost";
  }

  /** A live tick asks for what is settled again; the rule of pages decides about their records. */
  #reopenAt(key: number, ts: Micros): LedgerChange[] {
    const { stream } = this.#table;
    if (!hasHistory(stream)) return [];
    return reopenAt(ts, findTouching(this.#transaction, { stream, series: key }, { from: ts, to: ts }));
  }

  /** Whether REST has a row so close to a live tick that both are the same tick. */
  #hasRestRowNear(key: number, ts: Micros): boolean {
    if (this.#tolerance === 0) return false;
    const { highWaterMarks } = this.#transaction;
    // Nearly every live tick is newer than all that REST has: no query, however many live ticks are near.
    if (highWaterMarks.isAboveRest(key, ts - this.#tolerance)) return false;
    const sql = "SELECT 1 FROM index_tick_rows WHERE series = ? AND ts > ? AND ts < ? AND source = 0 LIMIT 1";
    const near = [key, ts - this.#tolerance, ts + this.#tolerance];
    return this.#transaction.findRow(sql, near) !== undefined;
  }
}
