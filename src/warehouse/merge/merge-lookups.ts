import {
  type Dictionary,
  keyColumns,
  type RowStream,
  rowStreams,
  type Stream,
  streamTable,
} from "../../model/streams.ts";
import { lookupTables, refreshNames } from "../lookups/lookup-writer.ts";
import { addRowCount } from "../rows/stream-stats.ts";
import type { SqlRunner } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import { identityColumns } from "./merge-tables.ts";

type LookupTable = (typeof lookupTables)[number];

const countSql = ({ table }: LookupTable, side: "main" | "other") =>
  `SELECT count(*) FROM ${side}.${table} ${table === "contracts" ? "WHERE is_described = 1" : ""}`;

/** How many entries of the other warehouse each lookup lacks. */
export function countNewEntries(reader: SqlRunner): Map<Stream, number> {
  const counts = new Map<Stream, number>();
  for (const { table, keys, stream } of lookupTables) {
    if (!stream) continue;
    const isDescribed = (side: string) => (table === "contracts" ? `AND ${side}.is_described = 1` : "");
    const sameKey = keys.map((key) => `m.${key} = o.${key}`).join(" AND ");
    const sql = `SELECT count(*) FROM other.${table} o WHERE true ${isDescribed("o")}
      AND NOT EXISTS (SELECT 1 FROM main.${table} m WHERE ${sameKey} ${isDescribed("m")})`;
    counts.set(stream, reader.value<number>(sql));
  }
  return counts;
}

/** Adds the lookups, the dictionaries and the identity of the other warehouse. An entry that both have stays ours. */
export function mergeLookups(transaction: Transaction): void {
  for (const lookup of lookupTables) {
    const before = transaction.value<number>(countSql(lookup, "main"));
    mergeLookup(transaction, lookup);
    const added = transaction.value<number>(countSql(lookup, "main")) - before;
    if (lookup.stream) addRowCount(transaction, lookup.stream, added);
  }
  for (const [dictionary, names] of [
    ["series", "name"],
    ["listings", "exchange, pair"],
  ] as const) {
    const columns = [...identityColumns[dictionary], names].join(", ");
    transaction.run(
      `INSERT INTO main.${dictionary} (${columns}) SELECT ${columns} FROM other.${dictionary} WHERE true ON CONFLICT DO NOTHING`,
    );
  }
  // No lookup names LX indices: the id is their name until a record gives one.
  transaction.run(`UPDATE main.series SET name = o.name FROM other.series o WHERE o.index_type = series.index_type
        AND o.index_id = series.index_id AND series.name = series.index_id AND o.name <> series.name`);
  refreshNames(transaction);
  transaction.run(
    "INSERT INTO main.service_ids SELECT stream, id FROM other.service_ids WHERE true ON CONFLICT DO NOTHING",
  );
  transaction.run(`UPDATE main.warehouse_state SET service_url = (SELECT service_url FROM other.warehouse_state)
        WHERE service_url IS NULL AND (SELECT service_url FROM other.warehouse_state) IS NOT NULL`);
}

function mergeLookup(transaction: Transaction, { table, keys }: LookupTable): void {
  const columns = transaction.values<string>(
    "SELECT name FROM pragma_table_info(?) WHERE NOT (name = 'contract' AND pk = 1)",
    [table],
  );
  const list = columns.join(", ");
  transaction.run(
    `INSERT INTO main.${table} (${list}) SELECT ${list} FROM other.${table} WHERE true ON CONFLICT DO NOTHING`,
  );
  const sameKey = keys.map((key) => `o.${key} = ${table}.${key}`).join(" AND ");
  transaction.run(
    `UPDATE main.${table} SET first_seen = o.first_seen FROM other.${table} o WHERE ${sameKey} AND o.first_seen < ${table}.first_seen`,
  );
  if (table !== "contracts") return;
  for (const column of ["exchange_id", "market_id"])
    transaction.run(`UPDATE main.contracts SET ${column} = o.${column} FROM other.contracts o
          WHERE ${sameKey} AND contracts.${column} IS NULL AND o.${column} IS NOT NULL`);
  // A tick alone made a stub here, and the other warehouse has the description.
  const described = columns.filter((column) => !keys.includes(column) && column !== "first_seen");
  transaction.run(`UPDATE main.contracts SET ${described.map((column) => `${column} = o.${column}`).join(", ")} FROM other.contracts o
        WHERE ${sameKey} AND contracts.is_described = 0 AND o.is_described = 1`);
}

/** How many revisions and rejects were added. */
export interface MergedRecords {
  readonly revisions: number;
  readonly rejects: number;
}

/** Adds revisions, rejects, changes of lookups, and what was unknown. Needs the dictionaries. */
export function mergeRecords(transaction: Transaction): MergedRecords {
  const revisions = [...Map.groupBy(rowStreams, (stream) => streamTable[stream].dictionary)].reduce(
    (sum, [dictionary, streams]) => sum + mergeRevisions(transaction, dictionary, streams),
    0,
  );
  const rejects = transaction.run(`INSERT INTO main.rejects (stream, received_at, reason, raw, request)
      SELECT stream, received_at, reason, raw, request FROM other.rejects ORDER BY reject ON CONFLICT DO NOTHING`);
  const change = "entity, id, field, old, new, seen_at";
  transaction.run(`INSERT INTO main.status_changes (${change}) SELECT ${change} FROM (SELECT ${change} FROM other.status_changes
        EXCEPT SELECT ${change} FROM main.status_changes) ORDER BY seen_at`);
  for (const table of ["unknown_fields", "unknown_events"])
    transaction.run(`INSERT INTO main.${table} SELECT * FROM other.${table} WHERE true ON CONFLICT ("where", name) DO UPDATE SET
          first_seen = min(first_seen, excluded.first_seen), count = max(count, excluded.count)
          WHERE excluded.first_seen < first_seen OR excluded.count > count`);
  return { revisions, rejects };
}

function mergeRevisions(
  transaction: Transaction,
  dictionary: Dictionary,
  streams: readonly RowStream[],
): number {
  const [first, second] = identityColumns[dictionary];
  const key = keyColumns[dictionary];
  const names = streams.map((stream) => `'${stream}'`).join(", ");
  return transaction.run(`INSERT INTO main.revision_rows (stream, key, ts, before, after, changed_at)
      SELECT stream, key, ts, before, after, changed_at FROM (
        SELECT r.stream, m.${key} AS key, r.ts, r.before, r.after, r.changed_at FROM other.revision_rows r
          JOIN other.${dictionary} o ON o.${key} = r.key
          JOIN main.${dictionary} m ON m.${first} = o.${first} AND m.${second} = o.${second}
        WHERE r.stream IN (${names})
        EXCEPT SELECT stream, key, ts, before, after, changed_at FROM main.revision_rows WHERE stream IN (${names}))
      ORDER BY changed_at, ts`);
}
