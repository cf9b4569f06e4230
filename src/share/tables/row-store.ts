import { type RowStream, streamTable } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SettledRange } from "../../rule/answer.ts";
import { type ForwardedRow, forwardedColumns } from "../../warehouse/read/forwarded-rows.ts";
import { rowTables } from "../../warehouse/tables/row-tables.ts";
import { spliceLedger } from "../ledger-difference.ts";
import { LEDGER_TABLE, partitionOf, rowLayouts } from "../schema/tables.ts";
import type { SharedSession } from "../server/session.ts";
import { CopyWriter } from "./copy-format.ts";
import type { SharedDictionaries } from "./dictionaries.ts";

/** Rows from outside of these years are in a partition of their own. */
const MIN_PARTITION_YEAR = 2009;
const MAX_PARTITION_YEAR = 2099;

/** A month of a partitioned table, in microseconds. */
interface Month extends TimeRange {
  readonly name: string;
}

/** Rows and ledger in PostgreSQL: what it has, and the statements that change it. */
export class SharedRows {
  readonly #session: SharedSession;
  readonly #dictionaries: SharedDictionaries;
  /** By stream and key of the SQLite file: the newest row there. */
  readonly #newest = new Map<RowStream, Map<number, Micros>>();
  /** By stream and series of the SQLite file. */
  readonly #ledgers = new Map<RowStream, Map<number, SettledRange[]>>();
  readonly #partitions = new Set<string>();

  constructor(session: SharedSession, dictionaries: SharedDictionaries) {
    this.#session = session;
    this.#dictionaries = dictionaries;
  }

