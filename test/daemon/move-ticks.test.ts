import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type HeldDayFinder, moveExportedDays, moveJob } from "../../src/daemon/move-ticks.ts";
import { commitRetraction, moveDays } from "../../src/ingest/commit/bookkeeping.ts";
import { INTRADAY_WINDOW } from "../../src/model/streams.ts";
import { findHeldDays } from "../../src/share/held-days.ts";
import { describePlace, parseServerAddress } from "../../src/share/server/server-address.ts";
import type { SyncContext } from "../../src/sync/context/context.ts";
import { listHeldDays } from "../../src/warehouse/rows/moved-rows.ts";
import { createDaemonHarness } from "../support/daemon/daemon-harness.ts";
import { DAY, midnight } from "../support/export/sample-data.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { usePostgres } from "../support/postgres.ts";
import { PASSWORD } from "../support/postgres-server.ts";
import { ProxiedPostgres } from "../support/share/proxied-postgres.ts";
import { addTickDays, shareInto, shareOptions } from "../support/share/share-harness.ts";
import { waitUntil } from "../support/wait-until.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../support/warehouse/empty-warehouse.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = usePostgres();
const settings = `
retention: { indexTicks: 1d }
sync:
  lookups: { every: 1d }
  confirmEvery: 1h
  ohlcv: false
  intraday: { GWA: [BTC], MWA: none, LX: none, days: 2 }
  exchangeTickers: false
  marketCap: false
  derivatives: false
`;

it("F21: the daemon moves index ticks to PostgreSQL at night", async () => {
  const database = await server.createDatabase();
  const daemon = await createDaemonHarness({ start: "2026-03-01T23:58:07Z" });
  writeFileSync(join(daemon.folder, "password"), PASSWORD, { mode: 0o600 });
  const shared = `shared: { url: "${server.url(database)}", passwordFile: ${daemon.folder}/password }`;
  daemon.configure(settings + shared);
  copyEmptyWarehouse(daemon.path, viewsBesideSync);
  const run = await daemon.startFilled();
  const old = "index_ticks WHERE time >= '2026-02-28' AND time < '2026-03-01'";
  const countShared = async () =>
    Number((await server.query(database, `SELECT count(*) AS n FROM mds.${old}`))[0]?.n);
  // Forwarding has a clock of its own, the machine's.
  await waitUntil(async () => (await countShared().catch(() => 0)) === 2880);
  const moved = () => daemon.query("SELECT from_time, to_time, reason FROM coverage WHERE proof = 'moved'");
  await run.runUntil(() => moved().length === 1);
  expect(moved()).toEqual([
    {
      from_time: "2026-02-28T00:00:00.000000Z",
      to_time: "2026-03-01T00:00:00.000000Z",
      reason: `moved to postgres://127.0.0.1:${server.port}/${database}`,
    },
  ]);
  expect(daemon.query(`SELECT count(*) AS n FROM ${old}`)).toEqual([{ n: 0 }]);
  expect(daemon.query("SELECT count(*) AS n FROM gaps WHERE to_time < '2026-03-01'")).toEqual([{ n: 0 }]);
  await run.stop();
  expect(await countShared()).toBe(2880);
});

/** A warehouse with PostgreSQL, and what the jobs need of the daemon. */
async function createJobs() {
  const clock = new ManualClock(midnight / 1000);
  const warehouse = openTestWarehouse({ clock });
  const database = await server.createDatabase();
  const proxied = await ProxiedPostgres.start(server);
  const options = shareOptions(proxied, database, warehouse);
  const logged: string[] = [];
  const log = (_: unknown, message: string) => void logged.push(message);
  const operations = { moveDays, commitRetraction } as Record<string, (...values: never[]) => unknown>;
  const context = {
    clock,
    client: { serverNow: () => undefined },
    signal: new AbortController().signal,
    log: { debug: log, info: log, warn: log, error: log },
    ingest: { call: async (name: string, values: never) => operations[name]?.(warehouse as never, values) },
  } as unknown as SyncContext;
  const shared: HeldDayFinder = {
    place: describePlace(parseServerAddress(options.url)),
    findHeldDays: (request) => findHeldDays(options, request),
  };
  const reasons = () =>
    warehouse.connection.statement("SELECT reason FROM coverage ORDER BY from_ts").pluck().all();
  return { warehouse, database, proxied, context, shared, logged, reasons };
}

it("F21: with an export too, moves only what PostgreSQL has as well", async () => {
  const { warehouse, database, proxied, context, shared, logged, reasons } = await createJobs();
  const start = midnight - 4 * DAY;
  const series = addTickDays(warehouse, start, [24, 24]);
  const exported = () =>
    listHeldDays(warehouse.connection, { keys: [series], from: start, to: start + 2 * DAY });
  const move = () => moveExportedDays(context, { place: "/lake", days: exported(), shared });
  await move();
  expect(reasons()).toEqual([null]);
  await shareInto(server, database, warehouse);
  await proxied.stop();
  await move();
  expect(reasons()).toEqual([null]);
  expect(logged).toEqual(["index ticks stay: the shared warehouse could not be compared"]);
  await proxied.start();
  await move();
  expect(reasons()).toEqual(["moved to /lake"]);
  expect(exported()).toEqual([]);
});

it("F21: fetches again what PostgreSQL has lost, and says what is gone for good", async () => {
  const { warehouse, database, context, shared, logged, reasons } = await createJobs();
  const start = midnight - INTRADAY_WINDOW - 2 * DAY;
  addTickDays(warehouse, start, [2, 2, 2, 2]);
  await shareInto(server, database, warehouse);
  const { work } = moveJob(context, { shared, seconds: 10 * 86_400, cron: "0 0 * * *" });
  await work(context.signal);
  expect(reasons()).toEqual([`moved to ${shared.place}`]);
  expect(logged).toEqual(["expired rows moved"]);
  await server.query(database, "DELETE FROM mds.settled_ranges; DELETE FROM mds.index_tick_rows");
  await expect(work(context.signal)).rejects.toMatchObject({ code: "share_lost" });
  const rest = warehouse.connection.statement("SELECT to_ts FROM coverage").pluck().all();
  expect(rest).toEqual([start + 2 * DAY]);
});
