import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { IndexTick } from "../../../src/model/records.ts";
import { barWidths, formatTimestamp, MICROS_PER_DAY, type Micros } from "../../../src/model/time.ts";
import { retract, settle } from "../../../src/warehouse/coverage/ledger.ts";
import { declareTargets } from "../../../src/warehouse/coverage/targets.ts";
import { computeStaleBars, hasStaleBars } from "../../../src/warehouse/rows/kept-bars.ts";
import { matchPreviews, removePreviews } from "../../../src/warehouse/rows/previews.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { withdrawRows } from "../../../src/warehouse/rows/withdraw-rows.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { decimal, parseTs, tick } from "../../support/warehouse/records.ts";

const T = parseTs("2026-03-01T00:00:00Z");
const HOUR = barWidths["1h"];
/** Of the series: six ticks an hour. */
const PERIOD = HOUR / 6;
/** The ticks of these tests are within two days. */
const SLOTS = 2 * 24 * 6;

const someSlot = fc.integer({ min: 0, max: SLOTS - 1 });
const somePrice = fc.oneof(
  fc.integer({ min: 1, max: 9 }).map(String),
  fc.constantFrom("1.5", "0.00000000123", "5.00000000000000000001", "5.00000000000000000002", "-3.25"),
);

interface Figures {
  readonly price: string | null;
  readonly volume: string | null;
  readonly quality: string | null;
}

const someFigures: fc.Arbitrary<Figures> = fc.oneof(
  { weight: 8, arbitrary: somePrice.map((price) => ({ price, volume: "7.25", quality: null })) },
  {
    weight: 1,
    arbitrary: fc.record({
      price: fc.option(somePrice),
      volume: fc.constantFrom(null, "123456789.12345678901"),
      quality: fc.constantFrom(null, "price: odd"),
    }),
  },
);

type Change =
  | { kind: "page" | "live"; from: number; figures: readonly Figures[]; offset: number }
  | { kind: "withdraw"; from: number; length: number; stride: number }
  | { kind: "preview"; from: number; length: number }
  | { kind: "settle" | "lose" | "retract"; from: number; length: number }
  | { kind: "delete" | "update"; from: number; length: number }
  | { kind: "compute"; limit: number };

const someChange: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom("page" as const, "page" as const, "live" as const),
      from: someSlot,
      figures: fc.array(someFigures, { minLength: 1, maxLength: 40 }),
      offset: fc.constantFrom(0, 0, 0, 7_000_001),
    }),
  },
  fc.record({
    kind: fc.constant("withdraw" as const),
    from: someSlot,
    length: fc.integer({ min: 1, max: 60 }),
    stride: fc.integer({ min: 1, max: 40 }),
  }),
  fc.record({
    kind: fc.constantFrom(
      "preview" as const,
      "settle" as const,
      "lose" as const,
      "retract" as const,
      "delete" as const,
      "update" as const,
    ),
    from: someSlot,
    length: fc.integer({ min: 1, max: 40 }),
  }),
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("compute" as const), limit: fc.constantFrom(1, 5, 1000) }),
  },
);

const slotTs = (slot: number) => T + slot * PERIOD;

function recordsOf(indexId: string, from: number, figures: readonly Figures[], offset: number): IndexTick[] {
  return figures
    .map(({ price, volume, quality }, at) =>
      tick(slotTs(from + at) + offset, "1", {
        indexId,
        price: price === null ? null : decimal(price),
        volume: volume === null ? null : decimal(volume),
        quality,
      }),
    )
    .reverse();
}

function storedTimestamps(transaction: Transaction, series: number, from: Micros, to: Micros): Micros[] {
  return transaction
    .statement<Micros>(
      "SELECT ts FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? ORDER BY ts DESC",
    )
    .pluck()
    .all([series, from, to]);
}

