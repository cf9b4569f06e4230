import { expect, it } from "vitest";
import { SCHEMA_VERSION, schemaDigest } from "../../../src/share/schema/migrate.ts";
import { publicDocs } from "../../../src/warehouse/schema/column-docs.ts";
import { barDecimals } from "../../../src/warehouse/views/bar-views.ts";
import { usePostgres } from "../../support/postgres.ts";
import { EMPTY_TEMPLATE } from "../../support/postgres-server.ts";
import { barsOfTicks } from "../../support/share/bars-of-ticks.ts";
import { addHours, failureOf, shareInto } from "../../support/share/share-harness.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const server = usePostgres();

it("has another version number whenever tables or views change", () => {
  // Another digest: raise SCHEMA_VERSION if a release has the old one, and enter both here.
  expect({ version: SCHEMA_VERSION, digest: schemaDigest.slice(0, 16) }).toEqual({
    version: 4,
    digest: "c2dda4e04b93cc9c",
  });
});

it("keeps a user's view over a relation when an upgrade replaces it", async () => {
  const database = await server.createDatabase(EMPTY_TEMPLATE);
  const warehouse = openTestWarehouse();
  await shareInto(server, database, warehouse);
  await server.query(database, "CREATE VIEW mine AS SELECT name, price FROM mds.index_ticks");
  await server.query(database, "UPDATE mds.schema_version SET digest = 'of an older program'");
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

it("refuses a schema that no release had, untouched, and says what to do", async () => {
  const database = await server.createDatabase();
  await server.query(database, "UPDATE mds.schema_version SET version = 3; DROP VIEW mds.gaps");
  expect(await failureOf(shareInto(server, database, openTestWarehouse()))).toMatchObject({
    code: "share_older",
    exit: 2,
    message: expect.stringContaining("has version 3"),
    remedy: expect.stringContaining("DROP SCHEMA mds CASCADE"),
  });
  expect(await server.query(database, "SELECT to_regclass('mds.gaps') AS gaps")).toEqual([{ gaps: null }]);
  await server.query(database, "DROP SCHEMA mds CASCADE");
  const warehouse = openTestWarehouse();
  addHours(warehouse, 0, 1);
  expect(await shareInto(server, database, warehouse)).toMatchObject({ rows: 120 });
});

/** A version of the same number did not store the exact figures of bars. */
const withoutExactFigures = [
  barsOfTicks,
  ...barDecimals.map(({ name }) => `ALTER TABLE mds.kept_bars DROP COLUMN ${name}_exact`),
  "UPDATE mds.schema_version SET digest = 'of an older program'",
].join("; ");

it("upgrades kept bars without exact figures, under a user's view and grants", async () => {
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
    `${withoutExactFigures}; CREATE ROLE bars_${database}; GRANT SELECT ON mds.bars_1h TO bars_${database}; CREATE VIEW mine AS SELECT name, close FROM mds.bars_1h`,
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
