import { expect, it } from "vitest";
import { barWidths, MICROS_PER_DAY } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { declareTargets } from "../../src/warehouse/coverage/targets.ts";
import { computeStaleBars } from "../../src/warehouse/rows/kept-bars.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { barViews } from "../../src/warehouse/views/bar-views.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { usePostgres } from "../support/postgres.ts";
import { bothStores, shareInto } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { decimal, parseTs, tick } from "../support/warehouse/records.ts";

const server = usePostgres();
const T = parseTs("2026-03-01T00:00:00Z");
const HOUR = barWidths["1h"];
const STEP = 30_000_000;

/**
 * Two series. One has whole hours, half hours, an hour without ticks, ticks without a price, equal prices with other digits,
 * remarks, a lost range and an hour in progress; the other has another cadence and one tick of another year.
 */
function fillOddHours(warehouse: WarehouseWriter): void {
  const now = systemClock.now() * 1000;
  warehouse.transaction((transaction) => {
    // Old ticks travel with their proof only: a range without proof has none.
    const isAbsent = (i: number) => (i >= 240 && i < 360) || (i >= 740 && i < 800) || i === 1 || i === 505;
    const ticks = Array.from({ length: 14 * 120 }, (_, i) => i)
      .filter((i) => !isAbsent(i))
      .map((i) => {
        const price = `${100 + ((i * 7919) % 101)}.${i % 10}`;
        const isExact = i % 50 === 3;
        return tick(T + i * STEP, isExact ? `${price}000000000000000${i}` : price, {
          ...(i === 607 && { price: null }),
          ...(i % 700 === 8 && i > 0 && { quality: "price out of range" }),
          ...(i % 120 === 119 && { volume: i % 240 === 119 ? null : decimal("12.345678901234567890123") }),
        });
      });
    ticks.push(tick(now - (now % HOUR), "5"), tick(now - (now % HOUR) - HOUR, "6"));
    const slow = [0, 1, 2, 61, 62, 1440].map((minute) =>
      tick(T + minute * 60_000_000, `0.0000${minute}1`, { indexId: "slow-id" }),
    );
    slow.push(tick(parseTs("2039-01-01T00:00:00Z"), "7", { indexId: "slow-id" }));
    writeRecords(transaction, "index_ticks", [...ticks, ...slow], "rest");
    const keyOf = (id: string) => ({
      stream: "index_ticks" as const,
      series: transaction.dictionary.getSeriesKey("GWA", id),
    });
    const rules = { step: 1, serviceWindow: 200 * MICROS_PER_DAY, from: T - MICROS_PER_DAY };
    declareTargets(
      transaction,
      "index_ticks",
      [
        { key: keyOf("btc-id"), settleDelay: 2 * STEP, period: STEP, ...rules },
        { key: keyOf("slow-id"), settleDelay: 4 * STEP, period: 2 * STEP, ...rules },
      ],
      T,
    );
    for (const [from, to, proof] of [
      [0, 2, "rows"],
      [2, 3, "empty"],
      [3, 740 / 120, "rows"],
      [800 / 120, 13, "rows"],
      [13, 13.5, "lost"],
      [13.5, 48, "rows"],
    ] as const)
      settle(
        transaction,
        keyOf("btc-id"),
        { from: T + from * HOUR, to: T + to * HOUR },
        proof,
        proof === "rows" ? undefined : "test reason",
      );
    settle(transaction, keyOf("slow-id"), { from: T, to: T + 3 * HOUR }, "rows");
  });
}

it("has the bars and hourly returns of the warehouse, digit for digit", async () => {
  const database = await server.createDatabase();
  const warehouse = openTestWarehouse({ clock: systemClock, hasAllViews: true });
  fillOddHours(warehouse);
  await shareInto(server, database, warehouse);
  const compare = async (view: string) => {
    const both = await bothStores(server, database, warehouse, view);
    expect.soft(both.postgresColumns, view).toEqual(both.sqliteColumns);
    expect.soft(both.postgres, view).toEqual(both.sqlite);
    expect(both.sqlite.length, view).toBeGreaterThan(1);
  };
  // SQLite reads the ticks while its bars are stale, then the kept bars.
  for (const view of [...Object.keys(barViews), "returns_1h"]) await compare(view);
  warehouse.transaction((transaction) => computeStaleBars(transaction, 1000));
  for (const view of ["bars_1h", "bars_4h", "bars_1d", "returns_1h"]) await compare(view);
  const qualities = await server.query<{ quality: string | null }>(
    database,
    "SELECT DISTINCT quality FROM mds.returns_1h",
  );
  expect(new Set(qualities.map(({ quality }) => quality))).toEqual(
    new Set([
      null,
      "in progress",
      "not proven whole",
      "doubtful ticks",
      "fewer ticks than expected",
      "no bar before",
      "bar before: doubtful ticks",
      "bar before: not proven whole",
    ]),
  );

  // A query reads the ticks of the bars that it selects, and no others.
  const plan = await server.query<{ "QUERY PLAN": string }>(
    database,
    `EXPLAIN (ANALYZE, TIMING off) SELECT * FROM mds.returns_1h WHERE name = 'btc-id' AND ts = ${T + 5 * HOUR}`,
  );
  const rows = plan
    .filter(({ "QUERY PLAN": line }) => line.includes("index_tick_rows"))
    .flatMap(({ "QUERY PLAN": line }) => [...line.matchAll(/rows=(\d+)(?:\.\d+)? loops=(\d+)/g)])
    .map(([, count, loops]) => Number(count) * Number(loops));
  expect(Math.max(...rows)).toBeGreaterThanOrEqual(119);
  expect(Math.max(...rows)).toBeLessThanOrEqual(120);
});
