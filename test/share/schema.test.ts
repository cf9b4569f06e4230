import { expect, it } from "vitest";
import { SCHEMA_VERSION, schemaDigest } from "../../src/share/schema/migrate.ts";
import { publicDocs } from "../../src/warehouse/schema/column-docs.ts";
import { usePostgres } from "../support/postgres.ts";
import { EMPTY_TEMPLATE } from "../support/postgres-server.ts";
import { shareInto } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = usePostgres();

it("has another version number whenever tables or views change", () => {
  // Another digest: raise SCHEMA_VERSION if a release has the old one, and enter both here.
  expect({ version: SCHEMA_VERSION, digest: schemaDigest.slice(0, 16) }).toEqual({
    version: 1,
    digest: "fcfbfdfbd1303dcc",
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
