import { quoteName } from "../../model/sql-text.ts";
import { historyStreams, type RowStream, streamTable } from "../../model/streams.ts";
import { readSmallRelation } from "../../warehouse/read/forwarded-rows.ts";
import { readJournalPosition } from "../../warehouse/tables/journal.ts";
import type { SqlValue } from "../../warehouse/tables/row-tables.ts";
import { type RelationLayout, relationLayouts, upsertSql } from "../schema/tables.ts";
import { type SharedSession, TABLE_TIMEOUT_MS } from "../server/session.ts";
import type { ShareWriterOptions } from "../share-writer.ts";
import { encodeRows } from "./copy-format.ts";
import type { SharedDictionaries } from "./dictionaries.ts";

/** A log may be long: it is read in parts. */
const MAX_ROWS_PER_PART = 20_000;

interface RelationOptions extends Pick<ShareWriterOptions, "connection" | "lease" | "role"> {
  readonly dictionaries: SharedDictionaries;
}

/** Lookups, logs and the small tables that `gaps` reads. Rows that differ are replaced, in one transaction each. */
export function createRelations(options: RelationOptions): readonly SharedRelation[] {
  return relationLayouts.map((layout) =>
    layout.momentColumn ? new SharedLog(options, layout) : new SharedTable(options, layout),
  );
}

abstract class SharedRelation {
  protected readonly options: RelationOptions;
  protected readonly session: SharedSession;
  protected readonly layout: RelationLayout;
  protected readonly table: string;
  protected readonly columns: readonly string[];
  /** The columns as a list in SQL. */
  protected readonly names: string;

  constructor(options: RelationOptions, layout: RelationLayout) {
    this.options = options;
    this.session = options.lease.session;
    this.layout = layout;
    this.table = `mds.${layout.name}`;
    this.columns = layout.columns.map(({ name }) => name);
    this.names = this.columns.map(quoteName).join(", ");
  }

  /** Returns how many rows were written or deleted. */
  abstract update(): Promise<number>;

  /** Rows with the keys of PostgreSQL; undefined: a row whose key is too new. */
  protected read(options: { after?: number; limit?: number } = {}): (SqlValue[] | undefined)[] {
    const { connection } = this.options;
    const { from, momentColumn } = this.layout;
    if (!momentColumn)
      return readSmallRelation(connection, from, this.columns).map((row) => this.#translate(row));
    const { id } = readJournalPosition(connection);
    const rows = readSmallRelation(connection, from, this.columns.slice(1), options);
    return rows.map((row) => this.#translate([id, ...row]));
  }

  protected encode(rows: Iterable<SqlValue[]>): Buffer {
    return encodeRows(this.layout.columns, rows);
  }

  #translate(row: SqlValue[]): SqlValue[] | undefined {
    const { keyColumn } = this.layout;
    if (keyColumn === undefined) return row;
    const at = this.columns.indexOf(keyColumn);
    const stream = row[this.columns.indexOf("stream")] as RowStream;
    const dictionary = keyColumn === "key" ? streamTable[stream].dictionary : "series";
    const key = this.options.dictionaries.find(dictionary, Number(row[at]));
    return key === undefined ? undefined : row.with(at, key);
  }
}

/** A relation whose rows may change, so all of them are compared. */
class SharedTable extends SharedRelation {
  /** The rows as they were compared last. */
  #compared: Buffer | undefined;

  async update(): Promise<number> {
    const { session, table, columns, names } = this;
    const { lease, role } = this.options;
    const { name, primaryKey } = this.layout;
    const bytes = this.encode(this.read().filter((row) => row !== undefined));
    if (this.#compared?.equals(bytes)) return 0;
    await session.stage(table, columns, bytes);
    const isUnion = name === "targets" && role === "pair";
    if (isUnion) await session.queryTable(joinOlderTargets);
    const isSame = primaryKey.map((each) => `i."${each}" = t."${each}"`).join(" AND ");
    const gone = `FROM ${table} t WHERE NOT EXISTS (SELECT FROM pg_temp.incoming i WHERE ${isSame})${isUnion ? ` AND ${isNoTarget}` : ""}`;
    const changed = `SELECT ${names} FROM pg_temp.incoming EXCEPT SELECT ${names} FROM ${table}`;
    const [difference] = await session.queryTable<{ isAny: boolean }>(
      `SELECT EXISTS (SELECT ${gone}) OR EXISTS (${changed}) AS "isAny"`,
    );
    let count = 0;
    if (difference?.isAny) {
      const upsert = upsertSql(table, columns, primaryKey, `(${changed}) c`);
      const [written] = await lease.transaction(() =>
        session.queryTable<{ count: number }>(
          `WITH gone AS (DELETE ${gone} RETURNING 1), written AS (${upsert} RETURNING 1)
          SELECT ((SELECT count(*) FROM gone) + (SELECT count(*) FROM written))::integer AS count`,
        ),
      );
      count = written?.count ?? 0;
    }
    this.#compared = bytes;
    return count;
  }
}

/*
 * The targets of a pair. Each daemon knows them from its own start on; PostgreSQL has the union, so that `gaps` never forgets
 * an older claim. What was never fetched of a history that is no longer selected is no target any more, whoever has
 * claimed it.
 */

const endOf = (target: string) => `coalesce(${target}.to_ts, ${Number.MAX_SAFE_INTEGER})`;
const ofSeries = (one: string, other: string) =>
  `(${one}.stream, ${one}.series) = (${other}.stream, ${other}.series)`;
const declared = `SELECT d.stream FROM pg_temp.incoming d WHERE d.stream IN (${historyStreams.map((stream) => `'${stream}'`).join(", ")})`;
const selected = "SELECT d.stream, d.series FROM pg_temp.incoming d WHERE d.to_ts IS NULL";
const isDeselected = (target: string) =>
  `(${target}.stream IN (${declared}) AND (${target}.stream, ${target}.series) NOT IN (${selected}))`;

/** A target begins where an older claim began that reaches it. Of several inside one claim, the last says whether that has ended. */
const joinOlderTargets = `CREATE INDEX ON pg_temp.incoming (stream, series);
  UPDATE pg_temp.incoming i SET from_ts = least(i.from_ts, (SELECT min(t.from_ts) FROM mds.targets t
    WHERE ${ofSeries("t", "i")} AND t.from_ts < i.from_ts AND ${endOf("t")} >= i.from_ts)) WHERE NOT ${isDeselected("i")};
  DELETE FROM pg_temp.incoming i USING pg_temp.incoming o
    WHERE ${ofSeries("i", "o")} AND i.from_ts = o.from_ts AND ${endOf("i")} < ${endOf("o")}`;

/** Whether a claim in PostgreSQL that this file does not have has ended. */
const isNoTarget = `(${isDeselected("t")} OR EXISTS (SELECT FROM pg_temp.incoming i
  WHERE ${ofSeries("i", "t")} AND i.from_ts <= t.from_ts AND t.from_ts <= ${endOf("i")}))`;

/** A relation that only grows, by ascending numbers. PostgreSQL has a log of each file. */
class SharedLog extends SharedRelation {
  /** The column of the numbers. */
  readonly #number = `"${this.columns[1]}"`;
  /** The last number that PostgreSQL has; undefined: the logs are not compared yet. */
  #last: number | undefined;

