import { expect, it } from "vitest";
import { SCHEMA_VERSION, schemaDigest } from "../../../src/share/schema/migrate.ts";
import { publicDocs } from "../../../src/warehouse/schema/column-docs.ts";
import { usePostgres } from "../../support/postgres.ts";

const server = usePostgres();

it("has another version number whenever tables or views change", () => {
  // Another digest: raise SCHEMA_VERSION if a release has the old one, and enter both here.
  expect({ version: SCHEMA_VERSION, digest: schemaDigest.slice(0, 16) }).toEqual({
    version: 8,
    digest: "b576916068462e4c",
  });
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

it("finds the daily bars of a day, and since a day, by an index", async () => {
  const database = await server.createDatabase();
  const read = "EXPLAIN SELECT close FROM mds.ohlcv WHERE name = 'BTC' AND day";
  const plans = await server.queryAll(database, [
    // Of an empty table a scan is always cheaper.
    "SET enable_seqscan = off",
    `${read} = '2026-03-01'`,
    `${read} >= '2026-03-01' AND day < current_date`,
  ]);
  for (const plan of plans.slice(1))
    expect(plan.map((line) => line["QUERY PLAN"]).join("\n")).toMatch(
      /daily_bar_rows_day.*Index Cond: [^\n]*to_timestamp/s,
    );
});
