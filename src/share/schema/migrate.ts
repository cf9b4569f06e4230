import { createHash } from "node:crypto";
import { failureCode } from "../../model/failure.ts";
import { quoteText } from "../../model/sql-text.ts";
import type { Clock } from "../../runtime/clock.ts";
import { publicDocs } from "../../warehouse/schema/column-docs.ts";
import { DETACHED_REASON } from "../ledger-difference.ts";
import { foreignSchemaFailure, schemaFailure, serverFailure } from "../server/postgres-errors.ts";
import { BUILD_TIMEOUT_MS, type SharedSession, WITHOUT_WAITING } from "../server/session.ts";
import { enterAllStaleSql } from "./bar-views.ts";
import { dialectFunctions } from "./postgres-dialect.ts";
import {
  dictionaryLayouts,
  LEDGER_TABLE,
  relationLayouts,
  rowLayouts,
  tableNames,
  tableStatements,
} from "./tables.ts";
import { sharedViews } from "./views.ts";

/** Raise it with every change of tables or views: an older program then refuses the schema. A test holds the digest. */
export const SCHEMA_VERSION = 8;
/** The version of 0.2.0, the only earlier release that can be upgraded. */
const EARLIER_VERSION = 6;
export const MIN_SERVER_VERSION = 140_000;
/** An upgrade that a reader blocks is tried again, a second later each time. */
const BLOCKED_RETRIES = 10;
/** Any number that no other program uses: serialises two programs that migrate at the same time. */
const MIGRATION_LOCK = 0x4d445357;

/** What each public relation and column means, as in docs/dictionary.md. */
function commentStatements(): string[] {
  const views = Object.keys(sharedViews).map((name) => ({ name, kind: "VIEW", columns: undefined }));
  const dictionaries = dictionaryLayouts.map(({ name, key, columns }) => ({
    name,
    columns: [{ name: key }, ...columns],
  }));
  const tables = [...relationLayouts, ...dictionaries].map((table) => ({ ...table, kind: "TABLE" }));
  return [...views, ...tables].flatMap(({ name, kind, columns }) => {
    const { summary, columns: docs } = publicDocs[name] ?? { summary: undefined, columns: [] };
    if (summary === undefined) return [];
    const shown = docs.filter((doc) => columns?.some((column) => column.name === doc.name) ?? true);
    return [
      `COMMENT ON ${kind} mds.${name} IS ${quoteText(summary)}`,
      ...shown.map((doc) => `COMMENT ON COLUMN mds.${name}."${doc.name}" IS ${quoteText(doc.meaning)}`),
    ];
  });
}

/*
 * Index ticks of a name by functions. PostgreSQL cannot stop after the newest rows of a view that joins names to rows; these
 * find the series first.
 */

const ts = (moment: string) => `(extract(epoch FROM ${moment}) * 1000000)::bigint`;
const ofSeries = "t.index_type = s.index_type AND t.index_id = s.index_id";
const newest = (rest: string) =>
  `SELECT r.ts FROM mds.index_tick_rows r WHERE r.series = s.series${rest} ORDER BY r.ts DESC LIMIT`;

const functions = [
  {
    signature: `ticks(name text, "from" timestamptz, "to" timestamptz)`,
    body: `SELECT t.* FROM mds.index_ticks t WHERE t.name = $1 AND t.ts >= ${ts("$2")} AND t.ts < ${ts("$3")} ORDER BY t.ts`,
    comment: "The index ticks of a name from a time on and before another.",
  },
  {
    signature: "last_ticks(name text, n integer)",
    body: `SELECT t.* FROM mds.series s CROSS JOIN LATERAL (SELECT min(x.ts) AS ts FROM (${newest("")} $2) x) f
      JOIN mds.index_ticks t ON ${ofSeries} AND t.ts >= f.ts WHERE s.name = $1 ORDER BY t.ts DESC LIMIT $2`,
    comment: "The newest index ticks of a name, the newest first.",
  },
  {
    signature: "as_of(name text, at timestamptz)",
    body: `SELECT t.* FROM mds.series s CROSS JOIN LATERAL (${newest(` AND r.ts <= ${ts("$2")} AND r.price IS NOT NULL`)} 1) n
      JOIN mds.index_ticks t ON ${ofSeries} AND t.ts = n.ts WHERE s.name = $1`,
    comment:
      "The newest index tick of a name with a price at or before a time; one per index type of that name.",
  },
];

