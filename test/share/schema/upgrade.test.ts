import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { SCHEMA_VERSION } from "../../../src/share/schema/migrate.ts";
import { failureOf } from "../../support/failure-of.ts";
import { usePostgres } from "../../support/postgres.ts";
import { EMPTY_TEMPLATE } from "../../support/postgres-server.ts";
import { shareInto } from "../../support/share/share-harness.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { createEarlierWarehouse } from "../../support/warehouse/earlier-warehouse.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const server = usePostgres();
/** A dump of the database to which 0.2.0 forwarded the file of `createEarlierWarehouse`, with a month that was moved out. */
const dump = gunzipSync(readFileSync(join(import.meta.dirname, "../../support/share/earlier-schema.sql.gz")));

async function openEarlier() {
  const path = createEarlierWarehouse(join(temporaryFolder(), "mds.sqlite"));
  openTestWarehouse({ path });
  const database = await server.createDatabase(EMPTY_TEMPLATE);
  await server.query(database, dump.toString());
  return { database, warehouse: { path } };
}

/** Every table with its rows as text, but for what each connection writes. */
async function readTables(database: string): Promise<Map<string, string[]>> {
  const names = await server.query<{ name: string }>(
    database,
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'mds'::regnamespace AND relkind IN ('r', 'p')
      AND NOT relispartition AND relname NOT IN ('lease', 'months', 'schema_version', 'source') ORDER BY 1`,
  );
  const rows = await server.queryAll(
    database,
    names.map(({ name }) => `SELECT t::text AS row FROM mds.${name} t ORDER BY 1`),
  );
  return new Map(names.map(({ name }, i) => [name, (rows[i] ?? []).map(({ row }) => String(row))]));
}

it("upgrades a database of 0.2.0: every row and every range stays, but what was moved is lost", async () => {
  const { database, warehouse } = await openEarlier();
  const reader = `reader_${database}`;
  await server.query(
    database,
    `CREATE ROLE ${reader}; GRANT SELECT ON mds.index_ticks TO ${reader}; CREATE VIEW mine AS SELECT name, price FROM mds.index_ticks;
    CREATE VIEW my_days AS SELECT name, day, ts, time, close FROM mds.ohlcv`,
  );
  const myDays = () => server.query(database, "SELECT my_days::text FROM my_days ORDER BY 1");
  const [before, daysBefore] = [await readTables(database), await myDays()];
  const ledger = before.get("settled_ranges") ?? [];
  expect(ledger.filter((range) => range.includes("moved to table mds.index_tick_rows_2026_01"))).not.toEqual(
    [],
  );
  expect(ledger.filter((range) => range.includes("moved to /lake"))).not.toEqual([]);
  expect(await shareInto(server, database, warehouse, { verify: true })).toMatchObject({
    rows: 0,
    mended: 0,
  });
  const after = await readTables(database);
  const toLost = (range: string) =>
    range
      .replace(/,moved,"moved to table [^"]*"/, ",lost,detached")
      .replace(/,moved,"moved to [^"]*"/, ",lost,moved");
  // A bar has the start of its day, in a column behind the others.
  const toBarByTs = (bar: string) =>
    bar.replace(/,(\d{4}-\d\d-\d\d),(.*)\)$/, (_, day, rest) => `,${rest},${Date.parse(day) * 1000})`);
  const bars = (before.get("daily_bar_rows") ?? []).map(toBarByTs).sort();
  expect(bars).not.toEqual(before.get("daily_bar_rows"));
  expect(after).toEqual(
    new Map([...before, ["settled_ranges", ledger.map(toLost).sort()], ["daily_bar_rows", bars]]),
  );
  expect(await myDays()).toEqual(daysBefore);
  const [state] = await server.query(
    database,
    `SELECT (SELECT version FROM mds.schema_version) AS version, has_table_privilege('${reader}', 'mds.index_ticks', 'SELECT') AS granted,
      (SELECT count(*)::integer FROM mine) = (SELECT count(*)::integer FROM mds.index_ticks) AS mine,
      (SELECT array_agg(DISTINCT name) FROM mds.months WHERE is_detached AND name LIKE 'index%') AS detached`,
  );
  expect(state).toEqual({
    version: SCHEMA_VERSION,
    granted: true,
    mine: true,
    detached: ["index_tick_rows_2026_01"],
  });

  // The month that was moved out comes back with its ledger.
  await server.query(
    database,
    `ALTER TABLE mds.index_tick_rows ATTACH PARTITION mds.index_tick_rows_2026_01 FOR VALUES
      FROM (${Date.UTC(2026, 0, 1) * 1000}) TO (${Date.UTC(2026, 1, 1) * 1000})`,
  );
  await shareInto(server, database, warehouse);
  const reasons = await server.query(
    database,
    "SELECT proof, reason FROM mds.settled_ranges WHERE proof = 'lost' AND stream = 'index_ticks'",
  );
  expect(reasons).toEqual([{ proof: "lost", reason: "moved" }]);
});

it("refuses an older schema in one line, and changes nothing", async () => {
  const { database, warehouse } = await openEarlier();
  await server.query(database, "UPDATE mds.schema_version SET version = 5");
  const before = await readTables(database);
  expect(await failureOf(shareInto(server, database, warehouse))).toMatchObject({
    code: "share_older",
    exit: 2,
    message: expect.stringContaining("has version 5, from before mds-sync 0.2.0"),
    remedy: expect.stringContaining("DROP SCHEMA mds CASCADE"),
  });
  expect(await readTables(database)).toEqual(before);
});
