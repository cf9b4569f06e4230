import { type Dictionary, keyColumns, type RowStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { subtract, type TimeRange } from "../../model/time-range.ts";
import type { SettledRange } from "../../rule/answer.ts";
import { type ForwardedRow, forwardedColumns } from "../../warehouse/read/forwarded-rows.ts";
import { cut, spliceLedger } from "../ledger-difference.ts";
import { LEDGER_TABLE, rowLayouts, upsertSql } from "../schema/tables.ts";
import type { Lease } from "../server/lease.ts";
import type { SharedSession } from "../server/session.ts";
import { CopyWriter } from "./copy-format.ts";
import type { SharedDictionaries } from "./dictionaries.ts";
import { KeptBars, markStaleSql } from "./kept-bars.ts";
import { SharedMonths } from "./months.ts";

const ledgerKey = (stream: RowStream, series: number) => `${stream} ${series}`;

/** A commit with more keys notifies listeners once, without names. */
const MAX_KEYS_TOLD = 20;
/** The name of a key, for people. */
const labels: Readonly<Record<Dictionary, string>> = {
  series: "d.name",
  listings: "d.exchange || ' ' || d.pair",
  contracts: "d.id",
};

/** A range of a key that a transaction changes. */
export interface CommittedRange extends TimeRange {
  readonly key: number;
}

/** Rows and ledger in PostgreSQL: what it has, and the statements that change it. */
export class SharedRows {
  readonly #session: SharedSession;
  readonly #dictionaries: SharedDictionaries;
  /** By stream and key of the SQLite file: the newest row there. */
  readonly #newest = new Map<RowStream, Map<number, Micros>>();
  /** By stream and series of the SQLite file. */
  #ledgers = new Map<string, readonly SettledRange[]>();
  readonly months: SharedMonths;
  readonly bars: KeptBars;

  constructor(lease: Lease, dictionaries: SharedDictionaries) {
    this.#session = lease.session;
    this.#dictionaries = dictionaries;
    this.months = new SharedMonths(lease);
    this.bars = new KeptBars(lease, dictionaries);
  }

  /** Reads the ledger and the newest row of each key. The dictionaries must be loaded. */
  async load(): Promise<void> {
    await this.loadLedger();
    for (const stream of Object.keys(rowLayouts) as RowStream[]) await this.#loadNewest(stream);
  }

  /** The dictionaries must be loaded. */
  async loadLedger(): Promise<void> {
    const locals = this.#dictionaries.invert("series");
    const ranges = await this.#session.queryTable<SettledRange & { stream: RowStream; series: number }>(
      `SELECT stream, series, from_ts::double precision AS "from", to_ts::double precision AS "to", proof, reason
      FROM mds.${LEDGER_TABLE} ORDER BY stream, series, from_ts`,
    );
    const ofThisFile = ranges.filter(({ series }) => locals.has(series));
    this.#ledgers = Map.groupBy(ofThisFile, ({ stream, series }) =>
      ledgerKey(stream, locals.get(series) ?? series),
    );
  }

  async #loadNewest(stream: RowStream): Promise<void> {
    const { table, key } = rowLayouts[stream];
    const { dictionary } = streamTable[stream];
    const locals = this.#dictionaries.invert(dictionary);
    const rows = await this.#session.queryTable<{ key: number; ts: number | null }>(
      `SELECT d.${key} AS key, (SELECT max(r.ts)::double precision FROM mds.${table} r WHERE r.${key} = d.${key}) AS ts FROM mds.${dictionary} d`,
    );
    const newest = rows.flatMap(({ key: shared, ts }): [number, Micros][] => {
      const local = locals.get(shared);
      return local === undefined || ts === null ? [] : [[local, ts]];
    });
    this.#newest.set(stream, new Map(newest));
  }

  /** The timestamp of the newest row there; the smallest number if it has none. */
  newestOf(stream: RowStream, key: number): Micros {
    return this.#newest.get(stream)?.get(key) ?? Number.MIN_SAFE_INTEGER;
  }

  ledgerFor(stream: RowStream, series: number): readonly SettledRange[] {
    return this.#ledgers.get(ledgerKey(stream, series)) ?? [];
  }

  get hasLedger(): boolean {
    return this.#ledgers.size > 0;
  }

  /** The bytes of a COPY of the rows, with the keys of PostgreSQL. */
  encode(stream: RowStream, rows: readonly ForwardedRow[]): Buffer {
    const { columns, key } = rowLayouts[stream];
    const names = forwardedColumns(stream);
    const positions = columns.map(({ name }) => names.indexOf(name));
    const keyAt = columns.findIndex(({ name }) => name === key);
    const { dictionary } = streamTable[stream];
    const copy = new CopyWriter(columns);
    for (const row of rows) {
      const shared = this.#dictionaries.keyOf(dictionary, row[0]);
      copy.add((i) => (i === keyAt ? shared : (row[positions[i] as number] ?? null)));
    }
    return copy.finish();
  }

  /** SQL that selects the rows of a key in a range. */
  condition(stream: RowStream, key: number, { from, to }: TimeRange): string {
    const { dictionary } = streamTable[stream];
    return `${keyColumns[dictionary]} = ${this.#dictionaries.keyOf(dictionary, key)} AND ts >= ${from} AND ts < ${to}`;
  }

  /** Deletes the rows of a range, and marks their kept bars. */
  deleteSql(stream: RowStream, key: number, range: TimeRange): string[] {
    const rows = `DELETE FROM mds.${rowLayouts[stream].table} WHERE ${this.condition(stream, key, range)}`;
    if (stream !== "index_ticks") return [rows];
    return [rows, markStaleSql(this.#dictionaries.keyOf("series", key), range)];
  }

  /** Inside a transaction: copies rows that PostgreSQL does not have. */
  async copyRows(stream: RowStream, bytes: Buffer): Promise<void> {
    const { table, columns } = rowLayouts[stream];
    const names = columns.map(({ name }) => name).join(", ");
    await this.#session.copyIn(`COPY mds.${table} (${names}) FROM STDIN (FORMAT binary)`, bytes);
  }

  /** Inside a transaction: copies rows, some of which PostgreSQL may have. */
  async mergeRows(stream: RowStream, bytes: Buffer): Promise<void> {
    const { table, columns, key } = rowLayouts[stream];
    const names = columns.map(({ name }) => name);
    await this.#session.stage(`mds.${table}`, names, bytes);
    await this.#session.query(upsertSql(`mds.${table}`, names, [key, "ts"], "pg_temp.incoming"));
  }

  /** The rows of a key in a range as a binary COPY, in order of time. */
  async readRows(stream: RowStream, key: number, range: TimeRange): Promise<Buffer> {
    const { table, columns } = rowLayouts[stream];
    const names = columns.map(({ name }) => name).join(", ");
    return this.#session.copyOut(
      `COPY (SELECT ${names} FROM mds.${table} WHERE ${this.condition(stream, key, range)} ORDER BY ts) TO STDOUT (FORMAT binary)`,
    );
  }

  /**
   * The SQL that replaces the ledger of a key inside `range`, but not in months that are detached: at most one text. The next call
   * builds on it. The proof is the last statement of a transaction, after its rows.
   */
  replaceLedger(
    stream: RowStream,
    series: number,
    range: TimeRange,
    content: readonly SettledRange[],
  ): string[] {
    const shared = this.#dictionaries.keyOf("series", series);
    const known = this.ledgerFor(stream, series);
    const elsewhere = this.months.detachedOf(stream);
    const stays = [...cut(content, subtract([range], elsewhere)), ...cut(known, elsewhere)];
    const { removed, added, result } = spliceLedger(known, range, elsewhere.length === 0 ? content : stays);
    this.#ledgers.set(ledgerKey(stream, series), result);
    const values = added.map(
      ({ from, to, proof, reason }) =>
        `('${stream}', ${shared}, ${from}, ${to}, '${proof}', ${this.#session.literal(reason)})`,
    );
    const statements: string[] = [];
    if (removed.length > 0)
      statements.push(
        `DELETE FROM mds.${LEDGER_TABLE} WHERE stream = '${stream}' AND series = ${shared} AND from_ts IN (${removed.join(", ")})`,
      );
    if (values.length > 0)
      statements.push(
        `INSERT INTO mds.${LEDGER_TABLE} (stream, series, from_ts, to_ts, proof, reason) VALUES ${values.join(", ")}`,
      );
    return statements.length === 0 ? [] : [statements.join("; ")];
  }

  /** Inside a transaction: its commit notifies the listeners of `mds_commits` of these ranges. */
  notifySql(stream: RowStream, ranges: readonly CommittedRange[]): string[] {
    if (ranges.length === 0) return [];
    const { dictionary } = streamTable[stream];
    const column = keyColumns[dictionary];
    const notify = (name: string, from: string, to: string) =>
      `SELECT pg_notify('mds_commits', json_build_object('stream', '${stream}', 'name', ${name}, 'from_ts', ${from}, 'to_ts', ${to})::text)`;
    if (new Set(ranges.map(({ key }) => key)).size > MAX_KEYS_TOLD) {
      const [from, to] = [ranges.map((range) => range.from), ranges.map((range) => range.to)];
      return [notify("NULL", String(Math.min(...from)), String(Math.max(...to)))];
    }
    const values = ranges.map(
      ({ key, from, to }) => `(${this.#dictionaries.keyOf(dictionary, key)}, ${from}, ${to})`,
    );
    return [
      `${notify(labels[dictionary], "x.from_ts", "x.to_ts")} FROM (VALUES ${values.join(", ")}) x(key, from_ts, to_ts) JOIN mds.${dictionary} d ON d.${column} = x.key`,
    ];
  }

  /** Call it after the rows are committed. */
  raiseNewest(stream: RowStream, rows: readonly ForwardedRow[]): void {
    const newest = this.#newest.get(stream) ?? new Map<number, Micros>();
    for (const [key, ts] of rows) if (ts > (newest.get(key) ?? Number.NEGATIVE_INFINITY)) newest.set(key, ts);
    this.#newest.set(stream, newest);
  }
}