  async update(): Promise<number> {
    let changed = 0;
    if (this.#last === undefined) changed += await this.#compare();
    for (;;) {
      const rows: SqlValue[][] = [];
      // The rows after one whose key is too new come with the next update.
      for (const row of this.read({ after: this.#last ?? 0, limit: MAX_ROWS_PER_PART })) {
        if (!row) break;
        rows.push(row);
      }
      const last = rows.at(-1);
      if (!last) return changed;
      const sql = `COPY ${this.table} (${this.names}) FROM STDIN (FORMAT binary)`;
      await this.options.lease.transaction(() => this.session.copyIn(sql, this.encode(rows)));
      changed += rows.length;
      this.#last = Number(last[1]);
    }
  }

  /** Deletes what this file does not have, and finds out where its own part goes on. Returns how many rows it deleted. */
  async #compare(): Promise<number> {
    const { connection, lease, role } = this.options;
    const { id } = readJournalPosition(connection);
    const isAlone = role === "alone";
    const [stored] = await this.session.queryTable<{ count: string; last: string | null; others: string }>(
      `SELECT count(*) FILTER (WHERE source = ${id}) AS count, max(${this.#number}) FILTER (WHERE source = ${id}) AS last,
        count(*) FILTER (WHERE source <> ${id}) AS others FROM ${this.table}`,
    );
    const [count, last] = [Number(stored?.count), Number(stored?.last ?? 0)];
    const others = isAlone ? Number(stored?.others) : 0;
    const isPrefix = last === 0 || (this.#hasAsMany(last, count) && (await this.#hasSame(id, last)));
    this.#last = isPrefix ? last : 0;
    const conditions = [
      ...(isPrefix ? [] : [`source = ${id}`]),
      ...(others === 0 ? [] : [`source <> ${id}`]),
    ];
    if (conditions.length > 0)
      await lease.run(`DELETE FROM ${this.table} WHERE ${conditions.join(" OR ")}`, TABLE_TIMEOUT_MS);
    if (!isAlone) this.#last = Math.max(this.#last, await this.#findLastTold(id));
    return (isPrefix ? 0 : count) + others;
  }

  /** A daemon of a pair leaves out what the other one has logged. */
  #hasAsMany(last: number, count: number): boolean {
    const { connection, role } = this.options;
    const sql = `SELECT count(*) FROM ${this.layout.from} WHERE ${this.#number} <= ?`;
    return role === "pair" || connection.value<number>(sql, [last]) === count;
  }

  /** Whether both have the same row of this number. */
  async #hasSame(source: number, last: number): Promise<boolean> {
    const [row] = this.read({ after: last - 1, limit: 1 });
    const stored = await this.session.copyOut(
      `COPY (SELECT ${this.names} FROM ${this.table} WHERE source = ${source} AND ${this.#number} = ${last}) TO STDOUT (FORMAT binary)`,
    );
    return row !== undefined && stored.equals(this.encode([row]));
  }

  /** Both daemons of a pair see the same events; each event is logged once. */
  async #findLastTold(source: number): Promise<number> {
    const { from, columns, momentColumn = "" } = this.layout;
    const isText = columns.find((each) => each.name === momentColumn)?.type === "moment";
    const newest = isText
      ? `to_char(max(${momentColumn}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
      : `max(${momentColumn})::double precision`;
    const [row] = await this.session.query<{ newest: string | number | null }>(
      `SELECT ${newest} AS newest FROM ${this.table} WHERE source <> ${source}`,
    );
    if (row === undefined || row.newest === null) return 0;
    const sql = `SELECT coalesce(max(${this.#number}), 0) FROM ${from} WHERE ${momentColumn} <= ?`;
    return this.options.connection.value<number>(sql, [row.newest]);
  }
}
