import { expect, it } from "vitest";
import { toPostgres } from "../../src/share/schema/gaps-view.ts";
import { SCHEMA_VERSION, schemaDigest } from "../../src/share/schema/migrate.ts";
import { gapPartsSql } from "../../src/warehouse/coverage/gaps.ts";
import { usePostgres } from "../support/postgres.ts";
import { EMPTY_TEMPLATE } from "../support/postgres-server.ts";
import { shareInto } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = usePostgres();

it("has another version number whenever tables or views change", () => {
  // Another digest: raise SCHEMA_VERSION if a release has the old one, and enter both here.
  expect({ version: SCHEMA_VERSION, digest: schemaDigest.slice(0, 16) }).toEqual({
    version: 1,
    digest: "5d9275a91dbfc39b",
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

it("translates the SQL of the gaps without leaving a function that PostgreSQL reads otherwise", () => {
  const sql = toPostgres(gapPartsSql);
  expect(sql).not.toMatch(/strftime|ifnull|total\(/);
  expect(toPostgres("max(a, min(b, c, 0)) + max(d)")).toBe("mds.larger(a, mds.smaller(b, c, 0)) + max(d)");
});
