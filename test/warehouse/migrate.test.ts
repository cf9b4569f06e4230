import { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../src/runtime/log.ts";
import { findPendingMigrations, migrate, migrationsFolder } from "../../src/warehouse/migrate.ts";
import { computeStaleBars } from "../../src/warehouse/rows/kept-bars.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import * as coverage from "../../src/warehouse/schema/coverage.ts";
import * as lookups from "../../src/warehouse/schema/lookups.ts";
import * as rowSchema from "../../src/warehouse/schema/rows.ts";
import { connectReader, connectWriter } from "../../src/warehouse/sqlite/connection.ts";
import { openWriter } from "../../src/warehouse/writer.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { createFirstWarehouse, digest, journal } from "../support/warehouse/first-warehouse.ts";
import {
  catchFailure,
  makeTempFolder,
  openTestWarehouse,
  queryRows,
} from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { startPeerProcess } from "../support/warehouse/start-peer-process.ts";

const tables = Object.values({ ...rowSchema, ...lookups, ...coverage }) as SQLiteTable[];

/** The migrations with one more at the end, as a later version would have them. */
function laterMigrations(sql: string): string {
  const folder = join(makeTempFolder(), "migrations");
  cpSync(migrationsFolder, folder, { recursive: true });
  const { entries } = journal();
  const idx = entries.length;
  const next = {
    idx,
    version: "6",
    when: (entries.at(-1)?.when ?? 0) + 1,
    tag: `000${idx}_later`,
    breakpoints: true,
  };
  writeFileSync(join(folder, `${next.tag}.sql`), sql);
  writeFileSync(
    join(folder, "meta/_journal.json"),
    JSON.stringify({ ...journal(), entries: [...entries, next] }),
  );
  return folder;
}

/** The migrations of the first version alone. */
function firstMigrations(): string {
  const folder = join(makeTempFolder(), "migrations");
  cpSync(migrationsFolder, folder, { recursive: true });
  const entries = journal().entries.slice(0, 1);
  writeFileSync(join(folder, "meta/_journal.json"), JSON.stringify({ ...journal(), entries }));
  return folder;
}

const firstWarehouse = () => createFirstWarehouse(join(makeTempFolder(), "mds.sqlite"));

describe("migrations", () => {
  it("are listed in ascending order in the journal, one file each", () => {
    const { entries } = journal();
    expect(entries.map(({ idx }) => idx)).toEqual(entries.map((_, i) => i));
    expect(entries.map(({ when }) => when)).toEqual(entries.map(({ when }) => when).sort((a, b) => a - b));
    expect(new Set(entries.map(({ when }) => when)).size).toBe(entries.length);
    const files = readdirSync(migrationsFolder).filter((file) => file.endsWith(".sql"));
    expect(files.sort()).toEqual(entries.map(({ tag }) => `${tag}.sql`).sort());
  });

  it("are all applied to a new warehouse, and user_version counts them", () => {
    const warehouse = openTestWarehouse();
    const applied = queryRows(warehouse, "SELECT hash FROM __drizzle_migrations ORDER BY created_at");
    const files = journal().entries.map(({ tag }) => ({
      hash: digest(join(migrationsFolder, `${tag}.sql`)),
    }));
    expect(applied).toEqual(files);
    expect(warehouse.connection.database.pragma("user_version", { simple: true })).toBe(files.length);
  });

  it("leave every table STRICT, and those without an integer key WITHOUT ROWID", () => {
    const warehouse = openTestWarehouse();
    const list = (warehouse.connection.database.pragma("table_list") as Record<string, unknown>[]).filter(
      ({ name, type }) => type === "table" && !/^(sqlite_|__drizzle)/.test(name as string),
    );
    expect(list).toHaveLength(tables.length);
    for (const { name, strict, wr } of list) {
      const columns = warehouse.connection.database.pragma(`table_info(${String(name)})`) as Record<
        string,
        unknown
      >[];
      const keys = columns.filter(({ pk }) => pk !== 0);
      const hasIntegerKey = keys.length === 1 && keys[0]?.type === "INTEGER";
      expect({ name, strict, wr }).toEqual({ name, strict: 1, wr: hasIntegerKey ? 0 : 1 });
    }
  });

  it("agree with the schema in every column, its type, its nullability and its place in the key", () => {
    const warehouse = openTestWarehouse();
    for (const table of tables) {
      const { name, columns, primaryKeys } = getTableConfig(table);
      const key = primaryKeys[0]?.columns.map((column) => column.name);
      const declared = columns.map((column) => ({
        name: column.name,
        type: column.getSQLType().toUpperCase(),
        notnull: Number(column.notNull),
        pk: key ? key.indexOf(column.name) + 1 : Number(column.primary),
      }));
      const info = warehouse.connection.database.pragma(`table_info(${name})`) as Record<string, unknown>[];
      const actual = info.map((c) => ({
        name: c.name,
        type: String(c.type).toUpperCase(),
        notnull: c.notnull,
        pk: c.pk,
      }));
      // A migration appends its columns to a table, wherever the schema has them.
      const byName = (columns: { name: unknown }[]) =>
        columns.toSorted((a, b) => String(a.name).localeCompare(String(b.name)));
      expect({ name, columns: byName(actual) }).toEqual({ name, columns: byName(declared) });
    }
  });

  it("F12: a warehouse of a newer version is rejected unchanged, with exit code 2", () => {
    const path = join(makeTempFolder(), "mds.sqlite");
    openWriter(path, { clock: new ManualClock() }).close();
    const later = connectWriter(path);
    migrate(later, { folder: laterMigrations("CREATE TABLE new_thing (id INTEGER PRIMARY KEY) STRICT") });
    later.close();
    const before = digest(path);
    const failure = catchFailure(() => openWriter(path, { clock: new ManualClock() }));
    expect(failure).toMatchObject({ code: "newer_warehouse", exit: 2 });
    expect(failure.summary).toContain("newer version");
    expect(digest(path)).toBe(before);
    expect(existsSync(`${path}-wal`)).toBe(false);
  });

  it("F14: a warehouse of the first version is migrated with every row, and every view works", () => {
    const path = firstWarehouse();
    const contents = (database: Database.Database) => {
      const names = database
        .prepare(
          "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_\\_%' ESCAPE '\\'",
        )
        .pluck()
        .all() as string[];
      return new Map(names.map((name) => [name, database.prepare(`SELECT * FROM "${name}"`).all()]));
    };
    const old = new Database(path);
    const before = contents(old);
    old.close();
    const warehouse = openTestWarehouse({ path });
    expect(warehouse.quarantined).toEqual([]);
    const after = contents(warehouse.connection.database);
    // A migration drops the live spans, and every writer advances the epoch.
    const changedTables = ["live_spans", "warehouse_state"];
    for (const [name, found] of before)
      if (!changedTables.includes(name)) expect([name, after.get(name)]).toMatchObject([name, found]);
    expect(
      queryRows(warehouse, "SELECT price_change_24h, price_change_24h_exact, extra FROM market_caps"),
    ).toEqual([
      {
        price_change_24h: null,
        price_change_24h_exact: null,
        extra: '{"pricePercentChange":{"change24h":"1.5"}}',
      },
    ]);
    expect(queryRows(warehouse, "SELECT exchange, pair FROM derivative_ticks")).toEqual([
      { exchange: "kraken-id", pair: "BTC/BTC" },
    ]);
    for (const { name } of queryRows(warehouse, "SELECT name FROM sqlite_master WHERE type = 'view'"))
      expect(() => queryRows(warehouse, `SELECT * FROM "${String(name)}"`), String(name)).not.toThrow();
    expect(
      queryRows(warehouse, "SELECT name, time, price_exact, volume, is_settled FROM index_ticks"),
    ).toEqual([
      {
        name: "BTC",
        time: "2026-01-01T00:00:00.000000Z",
        price_exact: "60000.5",
        volume: 12.25,
        is_settled: 1,
      },
      {
        name: "BTC",
        time: "2026-01-01T00:00:30.000000Z",
        price_exact: "0.10000000000000000001",
        volume: null,
        is_settled: 1,
      },
    ]);
    expect(
      queryRows(warehouse, "SELECT from_time, to_time, state FROM gaps WHERE stream = 'index_ticks'"),
    ).toEqual([
      { from_time: "2026-01-01T00:01:00.000000Z", to_time: "2026-01-01T00:01:30.000000Z", state: "open" },
    ]);
    // Bars are kept from now on: until then each hour of a day with ticks is stale, and read from the ticks.
    const bar = { name: "BTC", ts: 1767225600000000, open: 60000.5, low_exact: "0.10000000000000000001" };
    const barSql = "SELECT name, ts, open, low_exact FROM bars_1h";
    expect(queryRows(warehouse, barSql)).toEqual([bar]);
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM kept_bars WHERE n_ticks IS NULL")).toEqual([
      { n: 24 },
    ]);
    warehouse.transaction((transaction) => computeStaleBars(transaction, 100));
    expect(queryRows(warehouse, "SELECT ts, n_ticks FROM kept_bars")).toEqual([{ ts: bar.ts, n_ticks: 2 }]);
    expect(queryRows(warehouse, barSql)).toEqual([bar]);
    // The migrated file accepts new rows, and the first version rejects it as newer.
    const write = () =>
      warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(1767225660000000, "1")], "rest"));
    expect(write().inserted).toBe(1);
    const reader = connectReader(path);
    expect(catchFailure(() => findPendingMigrations(reader, firstMigrations()))).toMatchObject({
      code: "newer_warehouse",
    });
    reader.close();
  });

  it("F13: a migration that fails halfway is rolled back and applied again the next time", () => {
    const path = join(makeTempFolder(), "mds.sqlite");
    openWriter(path, { clock: new ManualClock() }).close();
    const broken = laterMigrations(
      "CREATE TABLE new_thing (id INTEGER PRIMARY KEY) STRICT;\n--> statement-breakpoint\nSELECT no_such_function()",
    );
    const first = connectWriter(path);
    expect(() => migrate(first, { folder: broken })).toThrow("no_such_function");
    expect(
      first.database.prepare("SELECT count(*) FROM sqlite_master WHERE name = 'new_thing'").pluck().get(),
    ).toBe(0);
    expect(first.database.pragma("user_version", { simple: true })).toBe(journal().entries.length);
    expect(
      migrate(first, { folder: laterMigrations("CREATE TABLE new_thing (id INTEGER PRIMARY KEY) STRICT") }),
    ).toBe(1);
    first.close();
  });

  it("F13: a migration that is killed halfway is applied again the next time, without losing rows", async () => {
    const path = join(makeTempFolder(), "mds.sqlite");
    const warehouse = openWriter(path, { clock: new ManualClock() });
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(1, "1.5")], "rest"));
    warehouse.close();
    const sql = "ALTER TABLE index_tick_rows ADD COLUMN mood TEXT;\n--> statement-breakpoint\nSELECT ";
    const killed = startPeerProcess("migrator", path, laterMigrations(`${sql}die()`));
    expect(await killed.nextLine()).toBe("gone");
    const reader = connectReader(path);
    expect(reader.database.prepare("SELECT * FROM index_tick_rows").get()).not.toHaveProperty("mood");
    reader.close();
    const again = connectWriter(path);
    expect(migrate(again, { folder: laterMigrations(`${sql}1`) })).toBe(1);
    expect(again.database.prepare("SELECT ts, mood FROM index_tick_rows").all()).toEqual([
      { ts: 1, mood: null },
    ]);
    expect(again.database.pragma("integrity_check", { simple: true })).toBe("ok");
    again.close();
  });

  it("F13: a migration does not start without the space that it may need", () => {
    const path = join(makeTempFolder(), "mds.sqlite");
    const tiny = () => ({ type: 0xef53, bavail: 10, bsize: 4096 });
    const failure = catchFailure(() => openWriter(path, { clock: new ManualClock(), fileSystem: tiny }));
    expect(failure).toMatchObject({ code: "disk_full", exit: 75 });
    expect(existsSync(path)).toBe(false);

    const old = firstWarehouse();
    const warnings: unknown[] = [];
    const log = {
      ...silentLog,
      warn: (fields: unknown, message: string) => warnings.push({ message, fields }),
    };
    const upgrade = (fileSystem?: typeof tiny) =>
      openWriter(old, { clock: new ManualClock(), log, ...(fileSystem && { fileSystem }) });
    expect(catchFailure(() => upgrade(tiny))).toMatchObject({ code: "disk_full" });
    expect(warnings).toEqual([]);
    upgrade().close();
    const text = `from 1 to ${journal().entries.length}: 1 MB, about 1 s`;
    expect(warnings).toEqual([{ message: "upgrading warehouse", fields: { upgrade: text } }]);
  });

  it("replace the views of another version and keep a quant's own views", () => {
    const path = join(makeTempFolder(), "mds.sqlite");
    openWriter(path, { clock: new ManualClock() }).close();
    const database = new Database(path);
    database.exec(
      "CREATE VIEW my_ticks AS SELECT 1 AS one; DROP VIEW index_ticks; UPDATE warehouse_state SET views = 'old'",
    );
    database.close();
    const warehouse = openTestWarehouse({ path });
    expect(queryRows(warehouse, "SELECT one FROM my_ticks")).toEqual([{ one: 1 }]);
    expect(queryRows(warehouse, "SELECT * FROM index_ticks")).toEqual([]);
  });

  it("reject another program's database and leave it unchanged", () => {
    const path = join(makeTempFolder(), "mds.sqlite");
    const database = new Database(path);
    database.exec("CREATE TABLE theirs (x)");
    database.close();
    const before = digest(path);
    expect(catchFailure(() => openWriter(path, { clock: new ManualClock() }))).toMatchObject({
      code: "foreign_database",
      exit: 2,
    });
    expect(digest(path)).toBe(before);
  });

  it("start over when the creation of the file was interrupted", () => {
    const directory = makeTempFolder();
    const path = join(directory, "mds.sqlite");
    mkdirSync(directory, { recursive: true });
    appendFileSync(`${path}.new`, "half a database");
    const warehouse = openTestWarehouse({ path });
    expect(warehouse.quarantined).toEqual([]);
    expect(readdirSync(directory).filter((file) => file.includes(".new"))).toEqual([]);
  });
});
