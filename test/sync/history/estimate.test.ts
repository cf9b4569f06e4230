import { describe, expect, it } from "vitest";
import type { SyncSettings } from "../../../src/sync/context/context.ts";
import { estimateBackfill } from "../../../src/sync/history/estimate.ts";
import { declareTargets } from "../../../src/warehouse/coverage/targets.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { parseTs } from "../../support/warehouse/records.ts";
import { settle } from "../../support/warehouse/settle.ts";

const DAY = 86_400_000_000;
const CADENCE = 30_000_000;
const now = parseTs("2026-03-01T12:00:00Z");
const none = { kind: "none" } as const;
const settings: SyncSettings = {
  streams: {
    lookups: false,
    ohlcv: false,
    intraday: { GWA: { kind: "all" }, MWA: none, LX: none, days: 2 },
    exchangeTickers: false,
    marketCap: false,
    derivatives: false,
  },
  refreshSeconds: 30,
  lxIndexIds: {},
  concurrency: 4,
  quietMargin: 3600,
  maxRequestsPerSecond: 0,
  confirmEvery: 600,
  withdrawals: { answers: 3, over: 600_000_000 },
};
const directory = {
  GWA: [{ id: "btc-id", labels: ["BTC"] }],
  MWA: [],
  LX: [],
  exchanges: [],
  ranking: undefined,
};

describe("the estimate of a backfill", () => {
  it("counts what the settings select, without a warehouse", async () => {
    const options = { settings, directory, reader: undefined, now };
    expect(await ticksOf(options)).toMatchObject({ series: 1, holes: 1, rows: (2 * DAY) / CADENCE - 2 });
  });

  it("counts the gaps of a stored target that began earlier, up to the window, and not what is settled", async () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((transaction) => {
      const key = {
        stream: "index_ticks",
        series: transaction.dictionary.getSeriesKey("GWA", "btc-id"),
      } as const;
      const rules = { settleDelay: 2 * CADENCE, period: CADENCE, step: 1, serviceWindow: 200 * DAY };
      declareTargets(transaction, "index_ticks", [{ key, from: now - 300 * DAY, ...rules }], now);
      settle(transaction, key, { from: now - 199 * DAY, to: now - DAY }, "empty");
    });
    const options = { settings, directory, reader: warehouse.connection, now };
    expect(await ticksOf(options)).toMatchObject({ holes: 2, rows: (2 * DAY) / CADENCE - 2 });
  });

  it("counts what the filter of a run leaves of it", async () => {
    const options = { settings, directory, reader: undefined, now };
    const range = { from: now - 5 * DAY, to: now - DAY };
    expect(await ticksOf({ ...options, filter: { range } })).toMatchObject({ rows: DAY / CADENCE });
    expect(await ticksOf({ ...options, filter: { streams: ["ohlcv"] } })).toBeUndefined();
    await expect(ticksOf({ ...options, filter: { series: ["ETH"] } })).rejects.toThrow(
      "no index is called ETH",
    );
    const two = { ...directory, GWA: [...directory.GWA, { id: "eth-id", labels: ["ETH"] }] };
    expect(await ticksOf({ ...options, directory: two, filter: { series: ["ETH"] } })).toMatchObject({
      series: 1,
      holes: 1,
    });
  });
});

async function ticksOf(options: Parameters<typeof estimateBackfill>[0]) {
  return (await estimateBackfill(options)).streams.find(({ stream }) => stream === "index_ticks");
}
