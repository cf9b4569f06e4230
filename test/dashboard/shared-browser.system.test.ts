import { afterAll, beforeAll, expect, it } from "vitest";
import { duration } from "../../src/dashboard/page/shared/time-format.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { readShareStatus } from "../../src/share/server/read-share-status.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { expectAccessible, expectFits, itInBrowser, openPage, phone } from "../support/dashboard/chromium.ts";
import { serveFilled } from "../support/dashboard/dashboard-harness.ts";
import { fillEveryState } from "../support/dashboard/heatmap-content.ts";
import { useOwnPostgres } from "../support/postgres.ts";
import { PASSWORD, type PostgresServer } from "../support/postgres-server.ts";
import { member, observe, startMember, steps } from "../support/share/pair-members.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";

const server = useOwnPostgres({ wal_level: "replica" });
let standby: PostgresServer;
beforeAll(async () => {
  standby = await server.createStandby();
  await standby.start();
});
afterAll(() => standby.remove());

/** Two daemons of a pair that are connected: one forwards. */
async function startPair(): Promise<{ database: string; warehouse: WarehouseWriter }> {
  const database = await server.createDatabase();
  const [one, two] = [openTestWarehouse(), openTestWarehouse()];
  for (const warehouse of [one, two]) observe(warehouse, steps(0, 4));
  const [north, south] = [one, two].map((warehouse, i) =>
    member(server, database, warehouse, i === 0 ? "north" : "süd"),
  );
  if (!north || !south) throw new Error("no pair");
  await startMember(north).reach("forwarded");
  await startMember(south).reach("standby");
  return { database, warehouse: two };
}

/** Who is connected and replays, as PostgreSQL's own views tell. */
async function readTruth(database: string) {
  const sessions = await server.query<{ name: string; forwards: boolean }>(
    database,
    `SELECT a.application_name AS name, a.application_name = l.holder AS forwards FROM pg_stat_activity a, mds.lease l
    WHERE a.datname = current_database() AND a.application_name LIKE 'mds-sync %' ORDER BY 2 DESC`,
  );
  const standbys = await server.query<{ name: string; state: string; lag: number }>(
    database,
    "SELECT application_name AS name, state, extract(epoch FROM replay_lag)::float8 AS lag FROM pg_stat_replication",
  );
  return { sessions, standbys };
}

itInBrowser("shows both daemons of a pair, PostgreSQL, its standby and the lag", async () => {
  const { database, warehouse } = await startPair();
  const served = await serveFilled(fillEveryState);
  const read = () =>
    readShareStatus({
      warehouse: warehouse.path,
      url: server.url(database),
      readPassword: () => PASSWORD,
      role: "pair",
      name: "süd",
      clock: systemClock,
    });
  const lagOf = ({ peers }: Awaited<ReturnType<typeof read>>) => peers?.standby_servers[0]?.lag_seconds ?? 0;
  await waitUntil(async () => lagOf(await read()) === 0);
  // From here on the standby replays each commit three seconds after it.
  const startedAt = performance.now();
  await standby.query("postgres", "ALTER SYSTEM SET recovery_min_apply_delay = '3s'");
  await standby.query("postgres", "SELECT pg_reload_conf()");
  const status = await waitUntil(async () => {
    await server.query(database, "SELECT pg_logical_emit_message(true, 'test', 'a commit')");
    const now = await read();
    return lagOf(now) > 2 && now;
  });
  const lag = lagOf(status);
  const elapsed = (performance.now() - startedAt) / 1000;
  const {
    standbys: [own],
  } = await readTruth(database);
  expect(Math.abs(lag - (own?.lag ?? 0))).toBeLessThan(1);
  expect(lag).toBeLessThan(elapsed);
  served.daemon.shared = status;
  const page = await openPage(new URL("/sync", served.address).href, phone);
  await page.waitForSelector("#shared-parts tbody tr");
  const rows = (await page.locator("#shared-parts tbody tr").all()).map(async (row) =>
    row.locator("td").allTextContents(),
  );
  const shown = await Promise.all(rows);
  const { sessions, standbys } = await readTruth(database);
  expect(sessions.map(({ forwards }) => forwards)).toEqual([true, false]);
  expect(standbys).toHaveLength(1);
  expect(shown).toEqual([
    ["northdaemon", expect.stringMatching(/^forwards, last change [\d.]+ \S+ ago, from 127\.0\.0\.1$/)],
    ["s?ddaemon", "stands by, from 127.0.0.1"],
    [`${server.url(database).replace("postgres://postgres@", "")}PostgreSQL`, "with a standby server"],
    [`${standbys[0]?.name}standby server`, `${standbys[0]?.state}, ${duration(lag)} behind`],
  ]);
  for (const [i, { name }] of sessions.entries())
    expect(name).toContain(` ${shown[i]?.[0]?.replace("daemon", "")} `);
  expect(await page.textContent("#shared-note")).toBe("süd: standby (pair): north forwards");
  await expectFits(page, "shared", ":root");
  await expectAccessible(page);
});

it("status names both daemons and the standby, and what its user may not read", async () => {
  const { database, warehouse } = await startPair();
  const user = await server.createUser();
  await server.query(
    database,
    `GRANT USAGE ON SCHEMA mds TO ${user}; GRANT SELECT ON ALL TABLES IN SCHEMA mds TO ${user}`,
  );
  const run = async (as: string, ...flags: string[]) => {
    const env = {
      MDS_WAREHOUSE: warehouse.path,
      MDS_SHARED_URL: server.url(database, as),
      MDS_SHARED_PASSWORD: PASSWORD,
      MDS_HTTP_PORT: "0",
    };
    return (await runInProcess(["status", ...flags], { cwd: temporaryFolder(), env })).stdout;
  };
  const text = await run("postgres");
  expect(text).toMatch(/^ +daemon north: forwards, last change .* ago, from 127\.0\.0\.1$/m);
  expect(text).toMatch(/^ +daemon s\?d: stands by, from 127\.0\.0\.1$/m);
  expect(text).toMatch(/^ +standby server standby: streaming, .* behind$/m);
  const { shared } = JSON.parse(await run(user, "--json"));
  // Of another user's sessions PostgreSQL tells the name only.
  expect(shared.peers).toMatchObject({
    daemons: [
      { name: "north", is_forwarding: true, address: null },
      { name: "s?d", is_forwarding: false, address: null },
    ],
    standby_servers: [{ state: null, lag_seconds: null }],
    unread: `the state of its standby servers could not be read: GRANT pg_monitor TO "${user}"`,
  });
  await server.query(database, `GRANT pg_monitor TO ${user}`);
  expect(JSON.parse(await run(user, "--json")).shared.peers).toMatchObject({
    daemons: [{ address: "127.0.0.1" }, { address: "127.0.0.1" }],
    standby_servers: [{ name: "standby", state: "streaming" }],
    unread: null,
  });
});
