import type { CommittedTick } from "../../model/answers/ticks.ts";
import type { StreamRecords } from "../../model/records.ts";
import { hasHistory, type RowStream, streamTable } from "../../model/streams.ts";
import { isPlainTick, type TickColumns, tickAt, toTicks } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import { reopenAt } from "../../rule/findings.ts";
import { applyChanges } from "../coverage/apply-changes.ts";
import { findProofAt, findTouching } from "../coverage/ledger.ts";
import { isParted, slotBefore } from "../tables/row-parts.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { PageBars, TouchedHours } from "./kept-bars.ts";
import { hasSameValues } from "./row-details.ts";
import { getPlainTickSql, getRowSql, keepPastRow, ROWS_PER_STATEMENT } from "./row-sql.ts";
import { hasSecondNote, noteSecondInDetails } from "./second-records.ts";
import { addRowCount } from "./stream-stats.ts";

/**
 * `rest`: a current REST page. `live`: the websocket, or a stale REST page (cached, or overtaken by a later request);
 * neither replaces what a current page wrote or settled (docs/decisions/live-ticks.md).
 */
export type RecordSource = "rest" | "live";

export interface WriteRecordsResult {
  readonly inserted: number;
  /** Replaced by other figures. The earlier version is in `revisions`, unless it was a bar of an unsettled day. */
  readonly changed: number;
  readonly unchanged: number;
  /** How many of `unchanged` have other undocumented properties or another quality now: replaced, without a revision. */
  readonly extraChanged: number;
  /** Live records that were ignored because a REST row of the same tick takes precedence. */
  readonly outranked: number;
}

/**
 * Stores records of a stream, in any order and of any number of series. Leaves identical rows alone; replaces different
 * ones and stores the earlier version in `revisions`. REST rows and settled rows take precedence over live records; a
 * live record less than `tolerance` from a REST row is the same tick, stamped by another clock.
 */
export function writeRecords<S extends RowStream>(
  transaction: Transaction,
  stream: S,
  records: readonly StreamRecords[S][],
  source: RecordSource,
  tolerance: Micros = 0,
): WriteRecordsResult {
  const table: RowTable<StreamRecords[S]> = rowTables[stream];
  const writer = new RowWriter(transaction, table, source, hasHistory(stream) ? tolerance : 0);
  for (const [key, group] of groupByKey(transaction, table, records)) {
    transaction.markWritten(stream, key);
    const name = table.nameOf?.(group[0] as StreamRecords[S]);
    if (name) transaction.dictionary.nameSeries(key, name);
    writer.writeSeries(key, sortAscending(table, group, source));
  }
  return writer.finish();
}

/** Stores the ticks of a page, as `writeRecords` does. */
export function writeTickColumns(
  transaction: Transaction,
  columns: TickColumns,
  source: RecordSource,
): WriteRecordsResult {
  const key = transaction.dictionary.getSeriesKey(columns.indexType, columns.indexId);
  const writer = new RowWriter(transaction, rowTables.index_ticks, source, 0);
  if (source === "live" || !isDescending(columns.ts) || !writer.fillVacantColumns(key, columns))
    return writeRecords(transaction, "index_ticks", toTicks(columns), source);
  transaction.markWritten("index_ticks", key);
  return writer.finish();
}

function isDescending(timestamps: Float64Array): boolean {
  for (let i = 1; i < timestamps.length; i++)
    if ((timestamps[i] as Micros) >= (timestamps[i - 1] as Micros)) return false;
  return true;
}

function groupByKey<Row>(
  transaction: Transaction,
  table: RowTable<Row>,
  records: readonly Row[],
): Iterable<[number, readonly Row[]]> {
  const groups = new Map<number, Row[]>();
  let last: Row | undefined;
  let group: Row[] = [];
  for (const record of records) {
    if (last === undefined || !table.hasSameKey(last, record)) {
      const key = table.key(transaction, record);
      group = groups.get(key) ?? [];
      groups.set(key, group);
    }
    last = record;
    group.push(record);
  }
  return [...groups].sort(([a], [b]) => a - b);
}

