import { hostname } from "node:os";
import { expect, it } from "vitest";
import { checkSharedWarehouse } from "../../../src/cli/commands/doctor/shared-checks.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import type { ShareStatus } from "../../../src/model/status/share-status.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { SCHEMA_VERSION } from "../../../src/share/schema/migrate.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { usePostgres } from "../../support/postgres.ts";
import { EMPTY_TEMPLATE, PASSWORD } from "../../support/postgres-server.ts";
import { addHours, shareInto } from "../../support/share/share-harness.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const server = usePostgres();

it("status tells how far the shared warehouse is, without a daemon that answers", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  addHours(warehouse, 0, 1);
  const readShared = async (url: string): Promise<ShareStatus> => {
    const env = {
      MDS_WAREHOUSE: warehouse.path,
      MDS_SHARED_URL: url,
      MDS_SHARED_PASSWORD: PASSWORD,
      MDS_HTTP_PORT: "0",
    };
    const { stdout } = await runInProcess(["status", "--json"], { cwd: temporaryFolder(), env });
    return (JSON.parse(stdout) as { shared: ShareStatus }).shared;
  };
  const url = server.url(database);
  expect(await readShared(url)).toMatchObject({
    state: "failing",
    last_error: expect.stringContaining("nobody"),
  });
  await shareInto(server, database, warehouse);
  expect(await readShared(url)).toMatchObject({ state: "current", lag_seconds: 0, last_error: null });
  addHours(warehouse, 1, 1);
  const hold = (name: string) =>
    server.query(database, `UPDATE mds.lease SET holder = 'x', name = '${name}', until = 'infinity'`);
  await hold("south");
  expect(await readShared(url)).toMatchObject({ state: "standby", forwarded_by: "south" });
  await hold(hostname());
  expect(await readShared(url)).toMatchObject({ state: "forwarding", lag_seconds: expect.any(Number) });
  expect(await readShared("postgres://mds@127.0.0.1:1/market")).toMatchObject({
    state: "failing",
    last_error: expect.stringContaining("cannot be reached"),
  });
});

const check = (url: string) =>
  checkSharedWarehouse(
    loadSettings({ env: { MDS_SHARED_URL: url, MDS_SHARED_PASSWORD: PASSWORD } }),
    systemClock,
  );

it("doctor checks version, rights, durability and reachability of the shared warehouse", async () => {
  expect(await check("")).toEqual([]);
  const database = await server.createDatabase(EMPTY_TEMPLATE);
  // The test server runs without fsync.
  const durability = { verdict: "warning", message: expect.stringContaining("fsync off") };
  expect(await check(server.url(database))).toMatchObject([
    { verdict: "ok", message: expect.stringContaining("schema mds is created by the first run") },
    durability,
    { verdict: "ok", message: expect.stringMatching(/^role alone, name \S+; forwarded by nobody now$/) },
  ]);
  await shareInto(server, database, openTestWarehouse());
  expect(await check(server.url(database))).toMatchObject([
    { verdict: "ok", message: expect.stringContaining(`schema mds has version ${SCHEMA_VERSION}`) },
    durability,
    { verdict: "ok" },
  ]);
  await server.query(database, "UPDATE mds.lease SET holder = 'x', name = 'south', until = 'infinity'");
  expect((await check(server.url(database))).at(-1)).toMatchObject({
    verdict: "warning",
    message: expect.stringContaining("forwarded by south now"),
  });
  const guest = await server.createUser();
  await server.query(
    database,
    `GRANT SELECT ON mds.schema_version TO ${guest}; GRANT USAGE ON SCHEMA mds TO ${guest}`,
  );
  await server.query(database, "UPDATE mds.schema_version SET version = 99");
  expect(await check(server.url(database, guest))).toMatchObject([
    { verdict: "ok" },
    { verdict: "problem", message: expect.stringContaining("newer mds-sync (99)"), exit: 2 },
    {
      verdict: "problem",
      message: `user ${guest} may not create tables in schema mds, or does not own those of mds-sync`,
      exit: 2,
    },
    durability,
    { verdict: "ok" },
  ]);
  // Someone else's schema: nothing in it may be read.
  await server.query(database, `REVOKE USAGE ON SCHEMA mds FROM ${guest}`);
  expect(await check(server.url(database, guest))).toMatchObject([
    { verdict: "ok" },
    { verdict: "problem", remedy: expect.stringContaining(`ALTER SCHEMA mds OWNER TO "${guest}"`), exit: 2 },
    durability,
    { verdict: "ok" },
  ]);
  expect(await check("postgres://mds@127.0.0.1:1/market")).toMatchObject([{ verdict: "problem", exit: 75 }]);
});
