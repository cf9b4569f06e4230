import { describe, expect, it } from "vitest";
import {
  commitEndedTargets,
  commitSnapshotTargets,
  commitTargets,
  type SeriesTarget,
} from "../../../src/ingest/commit/targets.ts";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { parseTs } from "../../support/warehouse/records.ts";
import { settleSnapshot } from "../../support/warehouse/settle-snapshot.ts";

const noon = parseTs("2026-03-01T12:00:00Z");
const PERIOD = 30 * MICROS_PER_SECOND;
const rules = { settleDelay: 2 * PERIOD, period: PERIOD, step: 1, serviceWindow: null };
const btc = { indexType: "GWA", indexId: "btc", from: 100 };
const eth = { indexType: "GWA", indexId: "eth", from: 200 };
const blx = { indexType: "LX", indexId: "blx-id", from: 300, name: "BLX" };

function declare(
  warehouse: WarehouseWriter,
  targets: readonly SeriesTarget[],
  {
    unresolvedIndexTypes = [] as string[],
    at = noon,
    stream = "index_ticks" as "index_ticks" | "ohlcv",
  } = {},
): void {
  warehouse.transaction((t) => commitTargets(t, { stream, targets, rules, unresolvedIndexTypes, at }));
}

const targetsOf = (warehouse: WarehouseWriter) =>
  queryRows(
    warehouse,
    `SELECT w.stream, s.index_id, w.from_ts, w.to_ts FROM targets w JOIN series s ON s.series = w.series
    ORDER BY 1, 2, 3`,
  ).map((row) => Object.values(row));

describe("the targets of a history stream", () => {
  it("are what the settings select; of the others what was fetched", () => {
    const warehouse = openTestWarehouse();
    declare(warehouse, [btc, eth]);
    declare(warehouse, [btc], { stream: "ohlcv" });
    declare(warehouse, [eth, blx], { at: noon + 5 });
    expect(targetsOf(warehouse)).toEqual([
      ["index_ticks", "blx-id", 300, null],
      ["index_ticks", "eth", 200, null],
      ["ohlcv", "btc", 100, null],
    ]);
  });

  it("stay open for an index type whose selection is not known yet, and only for that type", () => {
    const warehouse = openTestWarehouse();
    declare(warehouse, [btc, blx]);
    declare(warehouse, [], { unresolvedIndexTypes: ["GWA"], at: noon + 5 });
    expect(targetsOf(warehouse)).toEqual([["index_ticks", "btc", 100, null]]);
    // A target that has ended stays ended.
    declare(warehouse, [], { unresolvedIndexTypes: ["LX"], at: noon + 9 });
    expect(targetsOf(warehouse)).toEqual([]);
  });

  it("name an index that is in no lookup, and leave the names of the others", () => {
    const warehouse = openTestWarehouse();
    const { name, ...unnamed } = blx;
    for (const index of [blx, unnamed]) declare(warehouse, [index, btc]);
    expect(queryRows(warehouse, "SELECT name FROM series ORDER BY index_id")).toEqual([
      { name: "BLX" },
      { name: "btc" },
    ]);
  });

  it("name an index by its price until something else names it", () => {
    const warehouse = openTestWarehouse();
    const nameOf = (more: Partial<SeriesTarget>) => {
      declare(warehouse, [{ ...btc, ...more }]);
      return queryRows(warehouse, "SELECT name FROM series")[0]?.name;
    };
    expect(nameOf({ matchedName: "Bitcoin" })).toBe("Bitcoin");
    expect(nameOf({ name: "BTC", matchedName: "Ether" })).toBe("BTC");
    expect(nameOf({ matchedName: "Ether" })).toBe("BTC");
  });

  it("that end are added, and end no others", () => {
    const warehouse = openTestWarehouse();
    declare(warehouse, [btc]);
    warehouse.transaction((t) =>
      commitEndedTargets(t, { stream: "index_ticks", targets: [eth, blx], rules, to: 250 }),
    );
    expect(targetsOf(warehouse)).toEqual([
      ["index_ticks", "btc", 100, null],
      ["index_ticks", "eth", 200, 250],
    ]);
    expect(queryRows(warehouse, "SELECT DISTINCT settle_delay, step, is_snapshot FROM targets")).toEqual([
      { settle_delay: rules.settleDelay, step: 1, is_snapshot: 0 },
    ]);
  });
});

it("the targets of a snapshot stream end when the settings no longer select the exchange", () => {
  const warehouse = openTestWarehouse();
  const observe = (stream: "exchange_ticks" | "market_caps", exchangeId: string | null) =>
    warehouse.transaction((t) => settleSnapshot(t, { stream, exchangeId, at: 1000, cadence: 100 }));
  observe("market_caps", null);
  for (const exchangeId of [null, "kraken", "okx"]) observe("exchange_ticks", exchangeId);
  warehouse.transaction((t) =>
    commitSnapshotTargets(t, { stream: "exchange_ticks", exchangeIds: [null, "okx"], at: 2000 }),
  );
  expect(targetsOf(warehouse)).toEqual([
    ["exchange_ticks", "", 1000, null],
    ["exchange_ticks", "kraken", 1000, 2000],
    ["exchange_ticks", "okx", 1000, null],
    ["market_caps", "", 1000, null],
  ]);
  warehouse.transaction((t) =>
    commitSnapshotTargets(t, { stream: "exchange_ticks", exchangeIds: ["okx"], at: 3000 }),
  );
  expect(targetsOf(warehouse)).toEqual([
    ["exchange_ticks", "", 1000, 3000],
    ["exchange_ticks", "kraken", 1000, 2000],
    ["exchange_ticks", "okx", 1000, null],
    ["market_caps", "", 1000, null],
  ]);
});
