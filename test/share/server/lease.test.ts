import { expect, it, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import type { OpenShare } from "../../../src/share/share-once.ts";
import { failureOf } from "../../support/failure-of.ts";
import { openClient, usePostgres } from "../../support/postgres.ts";
import { addHours, openShared, type Shared } from "../../support/share/share-harness.ts";

const server = usePostgres();
/** Waiting for a lease takes no time. */
const hasty: Clock = { ...systemClock, sleep: async () => {} };
const countSql = "SELECT count(*)::integer AS rows FROM mds.index_tick_rows";
const raiseSql = "UPDATE mds.lease SET epoch = epoch + 1, holder = 'another'";
const offBy = (hours: number): Clock => ({ ...hasty, now: () => systemClock.now() + hours * 3_600_000 });

async function openHolder({ open }: Pick<Shared, "open">, clock: Clock = systemClock) {
  const share = await open({ name: "first", clock });
  onTestFinished(() => share.close());
  return share;
}

/** A transaction of the holder that is open until it is released. */
function openTransaction(share: OpenShare) {
  const [inside, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ended = share.lease.transaction(async () => {
    inside.resolve();
    await released.promise;
  });
  return { inside: inside.promise, release: released.resolve, ended };
}

it("lets one program forward at a time, and names it to the other", async () => {
  const shared = await openShared(server);
  const { forward } = shared;
  const first = await openHolder(shared);
  const held = await failureOf(forward({ clock: hasty }));
  expect(held).toMatchObject({ code: "share_held", exit: 75, message: expect.stringContaining("first") });
  await first.close();
  expect(await forward({ clock: hasty })).toMatchObject({ rows: 0, mended: 0 });
});

it("I11: commits nothing if another daemon raises the epoch while it waits for the lock", async () => {
  const shared = await openShared(server);
  const { warehouse, database, query } = shared;
  const first = await openHolder(shared, offBy(-1));
  addHours(warehouse, 0, 1);
  // By hand, so that each step comes when the test says so.
  const taker = await openClient(server, database);
  await taker.query(`BEGIN; SELECT 1 FROM mds.lease FOR UPDATE; ${raiseSql}`);
  const forwarding = failureOf(first.forwarder.forward());
  while ((await query("SELECT FROM pg_locks WHERE NOT granted")).length === 0);
  await taker.query("COMMIT");
  expect(await forwarding).toMatchObject({ code: "share_fenced" });
  expect(await query(countSql)).toEqual([{ rows: 0 }]);
});

it("I11: takes over from a daemon that gives no sign of life, and ends its open transaction", async () => {
  const shared = await openShared(server, { hours: 1 });
  const { forward, query } = shared;
  const first = await openHolder(shared, offBy(1));
  const { inside, release, ended } = openTransaction(first);
  const stuck = failureOf(ended);
  await inside;
  // By the database's clock: no client's clock matters.
  await query("UPDATE mds.lease SET until = clock_timestamp() - interval '1 second'");
  expect(await forward({ clock: offBy(-1) })).toMatchObject({ rows: 120 });
  release();
  expect(await stuck).toMatchObject({ code: "share_unreachable" });
  expect(await query(countSql)).toEqual([{ rows: 120 }]);
});

it("waits for a daemon of another name whose session has ended, and not for one of its own", async () => {
  const { forward, query } = await openShared(server);
  await forward();
  await query(
    "UPDATE mds.lease SET holder = 'gone', name = 'first', until = clock_timestamp() + interval '1 hour'",
  );
  const held = await failureOf(forward({ clock: hasty }));
  expect(held).toMatchObject({ code: "share_held" });
  expect(await forward({ name: "first" })).toMatchObject({ commits: 0 });
});
