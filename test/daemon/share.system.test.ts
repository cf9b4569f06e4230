import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { ShareStatus } from "../../src/model/status/share-status.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { startSimulator } from "../simulator/simulator.ts";
import { watchDaemon } from "../support/daemon/installed-daemon.ts";
import { useOwnPostgres } from "../support/postgres.ts";
import { PASSWORD } from "../support/postgres-server.ts";
import { startProgram } from "../support/program-process.ts";
import { expectSameInBoth, shareInto } from "../support/share/share-harness.ts";
import { serviceEnv } from "../support/sync/sync-session.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = useOwnPostgres();
const settings = (url: string) => `service: { refreshSeconds: 15 }
warehouse: { path: mds.sqlite }
sync:
  ohlcv: false
  intraday: { GWA: [BTC], MWA: none, LX: none, days: 1 }
  exchangeTickers: { exchanges: [Kraken], markets: all }
  marketCap: { every: 30s }
  derivatives: { exchanges: [Kraken], types: [perpetuals], every: 10s }
http: { port: 0 }
shared: { url: "${url}", passwordFile: password, name: desk }
`;
/** Each look connects to the server. */
const LOOK_INTERVAL_MS = 200;
const streams = ["exchange_ticks", "market_caps", "derivative_ticks"];
const relations = [...streams, "coverage", "assets", "derivative_contracts"];

it("I1: forwards all streams while it runs, stays healthy without PostgreSQL, and catches up", async () => {
  // The next refresh of every stream is a few seconds away.
  const aheadMs = 24_000 - (systemClock.now() % 30_000);
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const simulator = await startSimulator({ refreshSeconds: 15, clock });
  onTestFinished(() => simulator.stop());
  const database = await server.createDatabase();
  const folder = temporaryFolder();
  writeFileSync(join(folder, "mds-sync.yaml"), settings(server.url(database)));
  writeFileSync(join(folder, "password"), PASSWORD, { mode: 0o600 });
  const { child } = startProgram(["run", "--no-progress"], { cwd: folder, env: serviceEnv(simulator) });
  const daemon = watchDaemon(child);
  await daemon.waitUntilFilled();
  const getStatus = async (): Promise<ShareStatus> =>
    JSON.parse((await daemon.get("/api/status")).text).shared;
  const reach = (state: ShareStatus["state"], minRows = 0) =>
    waitUntil(async () => {
      const status = await getStatus();
      return status.state === state && status.rows_forwarded >= minRows && status;
    }, LOOK_INTERVAL_MS);
  const current = await reach("current", 5_000);
  expect(current).toMatchObject({ name: "desk", role: "alone", last_error: null });
  const getMetrics = async () => (await daemon.get("/metrics")).text;
  expect(await getMetrics()).toMatch(/^mds_sync_shared_forwarding 1$.*^mds_sync_shared_failing 0$/ms);
  const count = async () =>
    Number((await server.query(database, "SELECT count(*) AS rows FROM mds.exchange_ticks"))[0]?.rows);
  const waitForRows = (expected: readonly string[]) => {
    const sql = expected.map((relation) => `(SELECT 1 FROM mds.${relation} LIMIT 1)`).join(" UNION ALL ");
    const hasRows = async () => (await server.query(database, sql)).length === expected.length;
    return waitUntil(hasRows, LOOK_INTERVAL_MS);
  };
  const before = await count();
  await waitUntil(async () => (await count()) > before, LOOK_INTERVAL_MS);
  // Of each stream something has arrived before the server stops.
  await waitForRows(streams);
  // The month in progress must come back by itself.
  const month = new Date().toISOString().slice(0, 7).replace("-", "_");
  await server.query(
    database,
    `ALTER TABLE mds.exchange_tick_rows DETACH PARTITION mds.exchange_tick_rows_${month}`,
  );

  await server.stop();
  // It may have noticed the detached month before.
  await waitUntil(async () => (await reach("failing")).last_error?.includes("nothing is lost"));
  expect((await daemon.get("/healthz")).status).toBe(200);
  expect(await getMetrics()).toMatch(/^mds_sync_shared_forwarding 0$.*^mds_sync_shared_failing 1$/ms);
  await server.start();
  await reach("current");
  // It copies the lookups each minute, and whenever it connects.
  await waitForRows(relations);
  await daemon.stop();
  expect(daemon.stderr()).not.toContain(PASSWORD);
  expect(await server.query(database, "SELECT holder, name FROM mds.lease")).toEqual([
    { holder: "", name: "desk" },
  ]);

  const warehouse = openTestWarehouse({ path: join(folder, "mds.sqlite") });
  await shareInto(server, database, warehouse);
  for (const relation of relations) await expectSameInBoth(server, database, warehouse, relation);
  const ticks = await expectSameInBoth(server, database, warehouse, "index_ticks", "is_settled");
  expect(ticks).toBeGreaterThan(5_000);
  expect(await shareInto(server, database, warehouse, { verify: true })).toMatchObject({
    rows: 0,
    mended: 0,
  });
});
