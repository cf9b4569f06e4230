import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type MigrationMeta, readMigrationFiles } from "drizzle-orm/migrator";
import { exitCode, Failure } from "../model/failure.ts";
import type { Connection } from "./sqlite/connection.ts";
import { assertSpace, type FileSystemInfo, SPACE_RESERVE_BYTES } from "./sqlite/disk.ts";
import { replaceViews } from "./views/views.ts";

/** `MDSW`: tells our files from other programs' databases. */
export const APPLICATION_ID = 0x4d445357;

/** The folder lies beside `src` in a clone and beside `dist` in an installed package: two levels up from here. */
export const migrationsFolder = join(dirname(fileURLToPath(import.meta.url)), "../../migrations");

interface Applied {
  readonly hash: string;
  readonly created_at: number;
}

/** drizzle's own table and columns, so that its tools can read what we applied. */
const createJournal = `CREATE TABLE IF NOT EXISTS __drizzle_migrations
  (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)`;

/**
 * What is yet to be applied, with its place. Throws when the file is from a newer version or another program's. Reads
 * only: a refused file stays as it is.
 */
export function pendingMigrations(
  connection: Connection,
  folder = migrationsFolder,
): (readonly [number, MigrationMeta])[] {
  return pending(connection, readMigrationFiles({ migrationsFolder: folder }));
}

/**
 * Applies what is missing, one transaction a migration, so that a killed one resumes where it was. drizzle's own
 * migrator skips a migration older than the newest applied in silence; here the applied ones must be the first ones.
 */
export function migrate(
  connection: Connection,
  options: { folder?: string; fileSystem?: FileSystemInfo | undefined } = {},
): number {
  const { database } = connection;
  const missing = pendingMigrations(connection, options.folder);
  if (missing.length > 0) {
    // A migration may rebuild every table, and the WAL holds the copy until the checkpoint.
    const size = existsSync(connection.path) ? statSync(connection.path).size : 0;
    assertSpace(connection.path, SPACE_RESERVE_BYTES + 2 * size, options.fileSystem);
  }
  for (const [position, migration] of missing) {
    immediate(connection, () => {
      database.exec(createJournal);
      for (const statement of migration.sql) database.exec(statement);
      database
        .prepare("INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)")
        .run(migration.hash, migration.folderMillis);
      database.pragma(`application_id = ${APPLICATION_ID}`);
      database.pragma(`user_version = ${position + 1}`);
    });
    database.pragma("wal_checkpoint(PASSIVE)");
  }
  immediate(connection, () => replaceViews(database));
  return missing.length;
}

function pending(
  connection: Connection,
  migrations: readonly MigrationMeta[],
): (readonly [number, MigrationMeta])[] {
  const { database, path } = connection;
  const id = database.pragma("application_id", { simple: true });
  const tables = database.prepare("SELECT count(*) FROM sqlite_master").pluck().get() as number;
  if (id !== APPLICATION_ID && tables > 0) {
    throw new Failure(`${path} is the database of another program`, {
      family: "operator",
      code: "foreign_database",
      remedy: "set warehouse.path to a file of its own",
      exit: exitCode.usage,
    });
  }
  const applied = tables === 0 ? [] : readApplied(connection);
  const version = database.pragma("user_version", { simple: true }) as number;
  const known = applied.every(({ hash }, position) => migrations[position]?.hash === hash);
  if (!known || applied.length > migrations.length || version > migrations.length) {
    throw new Failure(`${path} was written by a newer version of mds-sync`, {
      family: "operator",
      code: "newer_warehouse",
      remedy: "install that version again; this one has changed nothing",
      exit: exitCode.usage,
    });
  }
  return migrations.map((migration, position) => [position, migration] as const).slice(applied.length);
}

function readApplied({ database }: Connection): Applied[] {
  const journal = database
    .prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '__drizzle_migrations'")
    .get();
  if (!journal) return [];
  return database
    .prepare("SELECT hash, created_at FROM __drizzle_migrations ORDER BY created_at")
    .all() as Applied[];
}

function immediate({ database }: Connection, work: () => void): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    work();
    database.exec("COMMIT");
  } catch (error) {
    if (database.inTransaction) database.exec("ROLLBACK");
    throw error;
  }
}
