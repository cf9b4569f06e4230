import { createHash } from "node:crypto";
import { appendFileSync, cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../src/runtime/log.ts";
import { LAST_REFUSED_VERSION, migrate, migrationsFolder } from "../../src/warehouse/migrate.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { publicDocs } from "../../src/warehouse/schema/column-docs.ts";
import * as coverage from "../../src/warehouse/schema/coverage.ts";
import * as lookups from "../../src/warehouse/schema/lookups.ts";
import * as rowSchema from "../../src/warehouse/schema/rows.ts";
import { connectReader, connectWriter } from "../../src/warehouse/sqlite/connection.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { createEarlierWarehouse } from "../support/warehouse/earlier-warehouse.ts";
import { catchFailure, openTestWarehouse, queryRows } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { startPeerProcess } from "../support/warehouse/start-peer-process.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

const tables = Object.values({ ...rowSchema, ...lookups, ...coverage }) as SQLiteTable[];

type Journal = { entries: { idx: number; when: number; tag: string }[] };
const journal = () =>
  JSON.parse(readFileSync(join(migrationsFolder, "meta/_journal.json"), "utf8")) as Journal;

const digest = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

const version = () => LAST_REFUSED_VERSION + journal().entries.length;

/** The migrations with one more at the end, as a later version would have them. */
function laterMigrations(sql: string): string {
  const folder = join(temporaryFolder(), "migrations");
  cpSync(migrationsFolder, folder, { recursive: true });
  const { entries } = journal();
  const idx = entries.length;
  const when = (entries.at(-1)?.when ?? 0) + 1;
  const next = { idx, version: "6", when, tag: `000${idx}_later`, breakpoints: true };
  writeFileSync(join(folder, `${next.tag}.sql`), sql);
  const written = JSON.stringify({ ...journal(), entries: [...entries, next] });
  writeFileSync(join(folder, "meta/_journal.json"), written);
  return folder;
}

const earlierWarehouse = () => createEarlierWarehouse(join(temporaryFolder(), "mds.sqlite"));

/** Every table with its rows. */
function readContents(database: Database.Database): Map<string, Record<string, unknown>[]> {
  const names = database
    .prepare<[], string>(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE '\\_\\_%' ESCAPE '\\'",
    )
    .pluck()
    .all();
  const rowsOf = (name: string) =>
    database.prepare<[], Record<string, unknown>>(`SELECT * FROM "${name}"`).all();
  return new Map(names.map((name) => [name, rowsOf(name)]));
}

/** The definition of every table, index and trigger, without the quotes that a rename adds and a default that it leaves. */
function readDefinitions({ connection: { database } }: WarehouseWriter): unknown[] {
  const columns = database
    .prepare(
      `SELECT t.name AS "table", c.cid, c.name, c.type, c."notnull", c.pk, t.strict, t.wr FROM pragma_table_list t
        JOIN pragma_table_xinfo(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY 1, 2`,
    )
    .all();
  const others = database
    .prepare<[], string>(
      "SELECT sql FROM sqlite_master WHERE type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY name",
    )
    .pluck()
    .all();
  return [...columns, ...others.map((sql) => sql.replace(/["`]/g, ""))];
}

describe("migrations", () => {
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
      const actual = info.map(({ name, type, notnull, pk }) => ({
        ...{ name, type: String(type).toUpperCase(), notnull, pk },
      }));
      // A migration appends its columns to a table, wherever the schema has them.
      const byName = (columns: { name: unknown }[]) =>
        columns.toSorted((a, b) => String(a.name).localeCompare(String(b.name)));
      expect({ name, columns: byName(actual) }).toEqual({ name, columns: byName(declared) });
    }
  });

  it("F12: a warehouse of a newer version is rejected unchanged, with exit code 2", () => {
    const path = join(temporaryFolder(), "mds.sqlite");
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

  it("F14: a warehouse of 0.2.0 keeps every row and every range, but what was moved is lost", () => {
    const path = earlierWarehouse();
    const old = new Database(path);
    const before = readContents(old);
    old.close();
    expect([...before].filter(([, rows]) => rows.length === 0)).toEqual([]);
    const warehouse = openTestWarehouse({ path });
    expect(warehouse.quarantined).toEqual([]);
    const after = readContents(warehouse.connection.database);
    const own = { epoch: expect.any(Number), views: expect.any(String) };
    const expected = new Map(before);
    // Every writer advances the epoch, and has its own views.
    expected.set("warehouse_state", [{ ...before.get("warehouse_state")?.[0], ...own }]);
    const isMoved = ({ proof }: Record<string, unknown>) => proof === "moved";
    const ledger = before.get("settled_ranges") ?? [];
    const [usd, eth, ethNext] = ledger.filter(isMoved);
    const lost = { proof: "lost", reason: "moved" };
    // Those of one series touch, and are one range now.
    const inPlace = [
      { ...usd, ...lost },
      { ...eth, ...lost, to_ts: ethNext?.to_ts },
    ];
    const isSame = (a: Record<string, unknown>, b: Record<string, unknown>) =>
      ["stream", "series", "from_ts"].every((name) => a[name] === b[name]);
    expected.set(
      "settled_ranges",
      ledger
        .filter((range) => range !== ethNext)
        .map((range) => (isMoved(range) ? inPlace.find((each) => isSame(each, range)) : range) ?? {}),
    );
    // Earlier states would need the ticks that have left the file.
    const [first, ...commits] = before.get("commits") ?? [];
    const kept = commits.filter(({ seq }) => Number(seq) >= Number(ethNext?.since));
    expected.set("commits", [{ ...first, at: kept[0]?.at }, ...kept]);
    expected.set("snapshot_states", []);
    expected.set("row_parts", [{ part: 0, opened_at: 0 }]);
    const changes = before.get("changes") ?? [];
    const withKeys = changes.map((change) => ({ ...change, keys: 1 }));
    expected.set("changes", withKeys);
    // A bar has the start of its day.
    for (const table of ["daily_bar_rows", "past_daily_bar_rows"])
      expected.set(
        table,
        (before.get(table) ?? []).map(({ day, ...bar }) => ({ ...bar, ts: Date.parse(String(day)) * 1000 })),
      );
    // Revisions are the numbered versions of the past, and of a stream that kept none, versions of unknown beginning.
    expect(queryRows(warehouse, "SELECT * FROM revision_rows ORDER BY revision")).toEqual(
      before.get("revision_rows"),
    );
    expected.delete("revision_rows");
    for (const stream of ["exchange_tick", "market_cap", "derivative_tick"]) {
      const added = stream === "exchange_tick" ? { since: null, confirmed: null } : { since: null };
      const rows = before.get(`${stream}_rows`) ?? [];
      // The rows of the history have their keys for slots.
      expected.delete(`${stream}_rows`);
      expected.set(
        `${stream}_slots`,
        rows.map(({ listing, series, contract, ...row }) => ({
          slot: listing ?? series ?? contract,
          ...row,
          ...added,
        })),
      );
      expected.set(`past_${stream}_rows`, []);
    }
    for (const table of ["past_tick_rows", "past_daily_bar_rows"]) {
      const rows = expected.get(table) ?? [];
      // The commit that ended a version may have been forgotten with the ticks that were moved.
      const versions = rows.map(({ until: _until, ...version }) => expect.objectContaining(version));
      expect(after.get(table)).toEqual(expect.arrayContaining(versions));
      expected.set(table, after.get(table) ?? []);
    }
    // The revisions that are older than the first commit have commits of their own.
    const isOfRevision = ({ seq }: Record<string, unknown>) => Number(seq) < 0;
    const ofRevisions = (after.get("commits") ?? []).filter(isOfRevision);
    expected.set("commits", [...ofRevisions, ...(expected.get("commits") ?? [])]);
    expect(after).toEqual(expected);
    expect(readDefinitions(warehouse)).toEqual(readDefinitions(openTestWarehouse()));
  });

  it("F14: all views of a warehouse of 0.2.0 work, and a quant's own stay", () => {
    const warehouse = openTestWarehouse({ path: earlierWarehouse() });
    const views = queryRows(warehouse, "SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name");
    for (const { name } of views.filter(({ name }) => name !== "my_broken"))
      expect(() => queryRows(warehouse, `SELECT * FROM "${String(name)}"`), String(name)).not.toThrow();
    expect(views).toEqual(expect.arrayContaining([{ name: "my_broken" }]));
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM my_ticks")).toEqual([{ n: 633 }]);
    const exact = "SELECT price_exact FROM index_ticks WHERE price_exact LIKE '67012.%'";
    expect(queryRows(warehouse, exact)).toEqual([{ price_exact: "67012.123456789012345678" }]);
    const gaps = "SELECT state FROM gaps WHERE stream = 'index_ticks' AND reason = 'forbidden' LIMIT 1";
    expect(queryRows(warehouse, gaps)).toEqual([{ state: "open" }]);
    const write = () => storeTicks(warehouse, [tick(1767225660000000, "1")]);
    expect(write().inserted).toBe(1);
  });

  it("keep every column of the public relations, with its type and in its order", () => {
    const path = earlierWarehouse();
    const readColumns = (database: Database.Database) =>
      Object.keys(publicDocs).flatMap((relation) =>
        database
          .prepare<[string], Record<string, unknown>>("SELECT name, type FROM pragma_table_info(?)")
          .all(relation)
          // SQLite calls an INTEGER that a view computes INT.
          .map(({ name, type }) => ({ relation, name, type: type === "INT" ? "INTEGER" : type })),
      );
    const old = new Database(path);
    const before = readColumns(old);
    old.close();
    const now = readColumns(openTestWarehouse({ path }).connection.database);
    const isEarlier = new Set(before.map(({ relation, name }) => `${relation}.${name}`));
    expect(now.filter(({ relation, name }) => isEarlier.has(`${relation}.${name}`))).toEqual(before);
    expect(before.length).toBeGreaterThan(500);
  });

  it("F14: a warehouse of an older version is refused unchanged, with exit code 2", () => {
    const path = earlierWarehouse();
    const old = new Database(path);
    old.pragma(`user_version = ${LAST_REFUSED_VERSION}`);
    old.close();
    const before = digest(path);
    for (const open of [() => openWriter(path, { clock: new ManualClock() }), () => openReader(path)])
      expect(catchFailure(open)).toMatchObject({
        ...{ code: "older_warehouse", exit: 2 },
        remedy: expect.stringMatching(
          /^move it away but keep it, .* exchange ticks, market caps and derivatives /,
        ),
      });
    expect(digest(path)).toBe(before);
  });

  it("F13: a migration that is killed halfway is applied again the next time, without losing rows", async () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const warehouse = openWriter(path, { clock: new ManualClock() });
    storeTicks(warehouse, [tick(1, "1.5")]);
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

  it("F13: an upgrade that is killed after some of its migrations leaves views that plain SQL reads", async () => {
    const path = earlierWarehouse();
    const killed = startPeerProcess("migrator", path, laterMigrations("SELECT die()"));
    expect(await killed.nextLine()).toBe("gone");
    const plain = new Database(path, { readonly: true });
    const named = plain.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'view'").pluck();
    for (const name of named.all().filter((view) => view !== "my_broken"))
      expect(() => plain.prepare(`SELECT * FROM "${name}" LIMIT 1`).all(), name).not.toThrow();
    plain.close();
  });

  it("F13: a migration does not start without the space that it may need", () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const tiny = () => ({ type: 0xef53, bavail: 10, bsize: 4096 });
    const failure = catchFailure(() => openWriter(path, { clock: new ManualClock(), fileSystem: tiny }));
    expect(failure).toMatchObject({ code: "disk_full", exit: 75 });
    expect(existsSync(path)).toBe(false);

    const old = earlierWarehouse();
    const warnings: unknown[] = [];
    const warn = (fields: unknown, message: string) => warnings.push({ message, fields });
    const log = { ...silentLog, warn };
    const upgrade = (fileSystem?: typeof tiny) =>
      openWriter(old, { clock: new ManualClock(), log, ...(fileSystem && { fileSystem }) });
    expect(catchFailure(() => upgrade(tiny))).toMatchObject({ code: "disk_full" });
    expect(warnings).toEqual([]);
    upgrade().close();
    const text = `from 19 to ${version()}: 1 MB, about 1 s`;
    expect(warnings).toEqual([{ message: "upgrading warehouse", fields: { upgrade: text } }]);
  });

  it("start over when the creation of the file was interrupted", () => {
    const directory = temporaryFolder();
    const path = join(directory, "mds.sqlite");
    appendFileSync(`${path}.new`, "half a database");
    const warehouse = openTestWarehouse({ path });
    expect(warehouse.quarantined).toEqual([]);
    expect(readdirSync(directory).filter((file) => file.includes(".new"))).toEqual([]);
  });
});
