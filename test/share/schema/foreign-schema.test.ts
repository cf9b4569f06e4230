import { expect, it } from "vitest";
import { checkSharedWarehouse } from "../../../src/cli/commands/doctor/shared-checks.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { failureOf } from "../../support/failure-of.ts";
import { usePostgres } from "../../support/postgres.ts";
import { EMPTY_TEMPLATE, PASSWORD } from "../../support/postgres-server.ts";
import { openShared } from "../../support/share/share-harness.ts";

const server = usePostgres();

const readRelations = (database: string) =>
  server.query(
    database,
    `SELECT c.relname, count(a.attname)::integer AS columns FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'mds'::regnamespace AND c.relkind <> 'i' GROUP BY 1 ORDER BY 1`,
  );

const doctor = (database: string, user?: string) =>
  checkSharedWarehouse(
    loadSettings({ env: { MDS_SHARED_URL: server.url(database, user), MDS_SHARED_PASSWORD: PASSWORD } }),
    systemClock,
  );

it.each([
  ["assets", "CREATE TABLE mds.assets (id text PRIMARY KEY, name text)"],
  ["gaps", "CREATE VIEW mds.gaps AS SELECT 1 AS gap"],
  ["schema_version", "CREATE TABLE mds.schema_version (version text)"],
])("refuses a team's own schema mds that has a relation %s, and leaves it untouched", async (name, sql) => {
  const { database, forward, query } = await openShared(server, { hours: 1, template: EMPTY_TEMPLATE });
  await query(`CREATE SCHEMA mds; ${sql}`);
  if (name === "assets")
    await query("INSERT INTO mds.assets SELECT i, 'own' FROM generate_series(1, 1000) i");
  const before = await readRelations(database);
  const refused = await failureOf(forward());
  expect(refused).toMatchObject({ code: "share_foreign", exit: 2, message: expect.stringContaining(name) });
  expect(await readRelations(database)).toEqual(before);
  if (name === "assets")
    expect(await query("SELECT count(*)::integer AS rows FROM mds.assets")).toEqual([{ rows: 1000 }]);
  expect(await doctor(database)).toContainEqual(
    expect.objectContaining({ verdict: "problem", exit: 2, message: expect.stringContaining(name) }),
  );
});

it("shares a schema mds that has relations of other names", async () => {
  const { forward, query } = await openShared(server, { hours: 1, template: EMPTY_TEMPLATE });
  await query("CREATE SCHEMA mds; CREATE TABLE mds.notes AS SELECT 1 AS note");
  expect(await forward()).toMatchObject({ rows: 120 });
  expect(await query("SELECT note FROM mds.notes")).toEqual([{ note: 1 }]);
});

it("finds nothing wrong in a colleague's own table beside ours", async () => {
  const { database, forward, query } = await openShared(server, { template: EMPTY_TEMPLATE });
  const [user, colleague] = [await server.createUser(), await server.createUser()];
  await query(`ALTER DATABASE ${database} OWNER TO ${user}`);
  await forward({ url: server.url(database, user) });
  await query(`CREATE TABLE mds.notes (note text); ALTER TABLE mds.notes OWNER TO ${colleague}`);
  const problems = (await doctor(database, user)).filter(({ verdict }) => verdict === "problem");
  expect(problems).toEqual([]);
  await query(`ALTER TABLE mds.lease OWNER TO ${colleague}`);
  expect(await doctor(database, user)).toContainEqual(
    expect.objectContaining({ verdict: "problem", message: expect.stringContaining(`user ${user} may not`) }),
  );
});