/** Run them after the views are created. */
const functionStatements: readonly string[] = functions.flatMap(({ signature, body, comment }) => [
  `CREATE OR REPLACE FUNCTION mds.${signature} RETURNS SETOF mds.index_ticks LANGUAGE sql STABLE PARALLEL SAFE AS $$${body}$$`,
  `COMMENT ON FUNCTION mds.${signature} IS '${comment}'`,
]);

const comments = commentStatements().join(";\n");
const statements = [...tableStatements(), enterAllStaleSql, ...dialectFunctions];
/** Users' views over these, and grants, stay: a view keeps its columns in their places, and may get more. */
const views = Object.entries(sharedViews).map(
  ([name, sql]) => `CREATE OR REPLACE VIEW mds.${name} AS ${sql}`,
);
export const schemaDigest = createHash("sha256")
  .update(JSON.stringify([statements, sharedViews, comments, functionStatements]))
  .digest("hex");

/** 0.2.0 had months and ranges that were moved elsewhere, with the place as the reason; the key of daily bars was their day. */
const fromEarlier = `ALTER TABLE mds.months RENAME COLUMN is_moved TO is_detached;
  ALTER TABLE mds.months DROP COLUMN is_by_hand;
  WITH moved AS (DELETE FROM mds.${LEDGER_TABLE} WHERE proof = 'moved'
      RETURNING *, CASE WHEN reason LIKE 'moved to table mds.%' THEN '${DETACHED_REASON}' ELSE 'moved' END AS why)
    INSERT INTO mds.${LEDGER_TABLE} (stream, series, from_ts, to_ts, proof, reason)
    SELECT stream, series, lower(r), upper(r), 'lost', why FROM (SELECT stream, series, why,
      unnest(range_agg(int8range(from_ts, to_ts))) AS r FROM moved GROUP BY 1, 2, 3) x;
  ALTER TABLE mds.daily_bar_rows ADD COLUMN ts bigint GENERATED ALWAYS AS ((day - date '1970-01-01')::bigint * 86400000000) STORED;
  ALTER TABLE mds.daily_bar_rows ALTER COLUMN ts DROP EXPRESSION, DROP CONSTRAINT daily_bar_rows_pkey;
  ALTER TABLE mds.daily_bar_rows ADD PRIMARY KEY (series, ts)`;
/** Once no view reads it: an earlier view cannot be dropped, because users' own views may read it. */
const withoutDays = "ALTER TABLE mds.daily_bar_rows DROP COLUMN day";

interface SchemaState {
  readonly version: number;
  readonly digest: string;
}

/**
 * Creates or upgrades schema `mds`, and makes again what someone has dropped of it. A schema of a newer version, and a server
 * that is too old, stay untouched.
 */
export async function migrateShared(session: SharedSession, clock: Pick<Clock, "sleep">): Promise<void> {
  await assertServerVersion(session);
  if (isCurrent(session, await readSchemaState(session)) && (await findDropped(session)).length === 0) return;
  for (let retries = 0; ; retries++) {
    try {
      return await session.transaction(() => upgrade(session));
    } catch (error) {
      if (failureCode(error) !== "share_blocked" || retries === BLOCKED_RETRIES) throw error;
      await clock.sleep(1_000);
    }
  }
}

