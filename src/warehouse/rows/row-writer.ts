import type { CommittedTick } from "../../model/answers/ticks.ts";
import { isPlainTick, type TickColumns, tickAt } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import { applyChanges } from "../coverage/ledger.ts";
import { isParted } from "../tables/row-parts.ts";
import type { Moment, RowTable, SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { markStale, PageBars } from "./kept-bars.ts";
import type { RecordSource, RowPlan, RowStep, SeriesPlan } from "./row-plan.ts";
import { getPlainTickSql, keepPastRow, ROWS_PER_STATEMENT, rowSql } from "./row-sql.ts";
import { addRowCount } from "./stream-stats.ts";

export type WriteRecordsResult = Readonly<ReturnType<typeof writeRows>>;

/** Writes what was planned before the first write of the transaction: nothing is read now. */
export function writeRows<Row extends Moment>(transaction: Transaction, plan: RowPlan<Row>) {
  return new RowWriter(transaction, plan.table, plan.source).write(plan);
}

class RowWriter<Row extends Moment> {
  readonly #transaction: Transaction;
  readonly #table: RowTable<Row>;
  readonly #source: RecordSource;
  readonly #width: number;
  #pendingValues: SqlValue[] = [];
  #newestTs: Micros | undefined;
  #inserted = 0;
  #changed = 0;
  #extraChanged = 0;

  constructor(transaction: Transaction, table: RowTable<Row>, source: RecordSource) {
    this.#transaction = transaction;
    this.#table = table;
    this.#source = source;
    this.#width = table.columns.length + 3;
  }

  write({ series, unchanged, outranked }: RowPlan<Row>) {
    for (const each of series) this.#writeSeries(each);
    this.#flush();
    addRowCount(this.#transaction, this.#table.stream, this.#inserted, this.#newestTs);
    return {
      inserted: this.#inserted,
      /** Replaced by other figures. The earlier version is in `revisions`, unless it was a bar of an unsettled day. */
      changed: this.#changed,
      unchanged: unchanged + this.#extraChanged,
      /** How many of `unchanged` have other undocumented properties or another quality now: replaced, without a revision. */
      extraChanged: this.#extraChanged,
      outranked,
    };
  }

  #writeSeries({ key, name, newest, steps, reopened, touched }: SeriesPlan<Row>): void {
    const { stream } = this.#table;
    this.#transaction.markWritten(stream, key);
    if (name) this.#transaction.dictionary.nameSeries(key, name);
    for (const step of steps) this.#writeStep(key, step);
    if (reopened.length > 0) applyChanges(this.#transaction, { stream, series: key }, reopened, touched);
    this.#raiseNewest(key, newest);
  }

  #writeStep(key: number, step: RowStep<Row>): void {
    const { stream, toTick } = this.#table;
    if (step.kind === "fill") {
      this.#fillRecords(key, step.records, step.slot);
      return;
    }
    if (step.kind === "columns") {
      this.#record(key, step.columns.ts.at(-1) as Micros, step.columns.ts[0] as Micros);
      this.#insertColumns(key, step.columns);
      return;
    }
    if (step.kind === "insert") {
      const { ts } = step.record;
      this.#record(key, ts, ts, step.isNewest ? toTick?.(step.record) : undefined);
      this.#insert(key, step.record, step.slot);
      return;
    }
    const { ts } = step;
    const { commit } = this.#transaction;
    this.#record(key, ts, ts);
    if (step.kind === "confirm") {
      this.#transaction.run(rowSql[stream].confirmOne, [commit, key, ts]);
      return;
    }
    // The batch may have brought the row itself.
    this.#flush();
    this.#markStale(key, ts);
    keepPastRow(this.#transaction, stream, { key, ts }, step.isRevision);
    this.#transaction.run(rowSql[stream].replaceOne, [...step.values, commit, key, ts]);
    if (step.hasSame) this.#extraChanged++;
    else this.#changed++;
  }

  #fillRecords(key: number, records: readonly Row[], slot: number | undefined): void {
    this.#record(key, (records[0] as Row).ts, (records.at(-1) as Row).ts);
    const others: Row[] = [];
    const plain = this.#table.collectPlain?.(records, others);
    if (plain) this.#insertColumns(key, plain);
    for (const record of plain ? others : records) this.#insert(key, record, slot);
  }

  #raiseNewest(key: number, newest: Micros): void {
    if (this.#newestTs === undefined || newest > this.#newestTs) this.#newestTs = newest;
    const { stream } = this.#table;
    const { highWaterMarks } = this.#transaction;
    highWaterMarks.raise(stream, key, newest);
    if (stream === "index_ticks" && this.#source === "rest") highWaterMarks.raise("rest", key, newest);
  }

  /** Only index ticks have kept bars. */
  #markStale(key: number, ts: Micros): void {
    if (this.#table.stream === "index_ticks") markStale(this.#transaction, key, ts);
  }

  /** Enters rows that were written in the journal. */
  #record(key: number, first: Micros, last: Micros, tick?: CommittedTick): void {
    this.#transaction.journal.add(this.#table.stream, "rows", key, { from: first, to: last + 1 }, tick);
  }

  /** Inserts new ticks in ascending order, from whichever end of the columns is the oldest. */
  #insertColumns(key: number, columns: TickColumns): void {
    const { ts, price, volume } = columns;
    const bound = { key, commit: this.#transaction.commit };
    const bars = new PageBars(this.#transaction, key);
    const rare: number[] = [];
    const values: number[] = [];
    let rows = 0;
    const flush = () => {
      values.length = 3 * rows;
      // The spread last: anywhere else it allocates an object for each value.
      if (rows > 0) this.#transaction.statement(getPlainTickSql(rows)).run(bound, ...values);
      this.#inserted += rows;
      rows = 0;
    };
    const last = ts.length - 1;
    const isAscending = (ts[0] as Micros) < (ts[last] as Micros);
    for (let i = 0; i <= last; i++) {
      const row = isAscending ? i : last - i;
      if (!isPlainTick(columns, row)) {
        rare.push(row);
        continue;
      }
      const at = ts[row] as Micros;
      const value = price[row] as number;
      const amount = volume?.[row] as number;
      values[3 * rows] = at;
      values[3 * rows + 1] = value;
      values[3 * rows + 2] = amount;
      bars.add(at, value, amount);
      if (++rows === ROWS_PER_STATEMENT) flush();
    }
    flush();
    bars.finish();
    for (const row of rare) this.#insert(key, tickAt(columns, row) as Moment as Row);
  }

  #insert(key: number, record: Row, slot?: number): void {
    const { stream, encode } = this.#table;
    const { ts } = record;
    this.#markStale(key, ts);
    const openSlot = isParted(stream) ? this.#transaction.parts.openBase(this.#transaction.at) + key : key;
    this.#pendingValues.push(slot ?? openSlot, ts);
    encode(record, this.#source === "live" ? 1 : 0, this.#pendingValues);
    this.#pendingValues.push(this.#transaction.commit);
    if (this.#pendingValues.length === ROWS_PER_STATEMENT * this.#width) this.#flush();
  }

  #flush(): void {
    const { length } = this.#pendingValues;
    const rows = length / this.#width;
    if (rows === ROWS_PER_STATEMENT) {
      this.#transaction.statement(rowSql[this.#table.stream].insertMany).run(...this.#pendingValues);
    } else {
      const one = this.#transaction.statement(rowSql[this.#table.stream].insertOne);
      for (let at = 0; at < length; at += this.#width)
        one.run(this.#pendingValues.slice(at, at + this.#width));
    }
    this.#inserted += rows;
    this.#pendingValues = [];
  }
}
