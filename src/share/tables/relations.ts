import { quoteName } from "../../model/sql-text.ts";
import { historyStreams, type RowStream, streamTable } from "../../model/streams.ts";
import { readSmallRelation } from "../../warehouse/read/forwarded-rows.ts";
import { readJournalPosition } from "../../warehouse/tables/journal.ts";
import type { SqlValue } from "../../warehouse/tables/row-tables.ts";
import { type RelationLayout, relationLayouts, upsertSql } from "../schema/tables.ts";
import { TABLE_TIMEOUT_MS } from "../server/session.ts";
import type { ShareWriterOptions } from "../share-writer.ts";
import { encodeRows } from "./copy-format.ts";
import type { SharedDictionaries } from "./dictionaries.ts";

/** A log may be long: it is read in parts. */
const MAX_ROWS_PER_PART = 20_000;

interface RelationOptions extends Pick<ShareWriterOptions, "connection" | "lease" | "role"> {
  readonly dictionaries: SharedDictionaries;
}

/** Brings one relation up to date. Returns how many rows were written or deleted. */
type UpdateRelation = () => Promise<number>;

/** Lookups, logs and the small tables that `gaps` reads. Rows that differ are replaced, in one transaction each. */
export function createRelations(options: RelationOptions): readonly UpdateRelation[] {
  return relationLayouts.map((layout) =>
    layout.momentColumn ? followLog(options, layout) : compareTable(options, layout),
  );
}

/** A relation in PostgreSQL, and its rows in the SQLite file. */
function openRelation({ connection, lease, dictionaries }: RelationOptions, layout: RelationLayout) {
  const { name, from, keyColumn, momentColumn } = layout;
  const columns = layout.columns.map((column) => column.name);
  const toSharedKey = (row: SqlValue[]): SqlValue[] | undefined => {
    if (keyColumn === undefined) return row;
    const at = columns.indexOf(keyColumn);
    const stream = row[columns.indexOf("stream")] as RowStream;
    const dictionary = keyColumn === "key" ? streamTable[stream].dictionary : "series";
    const key = dictionaries.find(dictionary, Number(row[at]));
    return key === undefined ? undefined : row.with(at, key);
  };
  return {
    session: lease.session,
    table: `mds.${name}`,
    columns,
    /** The columns as a list in SQL. */
    names: columns.map(quoteName).join(", "),
    encode: (rows: Iterable<SqlValue[]>) => encodeRows(layout.columns, rows),
    /** Rows with the keys of PostgreSQL; undefined: a row whose key is too new. */
    read(part: { after?: number; limit?: number } = {}): (SqlValue[] | undefined)[] {
      if (!momentColumn) return readSmallRelation(connection, from, columns).map(toSharedKey);
      const { id } = readJournalPosition(connection);
      const rows = readSmallRelation(connection, from, columns.slice(1), part);
      return rows.map((row) => toSharedKey([id, ...row]));
    },
  };
}

/** A relation whose rows may change, so all of them are compared. */
function compareTable(options: RelationOptions, layout: RelationLayout): UpdateRelation {
  const { lease, role } = options;
  const { name, primaryKey } = layout;
  const { session, table, columns, names, encode, read } = openRelation(options, layout);
  /** The rows as they were compared last. */
  let compared: Buffer | undefined;
  return async () => {
    const bytes = encode(read().filter((row) => row !== undefined));
    if (compared?.equals(bytes)) return 0;
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
    compared = bytes;
    return count;
  };
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
function followLog(options: RelationOptions, layout: RelationLayout): UpdateRelation {
  const { connection, lease, role } = options;
  const { session, table, columns, names, encode, read } = openRelation(options, layout);
  const { from, momentColumn = "" } = layout;
  /** The column of the numbers. */
  const number = `"${columns[1]}"`;
  /** The last number that PostgreSQL has; undefined: the logs are not compared yet. */
  let last: number | undefined;

  async function update(): Promise<number> {
    let changed = 0;
    if (last === undefined) changed += await compare();
    for (;;) {
      const rows: SqlValue[][] = [];
      // The rows after one whose key is too new come with the next update.
      for (const row of read({ after: last ?? 0, limit: MAX_ROWS_PER_PART })) {
        if (!row) break;
        rows.push(row);
      }
      const newest = rows.at(-1);
      if (!newest) return changed;
      const sql = `COPY ${table} (${names}) FROM STDIN (FORMAT binary)`;
      await lease.transaction(() => session.copyIn(sql, encode(rows)));
      changed += rows.length;
      last = Number(newest[1]);
    }
  }

  /** Deletes what this file does not have, and finds out where its own part goes on. Returns how many rows it deleted. */
  async function compare(): Promise<number> {
    const { id } = readJournalPosition(connection);
    const isAlone = role === "alone";
    const [stored] = await session.queryTable<{ count: string; newest: string | null; others: string }>(
      `SELECT count(*) FILTER (WHERE source = ${id}) AS count, max(${number}) FILTER (WHERE source = ${id}) AS newest,
        count(*) FILTER (WHERE source <> ${id}) AS others FROM ${table}`,
    );
    const [count, newest] = [Number(stored?.count), Number(stored?.newest ?? 0)];
    const others = isAlone ? Number(stored?.others) : 0;
    const isPrefix = newest === 0 || (hasAsMany(newest, count) && (await hasSame(id, newest)));
    const conditions = [
      ...(isPrefix ? [] : [`source = ${id}`]),
      ...(others === 0 ? [] : [`source <> ${id}`]),
    ];
    last = isPrefix ? newest : 0;
    if (conditions.length > 0)
      await lease.run(`DELETE FROM ${table} WHERE ${conditions.join(" OR ")}`, TABLE_TIMEOUT_MS);
    if (!isAlone) last = Math.max(last, await findLastTold(id));
    return (isPrefix ? 0 : count) + others;
  }

  /** A daemon of a pair leaves out what the other one has logged. */
  function hasAsMany(newest: number, count: number): boolean {
    const sql = `SELECT count(*) FROM ${from} WHERE ${number} <= ?`;
    return role === "pair" || connection.value<number>(sql, [newest]) === count;
  }

  /** Whether both have the same row of this number. */
  async function hasSame(source: number, newest: number): Promise<boolean> {
    const [row] = read({ after: newest - 1, limit: 1 });
    const stored = await session.copyOut(
      `COPY (SELECT ${names} FROM ${table} WHERE source = ${source} AND ${number} = ${newest}) TO STDOUT (FORMAT binary)`,
    );
    return row !== undefined && stored.equals(encode([row]));
  }

  /** Both daemons of a pair see the same events; each event is logged once. */
  async function findLastTold(source: number): Promise<number> {
    const isText = layout.columns.find(({ name }) => name === momentColumn)?.type === "moment";
    const moment = isText
      ? `to_char(max(${momentColumn}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
      : `max(${momentColumn})::double precision`;
    const [row] = await session.query<{ newest: string | number | null }>(
      `SELECT ${moment} AS newest FROM ${table} WHERE source <> ${source}`,
    );
    if (row === undefined || row.newest === null) return 0;
    const sql = `SELECT coalesce(max(${number}), 0) FROM ${from} WHERE ${momentColumn} <= ?`;
    return connection.value<number>(sql, [row.newest]);
  }

  return update;
}