function apply(transaction: Transaction, indexId: string, change: Change): void {
  const series = transaction.dictionary.getSeriesKey("GWA", indexId);
  const key = { stream: "index_ticks", series } as const;
  if (change.kind === "compute") {
    computeStaleBars(transaction, change.limit);
    return;
  }
  if ("figures" in change) {
    const records = recordsOf(indexId, change.from, change.figures, change.offset);
    writeRecords(transaction, "index_ticks", records, change.kind === "page" ? "rest" : "live", PERIOD / 4);
    return;
  }
  const range = { from: slotTs(change.from), to: slotTs(change.from + change.length) };
  const stored = storedTimestamps(transaction, series, range.from, range.to);
  transaction.markWritten("index_ticks", series);
  if (change.kind === "withdraw") {
    withdrawRows(
      transaction,
      key,
      stored.filter((_, at) => at % change.stride === 0),
    );
  } else if (change.kind === "preview") {
    const timestamps = stored.map((ts) => ts + 3).reverse();
    const { replaced } = matchPreviews(transaction, series, timestamps, PERIOD / 4);
    removePreviews(transaction, series, replaced);
  } else if (change.kind === "settle") settle(transaction, key, range, stored.length > 0 ? "rows" : "empty");
  else if (change.kind === "lose") settle(transaction, key, range, "lost", "test reason");
  else if (change.kind === "retract") retract(transaction, key, range);
  else {
    const what = change.kind === "delete" ? "DELETE FROM" : "UPDATE";
    const set = change.kind === "delete" ? "" : " SET price = price + 1, details = NULL";
    transaction
      .statement(`${what} index_tick_rows${set} WHERE series = ? AND ts >= ? AND ts < ?`)
      .run([series, range.from, range.to]);
  }
}

/** Every column of the bars, from the public ticks and the public ledger alone. */
function barsOf(warehouse: WarehouseWriter, indexId: string, length: Micros): Record<string, unknown>[] {
  const ticks = queryRows(
    warehouse,
    "SELECT * FROM index_ticks WHERE index_id = ? AND price IS NOT NULL ORDER BY ts",
    indexId,
  );
  const covered = queryRows(
    warehouse,
    "SELECT from_ts, to_ts FROM coverage WHERE index_id = ? AND stream = 'index_ticks' AND proof <> 'lost'",
    indexId,
  ) as { from_ts: number; to_ts: number }[];
  const starts = [...new Set(ticks.map(({ ts }) => (ts as number) - ((ts as number) % length)))];
  return starts.map((start) => {
    const own = ticks.filter(({ ts }) => (ts as number) >= start && (ts as number) < start + length);
    const [first, last] = [own[0], own.at(-1)] as [Record<string, unknown>, Record<string, unknown>];
    const price = (row: Record<string, unknown>) => row.price as number;
    const highest = own.reduce((best, row) => (price(row) > price(best) ? row : best));
    const lowest = own.reduce((best, row) => (price(row) < price(best) ? row : best));
    let micros = 0;
    for (const { from_ts, to_ts } of covered)
      micros += Math.max(0, Math.min(to_ts, start + length) - Math.max(from_ts, start));
    const expected = length / PERIOD;
    let quality = own.length < expected ? "fewer ticks than expected" : null;
    if (own.some((row) => row.quality !== null)) quality = "doubtful ticks";
    if (micros < length) quality = "not proven whole";
    return {
      index_type: "GWA",
      index_id: indexId,
      name: indexId,
      ts: start,
      time: formatTimestamp(start),
      open: first.price,
      open_exact: first.price_exact,
      high: highest.price,
      high_exact: highest.price_exact,
      low: lowest.price,
      low_exact: lowest.price_exact,
      close: last.price,
      close_exact: last.price_exact,
      volume_24h: last.volume,
      volume_24h_exact: last.volume_exact,
      n_ticks: own.length,
      expected_ticks: expected,
      coverage: micros / length,
      is_complete: micros === length ? 1 : 0,
      quality,
    };
  });
}

function openWithTarget(): { warehouse: WarehouseWriter; addSeries: (indexId: string) => void } {
  const warehouse = openTestWarehouse({
    clock: new ManualClock((T + 10 * MICROS_PER_DAY) / 1000),
    hasAllViews: true,
  });
  const addSeries = (indexId: string) =>
    warehouse.transaction((transaction) => {
      const key = {
        stream: "index_ticks",
        series: transaction.dictionary.getSeriesKey("GWA", indexId),
      } as const;
      const rules = { settleDelay: 2 * PERIOD, period: PERIOD, step: 1, serviceWindow: 200 * MICROS_PER_DAY };
      declareTargets(transaction, "index_ticks", [{ key, from: T, ...rules }], T);
    });
  return { warehouse, addSeries };
}