async function upgrade(session: SharedSession): Promise<void> {
  await session.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
  const state = await readSchemaState(session);
  // A schema of an older version lacks what it never had.
  const dropped = isCurrent(session, state) ? await findDropped(session) : undefined;
  if (dropped?.length === 0) return;
  const foreign = state ? [] : await findOurRelations(session);
  if (foreign.length > 0) throw foreignSchemaFailure(session.server, foreign);
  // Keys of other tables are numbers of a dictionary: filled anew, they would name other rows.
  const dictionaries = dictionaryLayouts.flatMap(({ name }) =>
    dropped?.includes(name) ? `mds.${name}` : [],
  );
  if (dictionaries.length > 0)
    throw schemaFailure(session.server, [
      "share_changed",
      `lacks ${dictionaries.join(", ")}, which gives rows their names: someone has dropped it`,
      "restore it from a backup, or DROP SCHEMA mds CASCADE: everything is created and forwarded again",
    ]);
  const isEarlier = state?.version === EARLIER_VERSION;
  const all = [
    WITHOUT_WAITING,
    "CREATE SCHEMA IF NOT EXISTS mds",
    ...(isEarlier ? [fromEarlier] : []),
    ...statements,
    ...views,
    ...(isEarlier ? [withoutDays] : []),
    comments,
    ...functionStatements,
  ];
  await session.query(all.join(";\n"), undefined, BUILD_TIMEOUT_MS);
  await session.query(
    `CREATE TABLE IF NOT EXISTS mds.schema_version (one boolean PRIMARY KEY CHECK (one), version integer NOT NULL, digest text NOT NULL);
    INSERT INTO mds.source VALUES (true, 0, statement_timestamp()) ON CONFLICT DO NOTHING;
    INSERT INTO mds.lease VALUES (true, 0, '', '', '-infinity') ON CONFLICT DO NOTHING;
    INSERT INTO mds.schema_version VALUES (true, ${SCHEMA_VERSION}, '${schemaDigest}')
      ON CONFLICT (one) DO UPDATE SET version = excluded.version, digest = excluded.digest`,
  );
  if (dropped) await session.query(forgetDroppedSql(dropped));
}

/** The ledger claims no rows that went with their table; whatever a file has of them is forwarded again. */
function forgetDroppedSql(dropped: readonly string[]): string {
  const streams = Object.values(rowLayouts).filter(({ table }) => dropped.includes(table));
  return [
    "UPDATE mds.positions SET is_loaded = false",
    ...streams.map(
      ({ stream }) =>
        `DELETE FROM mds.${LEDGER_TABLE} WHERE stream = '${stream}' AND reason IS DISTINCT FROM '${DETACHED_REASON}'`,
    ),
  ].join("; ");
}

async function findDropped(session: SharedSession): Promise<string[]> {
  const found = new Set(await findOurRelations(session));
  return ourRelations.filter((name) => !found.has(name));
}

async function assertServerVersion(session: SharedSession): Promise<void> {
  const [row] = await session.query<{ number: string; version: string }>(
    "SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS version",
  );
  if (Number(row?.number) < MIN_SERVER_VERSION)
    throw serverFailure(session.server, [
      "share_too_old",
      `is version ${row?.version}`,
      "PostgreSQL 14 or newer is needed",
    ]);
}

/** The relations of this program, without the partitions. */
export const ourRelations: readonly string[] = ["schema_version", ...tableNames, ...Object.keys(sharedViews)];

/** The relations of schema `mds` that have our names, whoever made them. */
export async function findOurRelations(session: SharedSession): Promise<string[]> {
  const found = await session.query<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relnamespace = to_regnamespace('mds')::oid AND relname = ANY ($1) ORDER BY 1",
    [ourRelations],
  );
  return found.map(({ name }) => name);
}

/** Undefined if schema `mds` has no version of this program. */
export async function readSchemaState(session: SharedSession): Promise<SchemaState | undefined> {
  const [table] = await session.query<{ columns: number }>(
    `SELECT count(*)::integer AS columns FROM pg_attribute
    WHERE attrelid = to_regclass('mds.schema_version') AND attname IN ('one', 'version', 'digest')`,
  );
  if (table?.columns !== 3) return undefined;
  const [state] = await session.query<SchemaState>("SELECT version, digest FROM mds.schema_version");
  return state;
}

function isCurrent(session: SharedSession, state: SchemaState | undefined): boolean {
  if (state && state.version > SCHEMA_VERSION)
    throw schemaFailure(session.server, [
      "share_newer",
      `has version ${state.version}, and this program knows ${SCHEMA_VERSION}: a newer mds-sync wrote it`,
      "install that version here too; nothing was changed there",
    ]);
  if (state && state.version < EARLIER_VERSION)
    throw schemaFailure(session.server, [
      "share_older",
      `has version ${state.version}, from before mds-sync 0.2.0`,
      "run `mds-sync share` of 0.2.0 once, or DROP SCHEMA mds CASCADE: everything is created and forwarded again",
    ]);
  return state?.version === SCHEMA_VERSION && state.digest === schemaDigest;
}
