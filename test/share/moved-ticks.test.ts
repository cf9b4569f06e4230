import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { findHeldDays } from "../../src/share/held-days.ts";
import { describePlace, parseServerAddress } from "../../src/share/server/server-address.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { digestTicks, type HeldDay, moveDay } from "../../src/warehouse/rows/moved-rows.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { DAY, HOUR, midnight } from "../support/export/sample-data.ts";
import { usePostgres } from "../support/postgres.ts";
import { addTickDays, shareInto, shareOptions } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";

const server = usePostgres();

it("F21: ticks that left the warehouse stay in PostgreSQL, which says where they are if it never had them", async () => {
  const warehouse = openTestWarehouse({ clock: systemClock });
  const start = midnight - 3 * DAY;
  const key = warehouse.transaction((t) => {
    const series = t.dictionary.getSeriesKey("GWA", "btc-id");
    const ticks = Array.from({ length: 48 }, (_, i) => tick(start + i * HOUR, `${i}.5`));
    writeRecords(t, "index_ticks", ticks, "rest");
    settle(t, { stream: "index_ticks", series }, { from: start, to: start + 2 * DAY }, "rows");
    return series;
  });
  const [first, later] = [await server.createDatabase(), await server.createDatabase()];
  await shareInto(server, first, warehouse);
  const day = { series: key, from: start, to: start + DAY };
  warehouse.transaction((t) => {
    // A change that is not forwarded yet.
    writeRecords(t, "index_ticks", [tick(start + HOUR, "7.5")], "rest");
    expect(moveDay(t, { ...day, digest: digestTicks(t, key, day) ?? "" }, "/lake")).toBe(24);
  });
  await shareInto(server, first, warehouse);
  await shareInto(server, first, warehouse, { verify: true });
  await shareInto(server, later, warehouse);
  const content = async (database: string) => ({
    rows: (await server.query<{ n: string }>(database, "SELECT count(*) AS n FROM mds.index_ticks"))[0]?.n,
    reasons: (
      await server.query<{ proof: string; reason: string | null }>(
        database,
        "SELECT proof, reason FROM mds.coverage WHERE stream = 'index_ticks' ORDER BY from_ts",
      )
    ).map(({ proof, reason }) => [proof, reason]),
  });
  expect(await content(first)).toEqual({ rows: "48", reasons: [["rows", null]] });
  expect(await content(later)).toEqual({
    rows: "24",
    reasons: [
      ["moved", "moved to /lake"],
      ["rows", null],
    ],
  });
});

async function openShared() {
  const warehouse = openTestWarehouse({ clock: systemClock });
  const database = await server.createDatabase();
  const options = shareOptions(server, database, warehouse);
  const place = describePlace(parseServerAddress(options.url));
  const write = (ts: number, price: string) =>
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(ts, price)], "rest"));
  const move = (days: readonly HeldDay[]) =>
    days.map((day) => warehouse.transaction((t) => moveDay(t, day, place)));
  const count = async (sql: string) =>
    Number((await server.query<{ n: string }>(database, `SELECT count(*) AS n FROM ${sql}`))[0]?.n);
  return { warehouse, database, options, place, write, move, count };
}

it("F21: ticks leave the warehouse once PostgreSQL has them proven and equal, with every correction", async () => {
  const { warehouse, database, options, place, write, move, count } = await openShared();
  const start = midnight - 5 * DAY;
  const series = addTickDays(warehouse, start, [24, 24, 24]);
  const before = start + 2 * DAY;
  // It has no schema yet, then the proof.
  expect(await findHeldDays(options, { before })).toEqual({ held: [], unequal: 0, lacking: [] });
  await shareInto(server, database, warehouse);
  const { held } = await findHeldDays(options, { before });
  expect(held.map(({ from, to }) => [from, to])).toEqual([
    [start, start + DAY],
    [start + DAY, start + 2 * DAY],
  ]);
  // A correction that waits to be forwarded, and one that came and went after the comparison.
  const [first, second] = held as [HeldDay, HeldDay];
  write(start, "7.5");
  write(start + DAY, "7.5");
  write(start + DAY, "0.5");
  expect(move(held)).toEqual([0, 0]);
  expect(await findHeldDays(options, { before })).toMatchObject({
    held: [{ from: second.from }],
    unequal: 1,
  });
  // What an export has must be here too: its digest decides what is deleted.
  const among = [{ ...first, digest: digestTicks(warehouse.connection, series, first) ?? "" }, second];
  expect((await findHeldDays(options, { before, among })).held.map(({ from }) => from)).toEqual([
    second.from,
  ]);
  await shareInto(server, database, warehouse);
  expect(move((await findHeldDays(options, { before })).held)).toEqual([24, 24]);

  const local = "SELECT reason FROM coverage ORDER BY from_ts";
  expect(warehouse.connection.statement(local).pluck().all()).toEqual([`moved to ${place}`, null]);
  expect(place).toBe(`postgres://127.0.0.1:${server.port}/${database}`);
  await shareInto(server, database, warehouse, { verify: true });
  expect(await count("mds.index_ticks")).toBe(72);
  expect(await count("mds.coverage WHERE proof = 'rows' AND reason IS NULL")).toBe(1);
  expect(await count(`mds.index_ticks WHERE ts = ${start} AND price_exact = 7.5`)).toBe(1);
  expect(await findHeldDays(options, { before })).toEqual({ held: [], unequal: 0, lacking: [] });

  // An old backup is restored: the database must not claim what is nowhere.
  await server.query(database, `DELETE FROM mds.index_tick_rows WHERE ts < ${start + DAY}`);
  await server.query(database, `UPDATE mds.settled_ranges SET from_ts = ${start + DAY}`);
  await shareInto(server, database, warehouse);
  expect(await count(`mds.coverage WHERE from_ts < ${start + DAY}`)).toBe(0);
  expect((await findHeldDays(options, { before })).lacking).toEqual([
    { series, from: start, to: start + DAY },
  ]);
});

it("F21: a day that leaves the warehouse while older changes of it are forwarded stays in PostgreSQL", async () => {
  const { warehouse, database, options, write, move, count } = await openShared();
  const start = midnight - 4 * DAY;
  // More rows than one transaction takes: the second day is read after the first is committed.
  addTickDays(warehouse, start, [21_000, 24]);
  await shareInto(server, database, warehouse);
  warehouse.transaction((t) => {
    const last = start + 20_999 * Math.floor(DAY / 21_000);
    writeRecords(t, "index_ticks", [tick(start, "7.5"), tick(last, "7.5")], "rest");
  });
  for (const price of ["7.5", "0.5"]) write(start + DAY, price);
  const { held } = await findHeldDays(options, { before: start + 2 * DAY });
  let moved: number[] = [];
  await shareInto(server, database, warehouse, {
    onProgress() {
      if (moved.length === 0) moved = move(held);
    },
  });
  expect(moved).toEqual([24]);
  expect(await count("mds.index_ticks")).toBe(21_024);
  expect(await count("mds.index_ticks WHERE price_exact = 7.5")).toBe(4);
});
