import { expect, it } from "vitest";
import { SCHEMA_VERSION, schemaDigest } from "../../../src/share/schema/migrate.ts";
import { openTarget } from "../../../src/warehouse/coverage/targets.ts";
import { publicDocs } from "../../../src/warehouse/schema/column-docs.ts";
import { barDecimals } from "../../../src/warehouse/views/bar-views.ts";
import { usePostgres } from "../../support/postgres.ts";
import { EMPTY_TEMPLATE } from "../../support/postgres-server.ts";
import { barsOfVersion3, toVersion3 } from "../../support/share/bars-of-version-3.ts";
import { addHours, HOURS_BEGIN, shareInto } from "../../support/share/share-harness.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const server = usePostgres();

it("has another version number whenever tables or views change", () => {
  // Another digest: raise SCHEMA_VERSION if a release has the old one, and enter both here.
  expect({ version: SCHEMA_VERSION, digest: schemaDigest.slice(0, 16) }).toEqual({
    version: 6,
    digest: "0fe368a6036d2ac3",
  });
});

it("keeps a user's view over a relation when an upgrade replaces it", async () => {
  const database = await server.createDatabase(EMPTY_TEMPLATE);
  const warehouse = openTestWarehouse();
  await shareInto(server, database, warehouse);
  await server.query(database, "CREATE VIEW mine AS SELECT name, price FROM mds.index_ticks");
  await server.query(database, "UPDATE mds.schema_version SET digest = 'of an older program', version = 0");
  await shareInto(server, database, warehouse);
  expect(await server.query(database, "SELECT * FROM mine")).toEqual([]);
  expect(await server.query(database, "SELECT version FROM mds.schema_version")).toEqual([
    { version: SCHEMA_VERSION },
  ]);
});

it("explains every public relation and column where a tool shows it", async () => {
  const database = await server.createDatabase();
  const lacking = await server.query(
    database,
    `SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
      WHERE c.relnamespace = 'mds'::regnamespace AND (c.relkind = 'v' OR c.relname = ANY ($1)) AND col_description(c.oid, a.attnum) IS NULL`,
    [Object.keys(publicDocs)],
  );
  expect(lacking).toEqual([]);
  expect(await server.query(database, "SELECT obj_description('mds.gaps'::regclass) AS gaps")).toEqual([
    { gaps: publicDocs.gaps?.summary },
  ]);
});

/** A version of the same number did not store the exact figures of bars. */
const withoutExactFigures = [
  barsOfVersion3,
  ...barDecimals.map(({ name }) => `ALTER TABLE mds.kept_bars DROP COLUMN ${name}_exact`),
  "UPDATE mds.schema_version SET digest = 'of an older program'",
].join("; ");

it.each([
  ["version 3, which kept no bars", toVersion3],
  ["kept bars without exact figures", withoutExactFigures],
])("upgrades %s, under a user's view and grants", async (_, toOlder) => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  addHours(warehouse, 0, 30);
  await shareInto(server, database, warehouse);
  const read = () =>
    server.queryAll(
      database,
      ["bars_1h", "bars_4h", "bars_1d"].map((view) => `SELECT * FROM mds.${view} ORDER BY ts`),
    );
  const before = await read();
  expect(before.map((rows) => rows.length)).toEqual([30, 8, 2]);
  await server.query(
    database,
    `${toOlder}; CREATE ROLE bars_${database}; GRANT SELECT ON mds.bars_1h TO bars_${database}; CREATE VIEW mine AS SELECT name, close FROM mds.bars_1h`,
  );
  await shareInto(server, database, warehouse);
  expect(await read()).toEqual(before);
  expect(
    await server.query(
      database,
      `SELECT has_table_privilege('bars_${database}', 'mds.bars_1h', 'SELECT') AS granted, (SELECT count(*)::integer FROM mine) AS mine,
        (SELECT count(n_ticks)::integer FROM mds.kept_bars) AS kept, (SELECT count(*)::integer FROM mds.kept_bars) AS bars`,
    ),
  ).toEqual([{ granted: true, mine: 30, kept: 40, bars: 40 }]);
});

/** What version 2 called its tables and columns. */
const namesOfVersion2 = `DROP TABLE mds.kept_bars CASCADE; ALTER TABLE mds.targets RENAME TO wanted_ranges;
  ALTER TABLE mds.wanted_ranges RENAME COLUMN service_window TO kept_for;
  ALTER TABLE mds.wanted_ranges RENAME COLUMN is_snapshot TO observed;
  ALTER TABLE mds.wanted_ranges RENAME COLUMN blocked_reason TO hindrance;
  ALTER TABLE mds.contracts RENAME COLUMN is_described TO described;
  ALTER TABLE mds.contracts RENAME COLUMN details TO aside;
  ALTER TABLE mds.index_tick_rows RENAME COLUMN details TO aside;
  ALTER TABLE mds.daily_bar_rows RENAME COLUMN details TO aside;
  ALTER TABLE mds.exchange_tick_rows RENAME COLUMN details TO aside;
  ALTER TABLE mds.market_cap_rows RENAME COLUMN details TO aside;
  ALTER TABLE mds.derivative_tick_rows RENAME COLUMN details TO aside;
  UPDATE mds.schema_version SET version = 2, digest = 'of version 2'`;

it("upgrades the names of version 2 and keeps every row", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  addHours(warehouse, 0, 1);
  const rules = { settleDelay: 60_000_000, period: 30_000_000, step: 1, serviceWindow: 86_400_000_000 };
  const key = { stream: "index_ticks", series: 1 } as const;
  warehouse.transaction((t) => openTarget(t, { key, from: HOURS_BEGIN, ...rules }, false));
  await shareInto(server, database, warehouse);
  const read = () =>
    server.query(
      database,
      `SELECT (SELECT count(*) FROM mds.index_ticks) AS ticks, (SELECT json_agg(t) FROM mds.targets t) AS targets,
        (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'mds.contracts'::regclass AND attnum > 0) AS columns`,
    );
  const before = await read();
  await server.query(database, namesOfVersion2);
  await shareInto(server, database, warehouse);
  expect(await read()).toEqual(before);
  expect(before).toMatchObject([
    { ticks: "120", columns: expect.arrayContaining(["details", "is_described"]) },
  ]);
});
