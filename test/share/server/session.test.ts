import { expect, it } from "vitest";
import { checkSharedWarehouse } from "../../../src/cli/commands/doctor/shared-checks.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { parseServerAddress } from "../../../src/share/server/server-address.ts";
import { SharedSession } from "../../../src/share/server/session.ts";
import type { ShareReport } from "../../../src/share/thread/share-messages.ts";
import { fillEverything } from "../../support/export/sample-data.ts";
import { failureOf } from "../../support/failure-of.ts";
import { openClient, usePostgres } from "../../support/postgres.ts";
import { PASSWORD } from "../../support/postgres-server.ts";
import { startCuttingProxy } from "../../support/share/cutting-proxy.ts";
import { addHours, openShared } from "../../support/share/share-harness.ts";
import { startTransactionPool } from "../../support/share/transaction-pool.ts";
import { waitUntil } from "../../support/wait-until.ts";

const server = usePostgres();
const through = (database: string, port: number) =>
  server.url(database).replace(String(server.port), String(port));

it("refuses a pool in transaction mode in words, and so does doctor", async () => {
  const { database, forward } = await openShared(server);
  const url = through(database, await startTransactionPool(server.port));
  expect(await failureOf(forward({ url }))).toMatchObject({
    exit: 2,
    remedy: expect.stringContaining("pool_mode = session"),
  });
  const settings = { MDS_SHARED_URL: through(database, await startTransactionPool(server.port)) };
  const env = { ...settings, MDS_SHARED_PASSWORD: PASSWORD };
  expect(await checkSharedWarehouse(loadSettings({ env }), systemClock)).toContainEqual(
    expect.objectContaining({ verdict: "problem", exit: 2, message: expect.stringContaining("a pool") }),
  );
});