const keptHours = (warehouse: WarehouseWriter, condition: string) =>
  queryRows(
    warehouse,
    `SELECT (ts - ${T}) / ${HOUR} AS hour FROM kept_bars WHERE ${condition} ORDER BY ts`,
  ).map(({ hour }) => hour);

describe("bars", () => {
  it("equal a plain calculation after any sequence of commits, corrections and withdrawals", () => {
    const { warehouse, addSeries } = openWithTarget();
    // Hundreds of commits that need not survive a crash.
    warehouse.connection.database.pragma("synchronous = OFF");
    let runs = 0;
    fc.assert(
      fc.property(fc.array(someChange, { minLength: 1, maxLength: 12 }), (changes) => {
        const indexId = `series-${runs++}`;
        addSeries(indexId);
        for (const change of [...changes, { kind: "compute", limit: 10_000 } as const]) {
          warehouse.transaction((transaction) => apply(transaction, indexId, change));
          for (const width of ["1h", "4h", "1d"] as const) {
            const sql = `SELECT * FROM bars_${width} WHERE index_id = ? ORDER BY ts`;
            const bars = warehouse.connection.statement(sql).all([indexId]);
            const expected = barsOf(warehouse, indexId, barWidths[width]).map((bar) =>
              width === "1d" ? { ...bar, day: String(bar.time).slice(0, 10) } : bar,
            );
            expect(bars, `${width} after ${change.kind}`).toEqual(expected);
          }
        }
      }),
      { numRuns: 40 },
    );
    expect(hasStaleBars(warehouse.connection, T + 10 * MICROS_PER_DAY)).toBe(false);
    expect(queryRows(warehouse, "SELECT count(*) > 100 AS many FROM kept_bars")).toEqual([{ many: 1 }]);
  });
});

describe("kept bars", () => {
  const page = (from: number, count: number) =>
    recordsOf(
      "btc-id",
      from,
      Array.from({ length: count }, (_, at) => ({ price: String(at + 1), volume: "1", quality: null })),
      0,
    );

  it("are kept at once for the hours that a new page contains whole", () => {
    const { warehouse } = openWithTarget();
    warehouse.transaction((transaction) => writeRecords(transaction, "index_ticks", page(3, 30), "rest"));
    expect(keptHours(warehouse, "n_ticks IS NULL")).toEqual([0, 5]);
    expect(keptHours(warehouse, "n_ticks = 6")).toEqual([1, 2, 3, 4]);
  });

  it("stay when the same rows arrive again, and only go stale where a row differs", () => {
    const { warehouse } = openWithTarget();
    const records = page(0, 30);
    warehouse.transaction((transaction) => writeRecords(transaction, "index_ticks", records, "rest"));
    warehouse.transaction((transaction) => computeStaleBars(transaction, 100));
    warehouse.transaction((transaction) => writeRecords(transaction, "index_ticks", records, "rest"));
    expect(keptHours(warehouse, "n_ticks IS NULL")).toEqual([]);
    const corrected = records.map((record, at) => (at === 10 ? { ...record, price: decimal("99") } : record));
    warehouse.transaction((transaction) => writeRecords(transaction, "index_ticks", corrected, "rest"));
    expect(keptHours(warehouse, "n_ticks IS NULL")).toEqual([3]);
  });

  it("of an hour that is not over are not computed, and those of an hour without ticks disappear", () => {
    const warehouse = openTestWarehouse({
      clock: new ManualClock((T + 2.5 * HOUR) / 1000),
      hasAllViews: true,
    });
    warehouse.transaction((transaction) => writeRecords(transaction, "index_ticks", page(3, 12), "rest"));
    warehouse.transaction((transaction) => computeStaleBars(transaction, 100));
    expect(keptHours(warehouse, "n_ticks IS NULL")).toEqual([2]);
    warehouse.transaction((transaction) => {
      transaction.statement("DELETE FROM index_tick_rows WHERE ts < ?").run([T + HOUR]);
      computeStaleBars(transaction, 100);
    });
    expect(keptHours(warehouse, "1")).toEqual([1, 2]);
  });
});
