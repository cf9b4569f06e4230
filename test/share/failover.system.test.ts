import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { openShare } from "../../src/share/share-once.ts";
import type { ShareReport } from "../../src/share/thread/share-messages.ts";
import { failureOf } from "../support/failure-of.ts";
import { useOwnPostgres } from "../support/postgres.ts";
import type { PostgresServer } from "../support/postgres-server.ts";
import {
  addHours,
  expectSameInBoth,
  HOURS_BEGIN,
  openShared,
  shareInto,
  shareOptions,
} from "../support/share/share-harness.ts";

const primary = useOwnPostgres();
const HOUR = 3_600_000_000;

async function startStandby(): Promise<PostgresServer> {
  const standby = await primary.createStandby();
  onTestFinished(() => standby.remove());
  await standby.start();
  return standby;
}

/** The covered hours, and whether each of them has all its rows: proof and rows must agree. */
async function readHours(server: PostgresServer, database: string): Promise<number[]> {
  const ranges = await server.query(
    database,
    `SELECT g.from_ts::double precision AS "from", g.to_ts::double precision AS "to",
      (SELECT count(*)::integer FROM mds.index_tick_rows r WHERE r.ts >= g.from_ts AND r.ts < g.to_ts) AS rows
    FROM mds.settled_ranges g`,
  );
  return ranges.map(({ from, to, rows }) => {
    expect(from).toBe(HOURS_BEGIN);
    expect(rows).toBe(((to - from) / HOUR) * 120);
    return (to - from) / HOUR;
  });
}

async function expectHealed(
  server: PostgresServer,
  database: string,
  warehouse: Parameters<typeof addHours>[0],
) {
  for (const relation of ["index_ticks", "coverage"])
    await expectSameInBoth(server, database, warehouse, relation);
}

it("I12: loses no acknowledged range if the primary dies beside a synchronous standby", async () => {
  const { warehouse, database } = await openShared(primary);
  const standby = await startStandby();
  await primary.query("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
  await primary.query("postgres", "SELECT pg_reload_conf()");
  onTestFinished(async () => {
    await primary.start();
    await primary.query("postgres", "ALTER SYSTEM RESET synchronous_standby_names");
    await primary.query("postgres", "SELECT pg_reload_conf()");
  });
  for (const hour of [0, 1, 2]) {
    addHours(warehouse, hour, 1);
    await shareInto(primary, database, warehouse);
  }
  // Killed right after the acknowledgement: no time to send anything.
  await primary.stop();
  addHours(warehouse, 3, 1);
  expect(await failureOf(shareInto(primary, database, warehouse))).toMatchObject({
    code: "share_unreachable",
  });
  await standby.query("postgres", "SELECT pg_promote()");
  expect(await readHours(standby, database)).toEqual([3]);
  expect(await shareInto(standby, database, warehouse)).toMatchObject({ rows: 120 });
  await expectHealed(standby, database, warehouse);
});

it("I6: stays honest after a failover to a lagging standby, and forwards what that lacks", async () => {
  const { warehouse, database } = await openShared(primary, { hours: 2 });
  await shareInto(primary, database, warehouse);
  const standby = await startStandby();
  const position = async (server: PostgresServer, sql: string) =>
    (await server.query("postgres", `SELECT (${sql})::text AS lsn`))[0]?.lsn;
  const sent = await position(primary, "pg_current_wal_lsn()");
  while ((await position(standby, `pg_last_wal_replay_lsn() >= '${sent}'::pg_lsn`)) !== "true");
  // It receives nothing more.
  await standby.query("postgres", "ALTER SYSTEM SET primary_conninfo = ''");
  await standby.query("postgres", "SELECT pg_reload_conf()");
  while (await position(standby, "(SELECT pid FROM pg_stat_wal_receiver)"));
  addHours(warehouse, 2, 2);
  await shareInto(primary, database, warehouse);
  expect(await readHours(primary, database)).toEqual([4]);
  await primary.stop();
  onTestFinished(() => primary.start());
  await standby.query("postgres", "SELECT pg_promote()");
  expect(await readHours(standby, database)).toEqual([2]);
  expect(await shareInto(standby, database, warehouse)).toMatchObject({ rows: 240, compared: 0 });
  await expectHealed(standby, database, warehouse);
});

it("I13: finds the server that accepts writes by itself, and never returns to a former primary", async () => {
  const { warehouse, database } = await openShared(primary);
  const standby = await startStandby();
  const hosts = [standby, primary].map(({ port }) => `127.0.0.1:${port}`);
  const url = `postgres://postgres@${hosts.join(",")}/${database}?target_session_attrs=read-write`;
  const share = () => shareInto(primary, database, warehouse, { url });
  addHours(warehouse, 0, 1);
  expect(await share()).toMatchObject({ rows: 120 });
  await primary.stop();
  onTestFinished(() => primary.start());
  addHours(warehouse, 1, 1);
  const failure = await failureOf(share());
  expect(failure).toMatchObject({ code: "share_read_only", exit: 75 });
  for (const host of hosts) expect(failure.message).toContain(`PostgreSQL at ${host} `);
  await standby.query("postgres", "SELECT pg_promote()");
  await share();
  // Both accept writes now; the promoted one has the newer timeline, although it is not the first.
  await primary.start();
  addHours(warehouse, 2, 1);
  const reversed = `postgres://postgres@${hosts.toReversed().join(",")}/${database}`;
  await shareInto(primary, database, warehouse, { url: reversed });
  expect(await readHours(standby, database)).toEqual([3]);
  expect(await readHours(primary, database)).toEqual([1]);
});

it("I12: notices within a minute that a standby was promoted beside the living primary, and tells of both", async () => {
  const { warehouse, database } = await openShared(primary, { hours: 1 });
  const standby = await startStandby();
  const url = `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/${database}`;
  let passedMs = 0;
  const clock = { ...systemClock, monotonic: () => passedMs };
  const told: string[] = [];
  const report = (each: ShareReport) => void (each.kind === "warning" && told.push(each.message));
  const more = { url, report };
  const share = await openShare({ ...shareOptions(primary, database, warehouse, more), clock });
  await share.forwarder.forward();
  expect(told).toEqual([""]);
  // Its readers are many, and nobody has stopped it.
  await standby.query("postgres", "SELECT pg_promote(true)");
  passedMs += 60_000;
  expect(await failureOf(share.forwarder.forward())).toMatchObject({
    exit: 75,
    message: expect.stringContaining(`127.0.0.1:${standby.port} was promoted`),
  });
  await share.close();
  addHours(warehouse, 1, 1);
  await shareInto(standby, database, warehouse, more);
  expect(told.at(-1)).toContain(`127.0.0.1:${primary.port} accepts writes too`);
  expect(await readHours(standby, database)).toEqual([2]);
});