it("gives up a connection that does not answer for 15 seconds, and tells of it before", async () => {
  const timers = new Set<{ readonly ms: number; readonly work: () => void }>();
  const clock: Clock = {
    ...systemClock,
    after(ms, work) {
      const timer = { ms, work };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  const { database, forward } = await openShared(server, { hours: 1 });
  const cut = Promise.withResolvers<void>();
  const point = { at: "before COMMIT", count: 1 } as const;
  const proxy = await startCuttingProxy(server.port, point, cut.resolve, { holds: true });
  const waits: number[] = [];
  const url = through(database, proxy.port);
  const report = (each: ShareReport) => void (each.kind === "waiting" && waits.push(each.since));
  const sharing = failureOf(forward({ url, clock, report }));
  await cut.promise;
  for (const { ms, work } of [...timers].sort((a, b) => a.ms - b.ms)) if (ms <= 15_000) work();
  expect(await sharing).toMatchObject({
    code: "share_unreachable",
    exit: 75,
    message: expect.stringContaining("no answer for 15 s"),
  });
  expect(waits).toHaveLength(1);
  proxy.release();
});

it("names who has the lock that a statement waits for, also after another daemon has ended the session", async () => {
  const timers = new Map<number, () => void>();
  const clock: Clock = {
    ...systemClock,
    after(ms, work) {
      timers.set(ms, work);
      return () => {};
    },
  };
  const { database, forward, query } = await openShared(server);
  const blocker = await openClient(server, database);
  await blocker.query("SET application_name = notebook; BEGIN; LOCK TABLE mds.lease");
  const told = Promise.withResolvers<string>();
  const sharing = failureOf(
    forward({
      clock,
      report: (each) => each.kind === "waiting" && each.blockers[0] && told.resolve(each.blockers[0]),
    }),
  );
  const waiting =
    "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
  await waitUntil(async () => (await query(waiting)).length > 0);
  timers.get(5_000)?.();
  const who = await told.promise;
  expect(who).toMatch(/^pid \d+ \(postgres, notebook, idle in transaction, query of \d{4}-.*Z\)$/);
  await query(`SELECT pg_terminate_backend(pid) FROM (${waiting}) w`);
  expect(await sharing).toMatchObject({
    code: "share_blocked",
    exit: 75,
    message: expect.stringContaining(`${who} has it`),
    remedy: expect.stringContaining("pg_terminate_backend"),
  });
});

it("makes again what someone has dropped, with its content, and says so", async () => {
  const { warehouse, open, query } = await openShared(server, { hours: 2 });
  let share = await open();
  await share.forwarder.forward();
  const counts = ["bars_1h", "index_ticks", "coverage", "targets"]
    .map((each) => `(SELECT count(*)::integer FROM mds.${each}) AS ${each}`)
    .join(", ");
  const read = async () => (await query(`SELECT ${counts}`))[0];
  const drops = [
    "TABLE mds.kept_bars",
    "TABLE mds.index_tick_rows, mds.daily_bar_rows",
    "TABLE mds.settled_ranges, mds.targets, mds.months",
  ];
  for (const [i, drop] of drops.entries()) {
    const before = await read();
    await query(`DROP ${drop} CASCADE`);
    addHours(warehouse, 2 + i, 1);
    expect(await failureOf(share.forwarder.forward()), drop).toMatchObject({
      code: "share_changed",
      message: expect.stringContaining("dropped"),
      remedy: expect.stringContaining("made or attached again"),
    });
    await share.close();
    share = await open();
    await share.forwarder.forward();
    expect(await read(), drop).toEqual({
      ...before,
      bars_1h: before?.bars_1h + 1,
      index_ticks: before?.index_ticks + 120,
    });
  }
  await share.close();
});

it("does not number rows anew after someone has dropped a dictionary", async () => {
  const { forward, query } = await openShared(server);
  await query("DROP TABLE mds.series CASCADE");
  expect(await failureOf(forward())).toMatchObject({
    code: "share_changed",
    message: expect.stringContaining("lacks mds.series"),
    remedy: expect.stringContaining("DROP SCHEMA mds CASCADE"),
  });
});

it("forwards every digit whatever the role has set", async () => {
  const shared = await openShared(server, { hours: 1, clock: systemClock, hasAllViews: true });
  const { warehouse, database, forward, query, expectSame } = shared;
  const user = await server.createUser();
  const timeouts = ["transaction", "idle_in_transaction_session", "idle_session", "statement"];
  for (const setting of [
    ...timeouts.map((name) => `${name}_timeout = '1min'`),
    "extra_float_digits = -15",
    "default_transaction_isolation = 'serializable'",
    "standard_conforming_strings = off",
    "DateStyle = 'German'",
  ])
    await query(`ALTER ROLE ${user} SET ${setting}`);
  await query(`ALTER ROLE ${user} SUPERUSER`);
  warehouse.transaction(fillEverything);
  const url = server.url(database, user);
  await forward({ url });
  // The ledger that this session reads is what the next range is joined to.
  addHours(warehouse, 1, 1);
  await forward({ url });
  expect(await forward({ url, verify: true })).toMatchObject({ rows: 0, ranges: 0, mended: 0 });
  for (const relation of ["index_ticks", "coverage"]) await expectSame(relation);
  const address = parseServerAddress(url);
  const access = { readPassword: () => PASSWORD, holder: "test", clock: systemClock };
  const session = await SharedSession.connect({ address, ...access });
  const list = timeouts.map((name) => `'${name}_timeout'`).join(", ");
  const left = await session.query(`SELECT name FROM pg_settings WHERE name IN (${list}) AND setting <> '0'`);
  await session.close();
  expect(left).toEqual([]);
});

it("says that someone has dropped the schema, and creates it again", async () => {
  const { warehouse, forward, open, query } = await openShared(server);
  const share = await open();
  await query("DROP SCHEMA mds CASCADE");
  addHours(warehouse, 0, 1);
  const dropped = await failureOf(share.forwarder.forward());
  expect(dropped).toMatchObject({ code: "share_changed", exit: 75 });
  expect(dropped.summary).not.toContain("report");
  await share.close();
  expect(await forward()).toMatchObject({ rows: 120 });
});