/** Sorts by time. Of records with the same timestamp, returns the first of a page, or all of the live feed in their order. */
function sortAscending<Row>(
  table: RowTable<Row>,
  records: readonly Row[],
  source: RecordSource,
): readonly Row[] {
  let isDescending = true;
  let isAscending = true;
  for (let i = 1; i < records.length; i++) {
    const step = table.ts(records[i] as Row) - table.ts(records[i - 1] as Row);
    if (step >= 0) isDescending = false;
    if (step <= 0) isAscending = false;
  }
  if (isAscending) return records;
  if (isDescending) return [...records].reverse();
  if (source === "live") return records.toSorted((a, b) => table.ts(a) - table.ts(b));
  const byTs = new Map<Micros, Row>();
  for (const record of records) {
    const ts = table.ts(record);
    if (!byTs.has(ts)) byTs.set(ts, record);
  }
  return [...byTs.values()].sort((a, b) => table.ts(a) - table.ts(b));
}

/** The timestamps of the first and the last row. */
interface Span {
  readonly first: Micros;
  readonly last: Micros;
}

class RowWriter<Row> {
  readonly #transaction: Transaction;
  readonly #table: RowTable<Row>;
  readonly #source: RecordSource;
  readonly #tolerance: Micros;
  readonly #width: number;
  /** Only index ticks have kept bars. */
  readonly #touched: TouchedHours | undefined;
  /** Only pages of a history show all records of a moment together. */
  readonly #hasWholeMoments: boolean;
  /** Of the records that are being written. */
  #span: Span = { first: 0, last: 0 };
  #pendingValues: SqlValue[] = [];
  #newestTs: Micros | undefined;
  #inserted = 0;
  #changed = 0;
  #unchanged = 0;
  #extraChanged = 0;
  #outranked = 0;

  constructor(transaction: Transaction, table: RowTable<Row>, source: RecordSource, tolerance: Micros) {
    this.#transaction = transaction;
    this.#table = table;
    this.#source = source;
    this.#tolerance = tolerance;
    this.#width = table.columns.length + 3;
    this.#hasWholeMoments = source === "rest" && hasHistory(table.stream);
    this.#touched = table.stream === "index_ticks" ? new TouchedHours() : undefined;
  }

  /** `records`: of one series, ascending; one per timestamp, unless they are live. */
  writeSeries(key: number, records: readonly Row[]): void {
    const { ts } = this.#table;
    if (records.length === 0) return;
    const span = { first: ts(records[0] as Row), last: ts(records.at(-1) as Row) };
    this.#span = span;
    if (this.#source === "live") this.#writeLive(key, records);
    else this.#writePage(key, records);
    this.#touched?.mark(this.#transaction, key);
    this.#raiseNewest(key, span.last);
  }

  /** Writes a page of ticks, newest first, if its range is vacant; otherwise writes nothing and returns false. */
  fillVacantColumns(key: number, columns: TickColumns): boolean {
    const [first, last] = [columns.ts.at(-1), columns.ts[0]];
    if (first === undefined || last === undefined) return true;
    if (!this.#isVacant(key, { first, last })) return false;
    this.#record(key, { first, last });
    this.#insertColumns(key, columns);
    this.#touched?.mark(this.#transaction, key);
    this.#raiseNewest(key, last);
    return true;
  }

  #raiseNewest(key: number, newest: Micros): void {
    if (this.#newestTs === undefined || newest > this.#newestTs) this.#newestTs = newest;
    const { stream } = this.#table;
    this.#transaction.highWaterMarks.raise(stream, key, newest);
    if (stream === "index_ticks" && this.#source === "rest")
      this.#transaction.highWaterMarks.raiseRest(key, newest);
  }

  #writeLive(key: number, records: readonly Row[]): void {
    let previous: Micros | undefined;
    for (const record of records) {
      const ts = this.#table.ts(record);
      const isSecond = ts === previous;
      previous = ts;
      if (isSecond) this.#flush(this.#pendingValues.length);
      if (!isSecond && this.#isAboveMark(key, ts) && !this.#hasRestRowNear(key, ts)) {
        this.#record(key, { first: ts, last: ts }, this.#table.toTick?.(record));
        this.#insert(key, record);
      } else this.#merge(key, record);
    }
  }

  #isAboveMark(key: number, ts: Micros): boolean {
    return this.#transaction.highWaterMarks.isAbove(this.#table.stream, key, ts);
  }

  #writePage(key: number, records: readonly Row[]): void {
    const { ts } = this.#table;
    const spanOf = (rows: readonly Row[]) => ({ first: ts(rows[0] as Row), last: ts(rows.at(-1) as Row) });
    if (this.#isVacant(key, spanOf(records))) {
      this.#record(key, spanOf(records));
      const others: Row[] = [];
      const plain = this.#table.collectPlain?.(records, others);
      if (plain) this.#insertColumns(key, plain);
      for (const record of plain ? others : records) this.#insert(key, record);
      return;
    }
    for (let i = 0; i < records.length; i += ROWS_PER_STATEMENT) {
      const chunk = records.slice(i, i + ROWS_PER_STATEMENT);
      const isVacant = this.#isVacant(key, spanOf(chunk));
      if (isVacant) this.#record(key, spanOf(chunk));
      for (const record of chunk) {
        if (isVacant) this.#insert(key, record);
        else this.#merge(key, record);
      }
    }
  }

