import { createHash } from "node:crypto";
import { publicDocs } from "../../warehouse/schema/column-docs.ts";
import { newerSchemaFailure, tooOldFailure } from "../server/postgres-errors.ts";
import type { SharedSession } from "../server/session.ts";
import { dialectFunctions } from "./postgres-dialect.ts";
import { relationLayouts, tableStatements } from "./tables.ts";
import { sharedViews } from "./views.ts";

/** Raise it with every change of tables or views: an older program then refuses the schema. A test holds the digest. */
export const SCHEMA_VERSION = 2;
export const MIN_SERVER_VERSION = 140_000;
/** Any number that no other program uses: serialises two programs that migrate at the same time. */
const MIGRATION_LOCK = 0x4d445357;

/** What each public relation and column means, as in docs/dictionary.md. */
function commentStatements(): string[] {
  const quoted = (text: string) => `'${text.replaceAll("'", "''")}'`;
  const views = Object.keys(sharedViews).map((name) => ({ name, kind: "VIEW", columns: undefined }));
  const tables = relationLayouts.map((table) => ({ ...table, kind: "TABLE" }));
  return [...views, ...tables].flatMap(({ name, kind, columns }) => {
    const { summary, columns: docs } = publicDocs[name] ?? { summary: undefined, columns: [] };
    if (summary === undefined) return [];
    const shown = docs.filter((doc) => columns?.some((column) => column.name === doc.name) ?? true);
    return [
      `COMMENT ON ${kind} mds.${name} IS ${quoted(summary)}`,
      ...shown.map((doc) => `COMMENT ON COLUMN mds.${name}."${doc.name}" IS ${quoted(doc.meaning)}`),
    ];
  });
}

const comments = commentStatements().join(";\n");
/**
 * Version 1 divided the series among 64 leases. Its programs find no lease any more, so they commit nothing; who held one
 * keeps the new one to its end.
 */
const fromVersion1 = `DO $$ BEGIN IF to_regclass('mds.leases') IS NOT NULL THEN
    INSERT INTO mds.lease SELECT true, max(epoch) OVER (), holder, name, until FROM mds.leases
      ORDER BY (holder = ''), until DESC LIMIT 1;
    DROP TABLE mds.leases, mds.members;
  END IF; END $$`;

const statements = [...tableStatements(), fromVersion1, ...dialectFunctions];
export const schemaDigest = createHash("sha256")
  .update(JSON.stringify([statements, sharedViews, comments]))
  .digest("hex");

interface SchemaState {
  readonly version: number;
  readonly digest: string;
}

/** Creates or upgrades schema `mds`. A schema of a newer version, and a server that is too old, stay untouched. */
export async function migrateShared(session: SharedSession): Promise<void> {
  await assertServerVersion(session);
  if (isCurrent(session, await readState(session))) return;
  await session.transaction(async () => {
    await session.query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    if (isCurrent(session, await readState(session))) return;
    await session.query("CREATE SCHEMA IF NOT EXISTS mds");
    for (const statement of statements) await session.query(statement);
    for (const [name, sql] of Object.entries(sharedViews)) await replaceView(session, name, sql);
    await session.query(comments);
    await session.query(
      `CREATE TABLE IF NOT EXISTS mds.schema_version (one boolean PRIMARY KEY CHECK (one), version integer NOT NULL, digest text NOT NULL);
      INSERT INTO mds.source VALUES (true, 0, statement_timestamp()) ON CONFLICT DO NOTHING;
      INSERT INTO mds.lease VALUES (true, 0, '', '', '-infinity') ON CONFLICT DO NOTHING;
      INSERT INTO mds.schema_version VALUES (true, ${SCHEMA_VERSION}, '${schemaDigest}')
        ON CONFLICT (one) DO UPDATE SET version = excluded.version, digest = excluded.digest`,
    );
  });
}

/** Replaces a view in place, so that the views that users have made over it stay; drops it only if columns change. */
async function replaceView(session: SharedSession, name: string, sql: string): Promise<void> {
  await session.query("SAVEPOINT before_view");
  try {
    await session.query(`CREATE OR REPLACE VIEW mds.${name} AS ${sql}`);
  } catch (error) {
    await session.query("ROLLBACK TO before_view").catch(() => {
      throw error;
    });
    await session.query(`DROP VIEW IF EXISTS mds.${name}; CREATE VIEW mds.${name} AS ${sql}`);
  }
}

async function assertServerVersion(session: SharedSession): Promise<void> {
  const [row] = await session.query<{ number: string; version: string }>(
    "SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS version",
  );
  if (Number(row?.number) < MIN_SERVER_VERSION)
    throw tooOldFailure(session.server, row?.version ?? "unknown");
}

/** The version of schema `mds`; undefined if it has none. */
export async function readSchemaVersion(session: SharedSession): Promise<number | undefined> {
  return (await readState(session))?.version;
}

async function readState(session: SharedSession): Promise<SchemaState | undefined> {
  const [table] = await session.query<{ found: boolean }>(
    "SELECT to_regclass('mds.schema_version') IS NOT NULL AS found",
  );
  if (!table?.found) return undefined;
  const [state] = await session.query<SchemaState>("SELECT version, digest FROM mds.schema_version");
  return state;
}

function isCurrent(session: SharedSession, state: SchemaState | undefined): boolean {
  if (state && state.version > SCHEMA_VERSION)
    throw newerSchemaFailure(session.server, state.version, SCHEMA_VERSION);
  return state?.version === SCHEMA_VERSION && state.digest === schemaDigest;
}
