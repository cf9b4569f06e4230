import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { openShare } from "../../src/share/share-once.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { failureOf } from "../support/failure-of.ts";
import { usePostgres } from "../support/postgres.ts";
import { addTickDays, shareInto, shareOptions } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { parseTs, tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

const server = usePostgres();
const START = parseTs("2026-01-30T00:00:00Z");
const TABLE = "mds.index_tick_rows_2026_01";

/** Two days of January and one of February, forwarded. */
async function openShared() {
  const warehouse = openTestWarehouse({ clock: systemClock });
  addTickDays(warehouse, START, [24, 24, 24]);
  const database = await server.createDatabase();
  await shareInto(server, database, warehouse);
  return { warehouse, database };
}

function correct(warehouse: WarehouseWriter, price: string): void {
  storeTicks(warehouse, [tick(START, price)]);
}

async function content(database: string) {
  const [ticks, coverage] = await server.queryAll(database, [
    "SELECT count(*)::integer AS rows, min(price) AS least, (SELECT count(*)::integer FROM mds.bars_1h) AS bars FROM mds.index_ticks",
    "SELECT proof, reason, from_time::date::text AS day FROM mds.coverage WHERE stream = 'index_ticks' ORDER BY from_ts",
  ]);
  return { ...ticks?.[0], coverage: coverage?.map(({ proof, reason, day }) => [day, proof, reason]) };
}

const whole = { rows: 72, bars: 72, least: 0.5, coverage: [["2026-01-30", "rows", null]] };
const detached = {
  rows: 24,
  bars: 24,
  least: 0.5,
  coverage: [
    ["2026-01-30", "lost", "detached"],
    ["2026-02-01", "rows", null],
  ],
};

it("says in the ledger what someone did to a month: detached, attached, dropped", async () => {
  const { warehouse, database } = await openShared();
  await server.query(database, `ALTER TABLE mds.index_tick_rows DETACH PARTITION ${TABLE}`);
  correct(warehouse, "0.25");
  await shareInto(server, database, warehouse);
  expect(await content(database)).toEqual(detached);
  expect(await server.query(database, `SELECT count(*)::integer AS rows FROM ${TABLE}`)).toEqual([
    { rows: 48 },
  ]);
  expect(await shareInto(server, database, warehouse, { verify: true })).toMatchObject({
    mended: 0,
    compared: 24,
  });
  // Another file of the same series, whose changes are not known.
  const other = openTestWarehouse({ clock: systemClock });
  addTickDays(other, START, [24, 24, 24]);
  await shareInto(server, database, other);
  expect(await content(database)).toEqual(detached);
  await server.query(
    database,
    `ALTER TABLE mds.index_tick_rows ATTACH PARTITION ${TABLE} FOR VALUES
      FROM (${parseTs("2026-01-01T00:00:00Z")}) TO (${parseTs("2026-02-01T00:00:00Z")})`,
  );
  expect(await shareInto(server, database, warehouse)).toMatchObject({ compared: 48, mended: 1 });
  expect(await content(database)).toEqual({ ...whole, least: 0.25 });
  await server.query(database, `DROP TABLE ${TABLE}`);
  expect(await shareInto(server, database, warehouse)).toMatchObject({ rows: 48 });
  expect(await content(database)).toEqual({ ...whole, least: 0.25 });
});

it("attaches a month again that is not over, makes it again if it was dropped, and says so while it is connected", async () => {
  const { warehouse, database } = await openShared();
  const clock = { ...systemClock, now: () => Date.UTC(2026, 1, 3) };
  const february = TABLE.replace("01", "02");
  const partition = (sql: string) => server.query(database, sql);
  const detach = `ALTER TABLE mds.index_tick_rows DETACH PARTITION ${february}`;
  for (const sql of [detach, `DROP TABLE ${february}`]) {
    const share = await openShare(shareOptions(server, database, warehouse, { clock }));
    await partition(sql);
    const told = await failureOf(share.forwarder.forward());
    expect(told).toMatchObject({ code: "share_changed", message: expect.stringContaining(february) });
    correct(warehouse, "0.25");
    await share.close();
    await shareInto(server, database, warehouse, { clock });
    expect(await content(database)).toEqual({ ...whole, least: 0.25 });
  }
  // A new tick of that month, before it was noticed.
  const share = await openShare(shareOptions(server, database, warehouse, { clock }));
  await share.forwarder.forward();
  await partition(detach);
  storeTicks(warehouse, [tick(parseTs("2026-02-03T00:00:00Z"), "9")], "live");
  expect(await failureOf(share.forwarder.forward())).toMatchObject({
    code: "share_changed",
    remedy: expect.stringContaining("attached again"),
  });
  await share.close();
  await shareInto(server, database, warehouse, { clock });
  expect(await content(database)).toMatchObject({ rows: 73, coverage: whole.coverage });

  await partition(`${detach}; ALTER TABLE ${february} ALTER COLUMN price TYPE numeric`);
  expect(await failureOf(shareInto(server, database, warehouse, { clock }))).toMatchObject({
    code: "share_changed",
    message: expect.stringContaining(`${february}, a month that is not over, was detached`),
    remedy: expect.stringContaining("drop or rename it"),
  });
});