  /** Reads the ledger, the newest row of each key, and the partitions. The dictionaries must be loaded. */
  async load(): Promise<void> {
    await this.loadLedger();
    for (const stream of Object.keys(rowLayouts) as RowStream[]) await this.#loadNewest(stream);
    const partitions = await this.#session.query<{ name: string }>(
      "SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE c.relnamespace = 'mds'::regnamespace",
    );
    for (const { name } of partitions) this.#partitions.add(name);
  }

  /** The dictionaries must be loaded. */
  async loadLedger(): Promise<void> {
    this.#ledgers.clear();
    const locals = this.#dictionaries.invert("series");
    const ranges = await this.#session.query<{
      stream: RowStream;
      series: number;
      proof: SettledRange["proof"];
      reason: string | null;
      from: number;
      to: number;
    }>(
      `SELECT stream, series, from_ts::double precision AS "from", to_ts::double precision AS "to", proof, reason
      FROM mds.${LEDGER_TABLE} ORDER BY stream, series, from_ts`,
    );
    for (const { stream, series, ...range } of ranges) {
      const local = locals.get(series);
      if (local === undefined) continue;
      const known = this.#ledgerOf(stream).get(local);
      if (known) known.push(range);
      else this.#ledgerOf(stream).set(local, [range]);
    }
  }

  async #loadNewest(stream: RowStream): Promise<void> {
    const { table, key, time } = rowLayouts[stream];
    const { dictionary } = streamTable[stream];
    const locals = this.#dictionaries.invert(dictionary);
    const ts =
      time === "day"
        ? `(max(r.day) - date '1970-01-01')::double precision * ${MICROS_PER_DAY}`
        : "max(r.ts)::double precision";
    const rows = await this.#session.query<{ key: number; ts: number | null }>(
      `SELECT d.${key} AS key, (SELECT ${ts} FROM mds.${table} r WHERE r.${key} = d.${key}) AS ts FROM mds.${dictionary} d`,
    );
    const newest = new Map<number, Micros>();
    for (const row of rows) {
      const local = locals.get(row.key);
      if (local !== undefined && row.ts !== null) newest.set(local, row.ts);
    }
    this.#newest.set(stream, newest);
  }

  /** The timestamp of the newest row there; -Infinity if it has none. */
  newestOf(stream: RowStream, key: number): Micros {
    return this.#newest.get(stream)?.get(key) ?? Number.NEGATIVE_INFINITY;
  }

  ledgerFor(stream: RowStream, series: number): readonly SettledRange[] {
    return this.#ledgerOf(stream).get(series) ?? [];
  }

  get hasLedger(): boolean {
    return [...this.#ledgers.values()].some((keys) => keys.size > 0);
  }

  #ledgerOf(stream: RowStream): Map<number, SettledRange[]> {
    let keys = this.#ledgers.get(stream);
    if (!keys) {
      keys = new Map();
      this.#ledgers.set(stream, keys);
    }
    return keys;
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

  /** Creates the partitions of the rows' months. Readers are not blocked: the table is complete when it is attached. */
  async createPartitions(stream: RowStream, rows: readonly ForwardedRow[]): Promise<void> {
    const { table, isPartitioned } = rowLayouts[stream];
    if (!isPartitioned) return;
    for (const month of findMonths(rows)) {
      const name = partitionOf(table, month.name);
      if (this.#partitions.has(name)) continue;
      await this.#session.transaction(async () => {
        await this.#session.query(`SELECT pg_advisory_xact_lock(hashtext('mds.${table}'))`);
        const [found] = await this.#session.query<{ found: boolean }>(
          `SELECT to_regclass('mds.${name}') IS NOT NULL AS found`,
        );
        if (found?.found) return;
        await this.#session.query(
          `CREATE TABLE mds.${name} (LIKE mds.${table} INCLUDING ALL, CHECK (ts >= ${month.from} AND ts < ${month.to}));
          ALTER TABLE mds.${table} ATTACH PARTITION mds.${name} FOR VALUES FROM (${month.from}) TO (${month.to})`,
        );
      });
      this.#partitions.add(name);
    }
  }

  /** SQL that selects the rows of a key in a range. */
  condition(stream: RowStream, key: number, { from, to }: TimeRange): string {
    const { key: keyColumn, time } = rowLayouts[stream];
    const { dictionary } = streamTable[stream];
    const { storedTime } = rowTables[stream];
    const bound = (ts: Micros) => (time === "day" ? `'${storedTime(ts)}'` : clampBigint(ts));
    return `${keyColumn} = ${this.#dictionaries.keyOf(dictionary, key)} AND ${time} >= ${bound(from)} AND ${time} < ${bound(to)}`;
  }

  deleteSql(stream: RowStream, key: number, range: TimeRange): string {
    return `DELETE FROM mds.${rowLayouts[stream].table} WHERE ${this.condition(stream, key, range)}`;
  }

  /** Inside a transaction: copies rows that PostgreSQL does not have. */
  async copyRows(stream: RowStream, bytes: Buffer): Promise<void> {
    const { table, columns } = rowLayouts[stream];
    const names = columns.map(({ name }) => name).join(", ");
    await this.#session.copyIn(`COPY mds.${table} (${names}) FROM STDIN (FORMAT binary)`, bytes);
  }

  /** Inside a transaction: copies rows, some of which PostgreSQL may have. */
  async mergeRows(stream: RowStream, bytes: Buffer): Promise<void> {
    const { table, columns, key, time } = rowLayouts[stream];
    const names = columns.map(({ name }) => name);
    const set = names
      .filter((name) => name !== key && name !== time)
      .map((name) => `${name} = excluded.${name}`);
    await this.#session.query(
      `CREATE TEMP TABLE incoming ON COMMIT DROP AS SELECT ${names.join(", ")} FROM mds.${table} LIMIT 0`,
    );
    await this.#session.copyIn(
      `COPY pg_temp.incoming (${names.join(", ")}) FROM STDIN (FORMAT binary)`,
      bytes,
    );
    await this.#session.query(
      `INSERT INTO mds.${table} (${names.join(", ")}) SELECT ${names.join(", ")} FROM pg_temp.incoming
      ON CONFLICT (${key}, ${time}) DO UPDATE SET ${set.join(", ")}; DROP TABLE pg_temp.incoming`,
    );
  }

  /** The rows of a key in a range as a binary COPY, in order of time. */
  async readRows(stream: RowStream, key: number, range: TimeRange): Promise<Buffer> {
    const { table, columns, time } = rowLayouts[stream];
    const names = columns.map(({ name }) => name).join(", ");
    return this.#session.copyOut(
      `COPY (SELECT ${names} FROM mds.${table} WHERE ${this.condition(stream, key, range)} ORDER BY ${time}) TO STDOUT (FORMAT binary)`,
    );
  }

  /**
   * The SQL that replaces the ledger of a key inside `range`, and a function to call after the commit. The proof is the
   * last statement of a transaction, after its rows.
   */
  replaceLedger(
    stream: RowStream,
    series: number,
    range: TimeRange,
    content: readonly SettledRange[],
  ): { readonly sql: string; readonly apply: () => void } {
    const shared = this.#dictionaries.keyOf("series", series);
    const { removed, added, result } = spliceLedger(this.ledgerFor(stream, series), range, content);
    const values = added.map(
      ({ from, to, proof, reason }) =>
        `('${stream}', ${shared}, ${from}, ${to}, '${proof}', ${this.#session.literal(reason)})`,
    );
    const statements = [
      ...(removed.length === 0
        ? []
        : [
            `DELETE FROM mds.${LEDGER_TABLE} WHERE stream = '${stream}' AND series = ${shared} AND from_ts IN (${removed.join(", ")})`,
          ]),
      ...(values.length === 0
        ? []
        : [
            `INSERT INTO mds.${LEDGER_TABLE} (stream, series, from_ts, to_ts, proof, reason) VALUES ${values.join(", ")}`,
          ]),
    ];
    return { sql: statements.join("; "), apply: () => void this.#ledgerOf(stream).set(series, result) };
  }

  /** Call it after the rows are committed. */
  raiseNewest(stream: RowStream, rows: readonly ForwardedRow[]): void {
    const { tsOfStored } = rowTables[stream];
    const newest = this.#newest.get(stream) ?? new Map<number, Micros>();
    for (const [key, time] of rows) {
      const ts = tsOfStored(time);
      if (ts > (newest.get(key) ?? Number.NEGATIVE_INFINITY)) newest.set(key, ts);
    }
    this.#newest.set(stream, newest);
  }
}

function findMonths(rows: readonly ForwardedRow[]): Month[] {
  const months = new Map<string, Month>();
  let last: Month | undefined;
  for (const [, time] of rows) {
    const ts = Number(time);
    if (last && last.from <= ts && ts < last.to) continue;
    const date = new Date(ts / 1000);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    if (!(year >= MIN_PARTITION_YEAR && year <= MAX_PARTITION_YEAR)) continue;
    const name = `${String(year).padStart(4, "0")}-${String(month + 1).padStart(2, "0")}`;
    last = { name, from: Date.UTC(year, month, 1) * 1000, to: Date.UTC(year, month + 1, 1) * 1000 };
    months.set(name, last);
  }
  return [...months.values()];
}

/** Ranges may be open-ended: PostgreSQL needs a number. */
function clampBigint(ts: Micros): string {
  return String(Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, ts)));
}
