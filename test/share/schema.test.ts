import { expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { SCHEMA_VERSION, schemaDigest } from "../../src/share/schema/migrate.ts";
import { publicDocs } from "../../src/warehouse/schema/column-docs.ts";
import { usePostgres } from "../support/postgres.ts";
import { EMPTY_TEMPLATE } from "../support/postgres-server.ts";
import { addHours, failureOf, shareInto } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = usePostgres();

it("has another version number whenever tables or views change", () => {
  // Another digest: raise SCHEMA_VERSION if a release has the old one, and enter both here.
  expect({ version: SCHEMA_VERSION, digest: schemaDigest.slice(0, 16) }).toEqual({
    version: 2,
    digest: "ea45534d45e20aa0",
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
      WHERE c.relnamespace = 'mds'::regnamespace AND c.relkind = 'v' AND col_description(c.oid, a.attnum) IS NULL`,
  );
  expect(lacking).toEqual([]);
  expect(await server.query(database, "SELECT obj_description('mds.gaps'::regclass) AS gaps")).toEqual([
    { gaps: publicDocs.gaps?.summary },
  ]);
});

/** What version 1 had in place of `mds.lease`. */
const leasesOfVersion1 = `DROP TABLE mds.lease;
  CREATE TABLE mds.leases (bucket integer PRIMARY KEY, epoch bigint NOT NULL, holder text NOT NULL, name text NOT NULL,
    until timestamptz NOT NULL) WITH (fillfactor = 50);
  CREATE TABLE mds.members (holder text PRIMARY KEY, name text NOT NULL, until timestamptz NOT NULL);
  INSERT INTO mds.leases SELECT bucket, bucket, '', 'south', '-infinity' FROM generate_series(0, 63) bucket;
  UPDATE mds.leases SET holder = 'mds-sync of north', name = 'north', until = 'infinity' WHERE bucket = 7;
  UPDATE mds.schema_version SET version = 1, digest = 'of version 1'`;

it("upgrades the leases of version 1 to one: who held some keeps it to its end, and an older epoch never returns", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  addHours(warehouse, 0, 1);
  await shareInto(server, database, warehouse);
  await server.query(database, leasesOfVersion1);
  const hasty: Clock = { ...systemClock, sleep: async () => {} };
  const held = await failureOf(shareInto(server, database, warehouse, { clock: hasty }));
  expect(held).toMatchObject({ code: "share_held", exit: 75, message: expect.stringContaining("north") });
  const readTables = () =>
    server.query(
      database,
      "SELECT relname AS name FROM pg_class WHERE relnamespace = 'mds'::regnamespace AND relname IN ('lease', 'leases', 'members')",
    );
  expect(await readTables()).toEqual([{ name: "lease" }]);
  await server.query(database, "UPDATE mds.lease SET until = clock_timestamp() - interval '1 second'");
  addHours(warehouse, 1, 1);
  expect(await shareInto(server, database, warehouse)).toMatchObject({ rows: 120 });
  expect(await server.query(database, "SELECT epoch, name FROM mds.lease")).toEqual([
    { epoch: "64", name: "test" },
  ]);
});
