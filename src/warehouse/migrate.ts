import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../model/failure.ts";
import { quoteName } from "../model/sql-text.ts";
import { packageFolder } from "../runtime/child-process.ts";
import type { Connection } from "./sqlite/connection.ts";
import { assertFreeSpace, type FileSystemInfo, MIN_FREE_BYTES } from "./sqlite/disk.ts";
import { replaceViews } from "./views/views.ts";

/** `MDSW` in ASCII: distinguishes warehouses from the databases of other programs. */
export const APPLICATION_ID = 0x4d445357;

/** The first migration leads to the version after this one: earlier files are refused. */
export const LAST_REFUSED_VERSION = 16;

export const migrationsFolder = join(packageFolder, "src/warehouse/migrations");

export interface Upgrade {
  /** Versions of the schema, as `user_version` has them. */
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
}

/** A rough figure: ten migrations of a warehouse of 115 MB took about 3 s. */
const UPGRADE_BYTES_PER_SECOND = 40_000_000;

export function estimateUpgradeSeconds({ bytes }: Upgrade): number {
  return Math.ceil(bytes / UPGRADE_BYTES_PER_SECOND);
}

/** For example `from 17 to 19: 115 MB, about 3 s`. */
export function describeUpgrade(upgrade: Upgrade): string {
  const { from, to, bytes } = upgrade;
  return `from ${from} to ${to}: ${Math.ceil(bytes / 1e6)} MB, about ${estimateUpgradeSeconds(upgrade)} s`;
}

/** What this version brings: read and hashed once, because every connection asks for it. */
let ownMigrations: Migration[] | undefined;

interface Migration {
  readonly statements: readonly string[];
  readonly hash: string;
  /** In milliseconds since 1970. */
  readonly createdAt: number;
}

/** As `npm run migration` (drizzle-kit) writes them. */
function readMigrations(folder: string): Migration[] {
  const journal = JSON.parse(readFileSync(join(folder, "meta/_journal.json"), "utf8"));
  return journal.entries.map(({ tag, when }: { tag: string; when: number }) => {
    const text = readFileSync(join(folder, `${tag}.sql`), "utf8");
    const hash = createHash("sha256").update(text).digest("hex");
    return { statements: text.split("--> statement-breakpoint"), hash, createdAt: when };
  });
}

/** drizzle's own table and columns, so that its tools can read which migrations were applied. */
const createJournalSql = `CREATE TABLE IF NOT EXISTS __drizzle_migrations
  (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)`;

/** The version of the schema that a migration leads to, and the migration. */
type PendingMigration = readonly [version: number, migration: Migration];

/**
 * Returns the migrations that are not applied yet. Throws for a file of a newer version or of another program. Only reads,
 * so a rejected file stays unchanged.
 */
export function findPendingMigrations(connection: Connection, folder = migrationsFolder): PendingMigration[] {
  if (folder !== migrationsFolder) return selectPending(connection, readMigrations(folder));
  ownMigrations ??= readMigrations(migrationsFolder);
  return selectPending(connection, ownMigrations);
}

/**
 * Applies all pending migrations and replaces the views in one transaction: views fit the tables, whenever the process is killed.
 * drizzle's own migrator silently skips a pending migration that is older than an applied one; this one fails.
 */
export function migrate(
  connection: Connection,
  options: {
    folder?: string;
    fileSystem?: FileSystemInfo | undefined;
    /** Called before an older warehouse is changed, if the disk has the space. */
    onUpgrade?: (upgrade: Upgrade) => void;
  } = {},
): number {
  const { database } = connection;
  const pending = findPendingMigrations(connection, options.folder);
  const last = pending.at(-1);
  if (last) {
    // Each migration may rebuild every table, and the WAL contains the copies until the checkpoint.
    const size = existsSync(connection.path) ? statSync(connection.path).size : 0;
    assertFreeSpace(connection.path, MIN_FREE_BYTES + (1 + pending.length) * size, options.fileSystem);
    const from = readVersion(connection);
    if (from > 0) options.onUpgrade?.({ from, to: last[0], bytes: size });
  }
  const apply = database.transaction(() => {
    if (last) applyMigrations(connection, pending);
    replaceViews(database);
  });
  apply.immediate();
  if (last) database.pragma("wal_checkpoint(PASSIVE)");
  return pending.length;
}

function applyMigrations(connection: Connection, pending: readonly PendingMigration[]): void {
  const { database } = connection;
  database.exec(createJournalSql);
  const views = dropViews(connection);
  for (const [version, migration] of pending) {
    for (const statement of migration.statements) database.exec(statement);
    database
      .prepare("INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)")
      .run(migration.hash, migration.createdAt);
    database.pragma(`user_version = ${version}`);
  }
  for (const sql of views) database.exec(sql);
  database.pragma(`application_id = ${APPLICATION_ID}`);
}

/** Drops all views, and returns their definitions: `ALTER TABLE` fails while any view, also a user's own, is invalid. */
function dropViews(connection: Connection): string[] {
  const sql = "SELECT name, sql FROM sqlite_master WHERE type = 'view'";
  const views = connection.rows<{ name: string; sql: string }>(sql);
  for (const { name } of views) connection.database.exec(`DROP VIEW ${quoteName(name)}`);
  return views.map(({ sql }) => sql);
}

function selectPending(connection: Connection, migrations: readonly Migration[]): PendingMigration[] {
  const { database, path } = connection;
  const id = database.pragma("application_id", { simple: true });
  const tables = connection.value<number>("SELECT count(*) FROM sqlite_master");
  if (id !== APPLICATION_ID && tables > 0) {
    throw new Failure(`${path} is the database of another program`, {
      code: "foreign_database",
      remedy: "set warehouse.path to another file",
    });
  }
  const applied = tables === 0 ? [] : readAppliedMigrations(connection);
  const version = readVersion(connection);
  if (version > 0 && version <= LAST_REFUSED_VERSION) throw olderWarehouse(path);
  const known = applied.every((hash, position) => migrations[position]?.hash === hash);
  if (!known || version > LAST_REFUSED_VERSION + migrations.length) {
    throw new Failure(`${path} was written by a newer version of mds-sync`, {
      code: "newer_warehouse",
      remedy: "install that version again; the file was not changed",
    });
  }
  return migrations
    .map((migration, i) => [LAST_REFUSED_VERSION + i + 1, migration] as const)
    .slice(applied.length);
}

function olderWarehouse(path: string): Failure {
  return new Failure(`${path} was written before version 0.1 of mds-sync, and cannot be upgraded`, {
    code: "older_warehouse",
    remedy:
      "move it away but keep it, and start again: exchange ticks, market caps and derivatives of the past, and ticks older than 200 days, " +
      "are in that file only (SQL reads it), because the service has no history of them; the file was not changed",
  });
}

function readVersion({ database }: Connection): number {
  return Number(database.pragma("user_version", { simple: true }));
}

/** The hashes of the applied migrations, oldest first. */
function readAppliedMigrations(connection: Connection): string[] {
  const journal = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '__drizzle_migrations'";
  if (!connection.findRow(journal)) return [];
  return connection.values("SELECT hash FROM __drizzle_migrations ORDER BY created_at");
}
