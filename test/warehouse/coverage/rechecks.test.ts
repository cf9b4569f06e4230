import { describe, expect, it } from "vitest";
import {
  hasNoContracts,
  readDueRechecks,
  recordNoContracts,
  recordRecheck,
  startRechecks,
} from "../../../src/warehouse/coverage/rechecks.ts";
import { declareTargets, type Target } from "../../../src/warehouse/coverage/targets.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const ends = { settleDelay: 60, step: 1, serviceWindow: 1000 };
const rules = { ...ends, period: 30 };

/** Two selected series, `btc` and `eth`, whose rechecks began on 1 March. */
function openWithSeries() {
  const warehouse = openTestWarehouse();
  const [btc, eth] = warehouse.transaction((transaction) => {
    const keys = ["btc", "eth"].map(
      (id) => ({ stream: "index_ticks", series: transaction.dictionary.getSeriesKey("GWA", id) }) as const,
    );
    const targets = keys.map((key, i): Target => ({ key, from: 100 + i, ...rules }));
    declareTargets(transaction, "index_ticks", targets, 500);
    for (const key of keys) startRechecks(transaction, key, "2026-03-01");
    return keys as [(typeof keys)[0], (typeof keys)[0]];
  });
  const due = (day: string, series?: number) =>
    readDueRechecks(warehouse.connection, "index_ticks", day, series).map(({ indexId }) => indexId);
  return { warehouse, btc, eth, due };
}

describe("a recheck", () => {
  it("is due on the next day, with what the walk needs to know", () => {
    const { warehouse, btc, due } = openWithSeries();
    expect(due("2026-03-01")).toEqual([]);
    expect(due("2026-03-02")).toEqual(["btc", "eth"]);
    expect(due("2026-03-02", btc.series)).toEqual(["btc"]);
    expect(readDueRechecks(warehouse.connection, "index_ticks", "2026-03-02", btc.series)).toEqual([
      { key: btc, indexType: "GWA", indexId: "btc", name: "btc", targetFrom: 100, ...ends },
    ]);
    expect(readDueRechecks(warehouse.connection, "ohlcv", "2026-03-02")).toEqual([]);
  });

  it("is done once a day, and never set back", () => {
    const { warehouse, btc, due } = openWithSeries();
    warehouse.transaction((t) => recordRecheck(t, { key: btc, day: "2026-03-02" }));
    expect(due("2026-03-02")).toEqual(["eth"]);
    warehouse.transaction((t) => recordRecheck(t, { key: btc, day: "2026-02-01" }));
    warehouse.transaction((t) => startRechecks(t, btc, "2026-02-01"));
    expect(due("2026-03-02")).toEqual(["eth"]);
    expect(due("2026-03-03")).toEqual(["btc", "eth"]);
  });

  it("is not due for a series that is no longer selected", () => {
    const { warehouse, eth, due } = openWithSeries();
    warehouse.transaction((t) => declareTargets(t, "index_ticks", [{ key: eth, from: 101, ...rules }], 500));
    expect(due("2026-03-02")).toEqual(["eth"]);
  });
});

describe("an exchange without contracts of a type", () => {
  const entry = { exchangeId: "kraken", derivativeType: "options", day: "2026-03-01" };

  it("is asked once a day", () => {
    const { warehouse, due } = openWithSeries();
    warehouse.transaction((t) => recordNoContracts(t, entry));
    expect(hasNoContracts(warehouse.connection, entry)).toBe(true);
    for (const change of [{ exchangeId: "okx" }, { derivativeType: "futures" }, { day: "2026-03-02" }])
      expect(hasNoContracts(warehouse.connection, { ...entry, ...change })).toBe(false);
    warehouse.transaction((t) => recordNoContracts(t, { ...entry, day: "2026-03-02" }));
    expect(hasNoContracts(warehouse.connection, { ...entry, day: "2026-03-02" })).toBe(true);
    expect(hasNoContracts(warehouse.connection, entry)).toBe(false);
    // Such an entry is no series.
    expect(due("2026-03-09")).toEqual(["btc", "eth"]);
  });

  it("is asked again at the next poll if contracts of it are stored", () => {
    const { warehouse } = openWithSeries();
    warehouse.connection.database.exec(
      `INSERT INTO contracts (id, derivative_type, exchange_id, first_seen, absences, is_described)
        VALUES ('c1', 'options', 'kraken', '', 0, 1)`,
    );
    const record = (more: Partial<typeof entry>) => {
      warehouse.transaction((t) => recordNoContracts(t, { ...entry, ...more }));
      return hasNoContracts(warehouse.connection, { ...entry, ...more });
    };
    expect(record({})).toBe(false);
    expect(record({ exchangeId: "okx" })).toBe(true);
    expect(record({ derivativeType: "futures" })).toBe(true);
  });
});
