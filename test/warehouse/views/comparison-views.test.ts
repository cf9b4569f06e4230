import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ExchangeTick, MarketCap } from "../../../src/model/records.ts";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { findRowsBeside } from "../../../src/warehouse/rows/previews.ts";
import { withdrawRows } from "../../../src/warehouse/rows/row-sql.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { emptyRecord } from "../../support/empty-record.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { queryRows } from "../../support/warehouse/open-warehouse.ts";
import { bar, decimal, parseTs, tick } from "../../support/warehouse/records.ts";
import { settle } from "../../support/warehouse/settle.ts";
import { settleSnapshot } from "../../support/warehouse/settle-snapshot.ts";
import { writeRecords, writeTicks } from "../../support/warehouse/write-records.ts";

const T = parseTs("2026-03-01T00:00:00Z");
const HALF_MINUTE = 30_000_000;

const clock = new ManualClock("2026-03-03T00:00:00Z");
let warehouse: WarehouseWriter;

beforeAll(() => {
  warehouse = openWriter(join(temporaryFolder(afterAll), "mds.sqlite"), { clock });
});
afterAll(() => warehouse.close());

describe("the daily bar computed from ticks beside the service's", () => {
  it("shows both, their differences, and the covered part of the computed bar", () => {
    warehouse.transaction((transaction) => {
      const prices = ["1", "8", "0.5", "6"].map((price, i) => tick(T + i * 6 * 3_600_000_000, price));
      writeTicks(transaction, [...prices, tick(T + MICROS_PER_DAY, "7")]);
      writeRecords(transaction, "ohlcv", [bar(T, "5")]);
      const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
      settle(transaction, { stream: "index_ticks", series }, { from: T, to: T + MICROS_PER_DAY / 2 }, "rows");
      settle(transaction, { stream: "ohlcv", series }, { from: T, to: T + MICROS_PER_DAY }, "rows");
    });
    const sql = "SELECT * FROM reconcile_ohlcv WHERE index_id = 'btc-id' ORDER BY day";
    const [first, second] = queryRows(warehouse, sql);
    expect(first).toMatchObject({
      day: "2026-03-01",
      ...{ open: 1, service_open: 1, open_diff: 0, open_rel_diff: 0 },
      ...{ high: 8, service_high: 9, high_diff: -1, high_rel_diff: -1 / 9 },
      ...{ low: 0.5, service_low: 0.5, low_diff: 0 },
      ...{ close: 6, service_close: 5, service_close_exact: "5", close_diff: 1, close_rel_diff: 0.2 },
      ...{ largest_rel_diff: 0.2, n_ticks: 4, coverage: 0.5, is_complete: 0, service_is_final: 1 },
      quality: "not proven whole",
    });
    expect(second).toMatchObject({
      ...{ day: "2026-03-02", close: 7, service_close: null, close_diff: null, largest_rel_diff: null },
      ...{ service_is_final: 0, quality: "the service has no bar" },
    });
  });
});

describe("a market cap beside price × supply", () => {
  it("shows the computed market cap, and the index tick at or before it", () => {
    const cap: MarketCap = {
      ...{ ...emptyRecord("market_caps"), assetId: "eth-id", ts: T + 100, rank: 1 },
      ...{ price: decimal("2.5"), marketCap: decimal("260"), totalMarketCap: decimal("500") },
      ...{ freeFloatSupply: decimal("100"), totalSupply: decimal("200") },
    };
    warehouse.transaction((transaction) => {
      const ticks = [tick(T, "2", { indexId: "eth-id" }), tick(T + HALF_MINUTE, "3", { indexId: "eth-id" })];
      writeTicks(transaction, ticks);
      writeRecords(transaction, "market_caps", [cap]);
    });
    expect(queryRows(warehouse, "SELECT * FROM reconcile_market_caps")).toEqual([
      expect.objectContaining({
        ...{ asset_id: "eth-id", market_cap_exact: "260", computed_market_cap: 250, market_cap_diff: 10 },
        ...{ market_cap_rel_diff: 0.04, total_market_cap_diff: 0, total_market_cap_rel_diff: 0 },
        ...{ index_ts: T, index_price: 2, index_price_exact: "2", price_rel_diff: 0.25, quality: null },
      }),
    ]);
  });
});

