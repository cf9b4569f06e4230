import { hostname } from "node:os";
import { expect, it } from "vitest";
import type { ShareStatus } from "../../../src/model/status/share-status.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { usePostgres } from "../../support/postgres.ts";
import { PASSWORD } from "../../support/postgres-server.ts";
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
