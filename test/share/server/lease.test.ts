import { expect, it, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { openShare } from "../../../src/share/share-once.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { usePostgres } from "../../support/postgres.ts";
import { addHours, failureOf, shareInto, shareOptions } from "../../support/share/share-harness.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const server = usePostgres();
/** Waiting for a lease takes no time. */
const hasty: Clock = { ...systemClock, sleep: async () => {} };
const countSql = "SELECT count(*)::integer AS rows FROM mds.index_tick_rows";

async function openHolder(database: string, warehouse: WarehouseWriter) {
  const share = await openShare(shareOptions(server, database, warehouse, { name: "first" }));
  onTestFinished(() => share.close());
  return share;
}

it("lets one program forward at a time, and names it to the other", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  const first = await openHolder(database, warehouse);
  const held = await failureOf(shareInto(server, database, warehouse, { clock: hasty }));
  expect(held).toMatchObject({ code: "share_held", exit: 75, message: expect.stringContaining("first") });
  await first.close();
  expect(await shareInto(server, database, warehouse, { clock: hasty })).toMatchObject({ commits: 0 });
});

it("commits nothing once another program has raised the epoch", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  const first = await openHolder(database, warehouse);
  addHours(warehouse, 0, 1);
  await server.query(database, "UPDATE mds.leases SET epoch = epoch + 1");
  expect(await failureOf(first.forwarder.forward())).toMatchObject({ code: "share_fenced", exit: 75 });
  expect(await server.query(database, countSql)).toEqual([{ rows: 0 }]);
});

it("takes over from a program that gives no sign of life, and ends its open transaction", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse();
  addHours(warehouse, 0, 1);
  const first = await openHolder(database, warehouse);
  let wake = () => {};
  const asleep = new Promise<void>((resolve) => {
    wake = resolve;
  });
  let isInside = () => {};
  const inside = new Promise<void>((resolve) => {
    isInside = resolve;
  });
  const stuck = failureOf(
    first.forwarder.inTransaction(async () => {
      isInside();
      await asleep;
    }),
  );
  await inside;
  // By the database's clock: no client's clock matters.
  await server.query(database, "UPDATE mds.leases SET until = clock_timestamp() - interval '1 second'");
  expect(await shareInto(server, database, warehouse, { clock: hasty })).toMatchObject({ rows: 120 });
  wake();
  expect(await stuck).toMatchObject({ code: "share_unreachable" });
  expect(await server.query(database, countSql)).toEqual([{ rows: 120 }]);
});