describe("the versions of a tick", () => {
  it("show each correction and withdrawal, and when it was", async () => {
    const indexId = "xrp-id";
    const storePage = (...prices: readonly (readonly [number, string])[]) =>
      warehouse.transaction((transaction) => {
        const ticks = prices.map(([ts, price]) => tick(ts, price, { indexId }));
        writeTicks(transaction, ticks);
        const series = transaction.dictionary.getSeriesKey("GWA", indexId);
        const key = { stream: "index_ticks", series } as const;
        const present = prices.map(([ts]) => ts);
        const gone = findRowsBeside(transaction, key, { from: T, to: T + 3 * HALF_MINUTE }, present);
        const withdrawn = gone.map(({ ts }) => ts);
        withdrawRows(transaction, key, withdrawn);
      });
    const unchanged = Array.from({ length: 20 }, (_, i) => [T + 2 * HALF_MINUTE + i, "9"] as const);
    storePage([T, "1"], [T + HALF_MINUTE, "5"], ...unchanged);
    await clock.advance(3_600_000);
    storePage([T, "2.25"], [T + HALF_MINUTE, "5"], ...unchanged);
    await clock.advance(3_600_000);
    storePage([T, "3"], ...unchanged);
    const revisions = `SELECT ts - ${T} AS ts, json_extract(before, '$.price') AS before, json_extract(after, '$.price') AS after,
      substr(changed_at, 12, 5) AS at FROM revisions WHERE index_id = 'xrp-id'`;
    expect(queryRows(warehouse, `${revisions} ORDER BY ts, changed_at`)).toEqual([
      { ts: 0, before: "1", after: "2.25", at: "01:00" },
      { ts: 0, before: "2.25", after: "3", at: "02:00" },
      { ts: HALF_MINUTE, before: "5", after: null, at: "02:00" },
    ]);
    // It comes back: the withdrawal stays one.
    await clock.advance(3_600_000);
    storePage([T, "3"], [T + HALF_MINUTE, "5"], ...unchanged);
    expect(queryRows(warehouse, `${revisions} AND after IS NULL`)).toHaveLength(1);
  });
});

describe("an exchange tick", () => {
  const everything = { stream: "exchange_ticks", exchangeId: null, at: T, cadence: HALF_MINUTE } as const;
  const ticker = (marketId: string, lastMoved: number | null, ts = T, last = "1"): ExchangeTick => ({
    ...emptyRecord("exchange_ticks"),
    ...{ exchangeId: "kraken-id", marketId, ts, last: decimal(last), lastMoved },
  });

  it("without the time of its last move, as on the websocket, is stale if it repeats the previous price", () => {
    warehouse.transaction((transaction) => {
      const at = (seconds: number, last: string) => ticker("live-only", null, T + seconds * 1_000_000, last);
      const ticks = [at(0, "1"), at(30, "1"), at(60, "2"), at(90, "2"), at(90 + 61, "2"), at(90 + 91, "2")];
      writeRecords(transaction, "exchange_ticks", ticks, "live");
      settleSnapshot(transaction, everything);
    });
    const sql = "SELECT is_stale FROM exchange_ticks WHERE market_id = 'live-only' ORDER BY ts";
    const staleness = queryRows(warehouse, sql);
    // After more than a minute without a tick it is unknown whether the price is stale.
    expect(staleness.map(({ is_stale }) => is_stale)).toEqual([null, 1, 0, 1, null, 1]);
    const latest = "SELECT is_stale FROM latest_exchange_ticks WHERE market_id = 'live-only'";
    expect(queryRows(warehouse, latest)).toEqual([{ is_stale: 1 }]);
  });

  it("is stale if its price last moved more than a refresh period ago", () => {
    warehouse.transaction((transaction) => {
      const ticks = [ticker("a", T - 10_500_000), ticker("b", T - 60_000_000), ticker("c", null)];
      writeRecords(transaction, "exchange_ticks", ticks);
      settleSnapshot(transaction, everything);
    });
    for (const relation of ["exchange_ticks", "latest_exchange_ticks"]) {
      const sql = `SELECT unmoved_seconds, is_stale FROM ${relation} WHERE market_id <> 'live-only' ORDER BY market_id`;
      expect(queryRows(warehouse, sql).map(Object.values)).toEqual([
        [10.5, 0],
        [60, 1],
        [null, null],
      ]);
    }
  });
});
