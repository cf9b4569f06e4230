import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { openShare } from "../../../src/share/share-once.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { failureOf } from "../../support/failure-of.ts";
import { usePostgres } from "../../support/postgres.ts";
import { PASSWORD, SUPERUSER } from "../../support/postgres-server.ts";
import { addHours, shareInto, shareOptions } from "../../support/share/share-harness.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const server = usePostgres();
/** Waiting for a lease takes no time. */
const hasty: Clock = { ...systemClock, sleep: async () => {} };
const countSql = "SELECT count(*)::integer AS rows FROM mds.index_tick_rows";
const raiseSql = "UPDATE mds.lease SET epoch = epoch + 1, holder = 'another'";
const offBy = (hours: number): Clock => ({ ...hasty, now: () => systemClock.now() + hours * 3_600_000 });

async function openHolder(database: string, warehouse: WarehouseWriter, clock: Clock = systemClock) {
  const share = await openShare(shareOptions(server, database, warehouse, { name: "first", clock }));
  onTestFinished(() => share.close());
  return share;
}

/** A session that takes the lease by hand, so that each step comes when the test says so. */
async function connect(database: string): Promise<pg.Client> {
  const place = { host: "127.0.0.1", port: server.port, user: SUPERUSER, password: PASSWORD };
  const client = new pg.Client({ ...place, database });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** A transaction of the holder that is open until it is released. */
function openTransaction(share: Awaited<ReturnType<typeof openHolder>>) {
  const [inside, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ended = share.lease.transaction(async () => {
    inside.resolve();
    await released.promise;
  });
  return { inside: inside.promise, release: released.resolve, ended };
}

/** Waits until a session waits for a lock. */
async function waitForLock(database: string): Promise<void> {
  for (;;) {
    const [row] = await server.query(
      database,
      "SELECT count(*)::integer AS waiting FROM pg_locks WHERE NOT granted",
    );
    if (row?.waiting > 0) return;
  }
}

it("lets one program forward at a time, and names it to the other", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  const first = await openHolder(database, warehouse);
  const held = await failureOf(shareInto(server, database, warehouse, { clock: hasty }));
  expect(held).toMatchObject({ code: "share_held", exit: 75, message: expect.stringContaining("first") });
  await first.close();
  expect(await shareInto(server, database, warehouse, { clock: hasty })).toMatchObject({
    rows: 0,
    mended: 0,
  });
});

it("I11: commits nothing if another daemon raises the epoch while it waits for the lock", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  const first = await openHolder(database, warehouse, offBy(-1));
  addHours(warehouse, 0, 1);
  const taker = await connect(database);
  await taker.query(`BEGIN; SELECT 1 FROM mds.lease FOR UPDATE; ${raiseSql}`);
  const forwarding = failureOf(first.forwarder.forward());
  await waitForLock(database);
  await taker.query("COMMIT");
  expect(await forwarding).toMatchObject({ code: "share_fenced" });
  expect(await server.query(database, countSql)).toEqual([{ rows: 0 }]);
});

it("I11: takes over from a daemon that gives no sign of life, and ends its open transaction", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  addHours(warehouse, 0, 1);
  const first = await openHolder(database, warehouse, offBy(1));
  const { inside, release, ended } = openTransaction(first);
  const stuck = failureOf(ended);
  await inside;
  // By the database's clock: no client's clock matters.
  await server.query(database, "UPDATE mds.lease SET until = clock_timestamp() - interval '1 second'");
  expect(await shareInto(server, database, warehouse, { clock: offBy(-1) })).toMatchObject({ rows: 120 });
  release();
  expect(await stuck).toMatchObject({ code: "share_unreachable" });
  expect(await server.query(database, countSql)).toEqual([{ rows: 120 }]);
});

it("waits for a daemon of another name whose session has ended, and not for one of its own", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  await shareInto(server, database, warehouse);
  await server.query(
    database,
    "UPDATE mds.lease SET holder = 'gone', name = 'first', until = clock_timestamp() + interval '1 hour'",
  );
  const held = await failureOf(shareInto(server, database, warehouse, { clock: hasty }));
  expect(held).toMatchObject({ code: "share_held" });
  expect(await shareInto(server, database, warehouse, { name: "first" })).toMatchObject({ commits: 0 });
});
