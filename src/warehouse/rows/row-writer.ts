import type { StreamRecords } from "../../model/records.ts";
import { hasHistory, type RowStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { retract } from "../coverage/ledger.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { keepRevision, saysTheSame } from "./revisions.ts";
import { countRows } from "./stream-stats.ts";

/** Many rows a statement is 1.5 to 1.8 times as fast as one. */
export const ROWS_A_STATEMENT = 50;

interface RowSql {
  /** As with `insertLean`, a failure leaves it half done. */
  readonly insertMany: string;
  readonly insertOne: string;
  /**
   * Many rows in the table's lean form; the key is the parameter `@key`. A failure leaves the statement half done, which
   * the rollback of the whole transaction makes good: SQLite need not keep copies of the pages for undoing it alone.
   */
  readonly insertLean: string | undefined;
  readonly replaceOne: string;
  /** One row by key and moment. */
  readonly stored: string;
  /** Whether any row stands from one moment to another, both included. */
  readonly occupied: string;
}

/** Written once a table: the long text of 50 rows is the key under which its prepared statement is found. */
const written = new Map<string, RowSql>();

export function rowSql<Row>({ table, keyColumn, timeColumn, columns, lean }: RowTable<Row>): RowSql {
  let sql = written.get(table);
  if (!sql) {
    const names = [keyColumn, timeColumn, ...columns];
    const row = `(${names.map(() => "?").join(", ")})`;
    const into = `INTO ${table} (${names.join(", ")}) VALUES`;
    sql = {
      insertMany: `INSERT OR FAIL ${into} ${Array(ROWS_A_STATEMENT).fill(row).join(", ")}`,
      insertLean:
        lean &&
        `INSERT OR FAIL INTO ${table} (${[keyColumn, timeColumn, ...lean.columns, "source"].join(", ")}) VALUES ${Array(
          ROWS_A_STATEMENT,
        )
          .fill(`(@key, ?, ${lean.columns.map(() => "?").join(", ")}, 0)`)
          .join(", ")}`,
      insertOne: `INSERT ${into} ${row}`,
      replaceOne: `REPLACE ${into} ${row}`,
      stored: `SELECT ${columns.join(", ")} FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} = ?`,
      occupied: `SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} BETWEEN ? AND ? LIMIT 1`,
    };
    written.set(table, sql);
  }
  return sql;
}

export type Source = "rest" | "live";

export interface Written {
  readonly inserted: number;
  /** Replaced; what stood there is in `revisions`, unless it was a bar of a day not yet settled. */
  readonly changed: number;
  readonly unchanged: number;
  /** Live rows that gave way to what REST had said about the same moment. */
  readonly outranked: number;
}

/**
 * Stores records of a stream, in any order, of any number of series. A row that says the same already is left alone;
 * one that says something else is replaced and kept in `revisions`. A live record gives way to a REST row and to
 * anything settled.
 */
export function writeRecords<S extends RowStream>(
  transaction: Transaction,
  stream: S,
  records: readonly StreamRecords[S][],
  source: Source,
): Written {
  const table: RowTable<StreamRecords[S]> = rowTables[stream];
  const writer = new RowWriter(transaction, table, source);
  for (const [key, group] of groupByKey(transaction, table, records)) {
    transaction.carry(stream, key);
    const name = table.nameOf?.(group[0] as StreamRecords[S]);
    if (name) transaction.dictionary.nameSeries(key, name);
    writer.writeSeries(key, ascending(table, group, source));
  }
  return writer.finish();
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

/** By time, each moment once: of a page's ties the first stands, of live ones the last that came. */
function ascending<Row>(table: RowTable<Row>, records: readonly Row[], source: Source): readonly Row[] {
  let falls = true;
  let rises = true;
  for (let i = 1; i < records.length; i++) {
    const step = table.ts(records[i] as Row) - table.ts(records[i - 1] as Row);
    if (step >= 0) falls = false;
    if (step <= 0) rises = false;
  }
  if (rises) return records;
  if (falls) return [...records].reverse();
  const byTs = new Map<Micros, Row>();
  for (const record of records) {
    const ts = table.ts(record);
    if (source === "live" || !byTs.has(ts)) byTs.set(ts, record);
  }
  return [...byTs.values()].sort((a, b) => table.ts(a) - table.ts(b));
}

class RowWriter<Row> {
  readonly #transaction: Transaction;
  readonly #table: RowTable<Row>;
  readonly #source: Source;
  readonly #width: number;
  #fresh: SqlValue[] = [];
  #newest: Micros | undefined;
  #inserted = 0;
  #changed = 0;
  #unchanged = 0;
  #outranked = 0;

  constructor(transaction: Transaction, table: RowTable<Row>, source: Source) {
    this.#transaction = transaction;
    this.#table = table;
    this.#source = source;
    this.#width = table.columns.length + 2;
  }

  /** `records`: of one series, ascending, each moment once. */
  writeSeries(key: number, records: readonly Row[]): void {
    const last = records.at(-1);
    if (last === undefined) return;
    const newest = this.#table.ts(last);
    if (this.#newest === undefined || newest > this.#newest) this.#newest = newest;
    if (this.#source === "live") this.#writeLive(key, records);
    else this.#writePage(key, records);
    this.#transaction.frontier.raise(this.#table.stream, key, newest);
  }

  #writeLive(key: number, records: readonly Row[]): void {
    const { stream, ts } = this.#table;
    for (const record of records) {
      const isNew = this.#transaction.frontier.isBeyond(stream, this.#table, key, ts(record));
      if (isNew) this.#append(key, record);
      else this.#compare(key, record);
    }
  }

  #writePage(key: number, records: readonly Row[]): void {
    if (this.#isVacant(key, records)) {
      this.#fill(key, records);
      return;
    }
    for (let i = 0; i < records.length; i += ROWS_A_STATEMENT) {
      const chunk = records.slice(i, i + ROWS_A_STATEMENT);
      const isVacant = this.#isVacant(key, chunk);
      for (const record of chunk) {
        if (isVacant) this.#append(key, record);
        else this.#compare(key, record);
      }
    }
  }

  finish(): Written {
    this.#flush(this.#fresh.length);
    countRows(this.#transaction, this.#table.stream, this.#inserted, this.#newest);
    return {
      inserted: this.#inserted,
      changed: this.#changed,
      unchanged: this.#unchanged,
      outranked: this.#outranked,
    };
  }

  /** True when nothing is stored from the first to the last of them: the ordinary case of a first backfill. */
  #isVacant(key: number, records: readonly Row[]): boolean {
    const { storedTime, ts } = this.#table;
    const first = storedTime(ts(records[0] as Row));
    const last = storedTime(ts(records.at(-1) as Row));
    return this.#transaction.statement(rowSql(this.#table).occupied).get([key, first, last]) === undefined;
  }

  /** The rows of a vacant range: remembered, so that the search for rows that the page lacks need not count them. */
  #fill(key: number, records: readonly Row[]): void {
    const { stream, ts, lean } = this.#table;
    const from = ts(records[0] as Row);
    this.#transaction.noteFilled(stream, key, {
      from,
      to: ts(records.at(-1) as Row) + 1,
      rows: records.length,
    });
    const sql = rowSql(this.#table).insertLean;
    if (lean === undefined || sql === undefined) {
      for (const record of records) this.#append(key, record);
      return;
    }
    const statement = this.#transaction.statement(sql);
    const bound = { key };
    const left: Row[] = [];
    const values: SqlValue[] = [];
    let chunk: Row[] = [];
    for (const record of records) {
      if (!lean.encode(record, values, chunk.length)) left.push(record);
      else if (chunk.push(record) === ROWS_A_STATEMENT) {
        statement.run(values, bound);
        this.#inserted += ROWS_A_STATEMENT;
        chunk = [];
      }
    }
    for (const record of left) this.#append(key, record);
    for (const record of chunk) this.#append(key, record);
  }

  #append(key: number, record: Row): void {
    const { storedTime, ts, encode } = this.#table;
    this.#fresh.push(key, storedTime(ts(record)));
    encode(record, this.#source === "live" ? 1 : 0, this.#fresh);
    const full = ROWS_A_STATEMENT * this.#width;
    if (this.#fresh.length === full) this.#flush(full);
  }

  #compare(key: number, record: Row): void {
    const table: RowTable<Row> = this.#table;
    const ts = table.ts(record);
    const before = this.#stored(key, ts);
    if (before === undefined) {
      if (this.#source === "live") this.#reopenIfSettled(key, ts);
      this.#append(key, record);
      return;
    }
    const after: SqlValue[] = [];
    table.encode(record, this.#source === "live" ? 1 : 0, after);
    if (after.every((value, i) => value === before[i] || i === table.sourceAt)) {
      this.#unchanged++;
      return;
    }
    const settled = this.#isSettled(key, ts);
    // What only REST tells of has no source of its own.
    const isFromRest = table.sourceAt < 0 || before[table.sourceAt] === 0;
    if (this.#source === "live" && (settled || isFromRest)) {
      this.#outranked++;
      return;
    }
    // A bar of a day that is not settled yet is provisional by nature: every poll replaces it.
    const isNews = settled || !streamTable[table.stream].isProvisional;
    if (isNews && !saysTheSame(table, before, after))
      keepRevision(this.#transaction, table, { key, ts, before, after });
    this.#transaction.statement(rowSql(table).replaceOne).run([key, table.storedTime(ts), ...after]);
    this.#changed++;
  }

  #stored(key: number, ts: Micros): readonly SqlValue[] | undefined {
    return this.#transaction
      .statement(rowSql(this.#table).stored)
      .raw()
      .get([key, this.#table.storedTime(ts)]) as SqlValue[] | undefined;
  }

  #isSettled(key: number, ts: Micros): boolean {
    const { stream } = this.#table;
    if (!hasHistory(stream)) return false;
    const sql = `SELECT to_ts > ? AND proof <> 'lost' FROM settled_ranges
      WHERE stream = ? AND series = ? AND from_ts <= ? ORDER BY from_ts DESC LIMIT 1`;
    return this.#transaction.statement(sql).pluck().get([ts, stream, key, ts]) === 1;
  }

  /** A live tick where REST had proven that there is none: one of them is wrong, so REST is asked about it again. */
  #reopenIfSettled(key: number, ts: Micros): void {
    if (!this.#isSettled(key, ts)) return;
    retract(this.#transaction, { stream: this.#table.stream, series: key }, { from: ts, to: ts + 1 });
  }

  #flush(length: number): void {
    const rows = length / this.#width;
    if (rows === ROWS_A_STATEMENT) {
      this.#transaction.statement(rowSql(this.#table).insertMany).run(this.#fresh);
    } else {
      const one = this.#transaction.statement(rowSql(this.#table).insertOne);
      for (let at = 0; at < length; at += this.#width) one.run(this.#fresh.slice(at, at + this.#width));
    }
    this.#inserted += rows;
    this.#fresh = [];
  }
}