  /** Enters rows that were written in the journal. */
  #record(key: number, { first, last }: Span, tick?: CommittedTick): void {
    this.#transaction.journal.add(this.#table.stream, "rows", key, { from: first, to: last + 1 }, tick);
  }

  finish(): WriteRecordsResult {
    this.#flush(this.#pendingValues.length);
    addRowCount(this.#transaction, this.#table.stream, this.#inserted, this.#newestTs);
    return {
      inserted: this.#inserted,
      changed: this.#changed,
      unchanged: this.#unchanged,
      extraChanged: this.#extraChanged,
      outranked: this.#outranked,
    };
  }

  /** Whether no row exists in the span: the usual case in the first backfill. */
  #isVacant(key: number, { first, last }: Span): boolean {
    if (isParted(this.#table.stream) && this.#isAboveMark(key, first)) return true;
    return (
      this.#transaction.statement(getRowSql(this.#table).selectAny).get([key, first, last]) === undefined
    );
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
      if (rows > 0) this.#transaction.statement(getPlainTickSql(rows)).run(...values, bound);
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
      const [at, value, amount] = [ts[row] as Micros, price[row] as number, volume?.[row] as number];
      values[3 * rows] = at;
      values[3 * rows + 1] = value;
      values[3 * rows + 2] = amount;
      bars.add(at, value, amount);
      if (++rows === ROWS_PER_STATEMENT) flush();
    }
    flush();
    bars.finish();
    for (const row of rare) this.#insert(key, tickAt(columns, row) as Row);
  }

  #insert(key: number, record: Row): void {
    this.#touched?.add(this.#table.ts(record));
    this.#append(key, record);
  }

  #append(key: number, record: Row): void {
    const { ts, encode } = this.#table;
    this.#pendingValues.push(this.#slotOf(key, ts(record)), ts(record));
    encode(record, this.#source === "live" ? 1 : 0, this.#pendingValues);
    this.#pendingValues.push(this.#transaction.commit);
    const full = ROWS_PER_STATEMENT * this.#width;
    if (this.#pendingValues.length === full) this.#flush(full);
  }

  #slotOf(key: number, ts: Micros): number {
    const { stream } = this.#table;
    if (!isParted(stream)) return key;
    const later = this.#isAboveMark(key, ts)
      ? undefined
      : this.#transaction.findValue<number>(slotBefore(stream), [key, key, ts]);
    return later ?? this.#transaction.openPart() + key;
  }

  #merge(key: number, record: Row): void {
    const table: RowTable<Row> = this.#table;
    const ts = table.ts(record);
    const before = this.#readStored(key, ts);
    if (before === undefined) {
      if (this.#source === "live") {
        if (this.#hasRestRowNear(key, ts)) {
          this.#outranked++;
          return;
        }
        this.#reopenAt(key, ts);
      }
      this.#record(key, { first: ts, last: ts });
      this.#insert(key, record);
      return;
    }
    const after: SqlValue[] = [];
    table.encode(record, this.#source === "live" ? 1 : 0, after);
    const detailsAt = after.length - 1;
    if (hasSecondNote(before[detailsAt]) && !this.#showsWholeMoment(ts))
      after[detailsAt] = noteSecondInDetails(after[detailsAt]);
    if (after.every((value, i) => value === before[i] || i === table.sourceAt)) {
      this.#unchanged++;
      if (this.#source === "rest" && before[table.sourceAt] === 1) {
        this.#record(key, { first: ts, last: ts });
        this.#transaction.statement(getRowSql(table).confirmOne).run([this.#transaction.commit, key, ts]);
      }
      return;
    }
    const settled = this.#isSettled(key, ts);
    // Streams without a `source` column come from REST only.
    const isFromRest = table.sourceAt < 0 || before[table.sourceAt] === 0;
    if (this.#source === "live" && (settled || isFromRest)) {
      this.#outranked++;
      return;
    }
    const hasSame = hasSameValues(table, before, after);
    if (!hasSame && this.#source === "live") after[detailsAt] = noteSecondInDetails(after[detailsAt]);
    this.#touched?.add(ts);
    // A bar of an unsettled day is provisional: every poll replaces it, without a revision.
    const isRevision = !hasSame && (settled || !streamTable[table.stream].isProvisional);
    keepPastRow(this.#transaction, table, { key, ts }, isRevision);
    const replace = this.#transaction.statement(getRowSql(table).replaceOne);
    replace.run([...after, this.#transaction.commit, key, ts]);
    this.#record(key, { first: ts, last: ts });
    if (hasSame) {
      this.#unchanged++;
      this.#extraChanged++;
      return;
    }
    this.#changed++;
  }

  /** The records of the first and the last moment of a page may be on two pages. */
  #showsWholeMoment(ts: Micros): boolean {
    return this.#hasWholeMoments && ts > this.#span.first && ts < this.#span.last;
  }

  #readStored(key: number, ts: Micros): readonly SqlValue[] | undefined {
    return this.#transaction
      .statement<readonly SqlValue[]>(getRowSql(this.#table).selectOne)
      .raw()
      .get([key, ts]);
  }

  #isSettled(key: number, ts: Micros): boolean {
    const { stream } = this.#table;
    const proof = hasHistory(stream)
      ? findProofAt(this.#transaction, { stream, series: key }, ts)
      : undefined;
    return proof !== undefined && proof !== "lost";
  }

  /** A live tick asks for what is settled again; the rule of pages decides about their records. */
  #reopenAt(key: number, ts: Micros): void {
    const { stream } = this.#table;
    if (!hasHistory(stream)) return;
    const ledgerKey = { stream, series: key };
    const touched = findTouching(this.#transaction, ledgerKey, { from: ts, to: ts });
    applyChanges(this.#transaction, ledgerKey, reopenAt(ts, touched));
  }

  /** Whether REST has a row so close to a live tick that both are the same tick. */
  #hasRestRowNear(key: number, ts: Micros): boolean {
    if (this.#tolerance === 0) return false;
    const { highWaterMarks } = this.#transaction;
    // Nearly every live tick is newer than all that REST has: no query, however many live ticks are near.
    if (highWaterMarks.isAboveRest(this.#table, key, ts - this.#tolerance)) return false;
    const near = [key, ts - this.#tolerance, ts + this.#tolerance];
    return this.#transaction.statement(getRowSql(this.#table).selectRestBetween).get(near) !== undefined;
  }

  #flush(length: number): void {
    const rows = length / this.#width;
    if (rows === ROWS_PER_STATEMENT) {
      this.#transaction.statement(getRowSql(this.#table).insertMany).run(...this.#pendingValues);
    } else {
      const one = this.#transaction.statement(getRowSql(this.#table).insertOne);
      for (let at = 0; at < length; at += this.#width)
        one.run(this.#pendingValues.slice(at, at + this.#width));
    }
    this.#inserted += rows;
    this.#pendingValues = [];
  }
}
