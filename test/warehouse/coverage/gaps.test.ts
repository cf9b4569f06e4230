import { describe, expect, it } from "vitest";
import { formatTimestamp, MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { NOT_FOUND } from "../../../src/rule/answer.ts";
import { loseAgedOut } from "../../../src/rule/apply.ts";
import { applyChanges } from "../../../src/warehouse/coverage/ledger.ts";
import {
  beginLiveSpans,
  clearLiveSpans,
  endLiveSpans,
  extendLiveSpans,
} from "../../../src/warehouse/coverage/live-spans.ts";
import { readGaps } from "../../../src/warehouse/coverage/series-gaps.ts";
import { readLedgerKeys } from "../../../src/warehouse/coverage/series-queries.ts";
import { declareTargets, recordBlockedReason } from "../../../src/warehouse/coverage/targets.ts";
import { recordClockSkew } from "../../../src/warehouse/tables/warehouse-state.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import {
  DELAY,
  declareTarget,
  gapsOf,
  HOUR,
  key,
  openTarget,
  present,
} from "../../support/warehouse/gaps.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { settle } from "../../support/warehouse/settle.ts";
import { settleSnapshot } from "../../support/warehouse/settle-snapshot.ts";

describe("the view gaps", () => {
  it("shows a head that grows while no daemon runs, and its youngest part as settling", () => {
    const warehouse = openTarget(present - 10 * HOUR);
    warehouse.transaction((t) => settle(t, key, { from: present - 9 * HOUR, to: present - HOUR }, "empty"));
    expect(gapsOf(warehouse)).toEqual([
      ["open", "pending", -10 * 180, -9 * 180],
      ["open", "pending", -180, -3],
      ["unconfirmed", "settling", -3, 0],
    ]);
    const [first] = queryRows(warehouse, "SELECT * FROM gaps ORDER BY from_ts LIMIT 1");
    const [from, to] = [present - 10 * HOUR, present - 9 * HOUR];
    expect(first).toEqual({
      ...{
        stream: "index_ticks",
        index_type: "GWA",
        index_id: "btc-id",
        name: "btc-id",
        from_ts: from,
        to_ts: to,
      },
      ...{ from_time: formatTimestamp(from), to_time: formatTimestamp(to), state: "open", reason: "pending" },
      lost_at: formatTimestamp(from + 200 * MICROS_PER_DAY),
    });
  });

  it("shows what left the service's window as lost before it is recorded", () => {
    const warehouse = openTarget(present - 300 * MICROS_PER_DAY);
    const covered = { from: present - 299 * MICROS_PER_DAY, to: present - 298 * MICROS_PER_DAY };
    warehouse.transaction((t) => settle(t, key, covered, "empty", "no records"));
    expect(gapsOf(warehouse).slice(0, 2)).toEqual([
      ["lost", "aged out", -298 * 4320, -200 * 4320],
      ["open", "pending", -200 * 4320, -3],
    ]);
    const [found] = readGaps(warehouse.connection, "index_ticks", present);
    if (!found) throw new Error("no gaps found");
    expect(found.agedOut).toEqual([{ from: covered.to, to: present - 200 * MICROS_PER_DAY }]);
    expect(found.open).toEqual([{ from: present - 200 * MICROS_PER_DAY, to: present - DELAY }]);
    warehouse.transaction((t) => applyChanges(t, found.key, loseAgedOut(found.agedOut)));
    expect(readGaps(warehouse.connection, "index_ticks", present)[0]?.agedOut).toEqual([]);
    expect(queryRows(warehouse, "SELECT proof, reason FROM coverage ORDER BY from_ts")).toEqual([
      { proof: "empty", reason: "no records" },
      { proof: "lost", reason: "aged out" },
    ]);
  });

  it("begins a target where the window begins until its oldest part is settled: what was never promised is not lost", () => {
    const warehouse = openTarget(present - 300 * MICROS_PER_DAY);
    const firstTs = () => readLedgerKeys(warehouse.connection)[0]?.firstTs ?? 0;
    expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -200 * 4320, -3]);
    expect(readGaps(warehouse.connection, "index_ticks", present)[0]?.agedOut).toEqual([]);
    expect(Math.abs(firstTs() - (present - 200 * MICROS_PER_DAY))).toBeLessThan(HOUR);
    // The first walk proves the newest part, then the oldest one; it ends where the window began at that time.
    warehouse.transaction((t) => settle(t, key, { from: present - HOUR, to: present }, "empty"));
    expect(readGaps(warehouse.connection, "index_ticks", present)[0]?.agedOut).toEqual([]);
    const oldest = { from: present - 201 * MICROS_PER_DAY, to: present - 199 * MICROS_PER_DAY };
    warehouse.transaction((t) => settle(t, key, oldest, "empty"));
    expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -199 * 4320, -180]);
    expect(firstTs()).toBe(oldest.from);
    // From then on everything above is promised.
    const later = present + 2 * MICROS_PER_DAY;
    expect(readGaps(warehouse.connection, "index_ticks", later)[0]?.agedOut).toEqual([
      { from: oldest.to, to: later - 200 * MICROS_PER_DAY },
    ]);
  });

  it("begins a target with the ledger if that begins at most a minute above the window: clocks differ", () => {
    const window = 1000 * MICROS_PER_SECOND;
    const start = present - window;
    const warehouse = openTestWarehouse();
    for (const [above, isReached] of [
      [900, false],
      [40, true],
    ] as const) {
      declareTarget(warehouse, 0, { serviceWindow: window });
      const from = start + above * MICROS_PER_SECOND;
      warehouse.transaction((t) => settle(t, key, { from, to: from + MICROS_PER_SECOND }, "empty"));
      gapsOf(warehouse);
      expect(readLedgerKeys(warehouse.connection)[0]?.firstTs === from).toBe(isReached);
    }
  });

  it("ends the target of daily bars at whole days", () => {
    const warehouse = openTestWarehouse();
    const today = Math.floor(present / MICROS_PER_DAY) * MICROS_PER_DAY;
    const rules = { step: MICROS_PER_DAY, settleDelay: 0, serviceWindow: null };
    declareTarget(warehouse, today - 3 * MICROS_PER_DAY, rules);
    warehouse.transaction((t) => settle(t, key, { from: today - 3 * MICROS_PER_DAY, to: today }, "empty"));
    expect(readGaps(warehouse.connection, "index_ticks", present)).toEqual([]);
    expect(queryRows(warehouse, "SELECT state, reason, from_ts, lost_at FROM gaps")).toEqual([
      { state: "unconfirmed", reason: "settling", from_ts: today, lost_at: null },
    ]);
  });

  it("ends the gaps of a deselected series, and begins again when it is selected again", () => {
    const warehouse = openTarget(present - 10 * HOUR);
    warehouse.transaction((t) => declareTargets(t, "index_ticks", [], present - 5 * HOUR));
    expect(gapsOf(warehouse)).toEqual([]);
    declareTarget(warehouse, present - 2 * HOUR);
    expect(gapsOf(warehouse).map(([, , from, to]) => [from, to])).toEqual([
      [-360, -3],
      [-3, 0],
    ]);
    declareTarget(warehouse, present - 6 * HOUR);
    expect(gapsOf(warehouse).map(([, , from]) => from)).toEqual([-1080, -3]);
  });

  it("uses the service's clock if it differs from the machine's", () => {
    const warehouse = openTarget(present + HOUR);
    expect(gapsOf(warehouse)).toEqual([]);
    warehouse.transaction((t) => recordClockSkew(t, 2 * HOUR));
    expect(gapsOf(warehouse).map(([, , from, to]) => [from, to])).toEqual([
      [180, 357],
      [357, 360],
    ]);
  });

  it("shows as lost what no snapshot covered, per subscription", () => {
    const warehouse = openTestWarehouse();
    const cadence = 30 * MICROS_PER_SECOND;
    const start = present - 2 * HOUR;
    warehouse.transaction((transaction) => {
      for (const at of [start, start + cadence, start + HOUR]) {
        settleSnapshot(transaction, { stream: "exchange_ticks", exchangeId: "kraken-id", at, cadence });
      }
      settleSnapshot(transaction, { stream: "market_caps", exchangeId: null, at: present, cadence });
    });
    const kraken = { stream: "exchange_ticks", index_type: null, index_id: "kraken-id", name: "kraken-id" };
    const lost = { state: "lost", reason: "not observed", from_ts: start + 2 * cadence, to_ts: start + HOUR };
    expect(queryRows(warehouse, "SELECT * FROM gaps ORDER BY from_ts")).toMatchObject([
      { ...kraken, ...lost },
      { state: "lost", reason: "not observed", from_ts: start + HOUR + cadence },
      { state: "unconfirmed", reason: "settling" },
    ]);
    const coverage = queryRows(warehouse, "SELECT stream, index_id, name, proof FROM coverage");
    expect(coverage.map(Object.values)).toEqual([
      ...Array(2).fill(["exchange_ticks", "kraken-id", "kraken-id", "rows"]),
      ["market_caps", null, null, "rows"],
    ]);
  });
});

describe("the gaps of a stream", () => {
  it("are read for all series, or for one", () => {
    const warehouse = openTestWarehouse();
    const range = (from: number, to: number) => [{ from: present - from * HOUR, to: present - to * HOUR }];
    const [btc, eth] = warehouse.transaction((t) => {
      const keyOf = (id: string) =>
        ({ stream: "index_ticks", series: t.dictionary.getSeriesKey("GWA", id) }) as const;
      const rules = { settleDelay: HOUR, period: HOUR / 2, step: 1, serviceWindow: null };
      const keys = [keyOf("btc-id"), keyOf("eth-id")] as const;
      const targets = keys.map((each) => ({ key: each, from: present - 9 * HOUR, ...rules }));
      declareTargets(t, "index_ticks", targets, present);
      for (const part of range(9, 5)) settle(t, keys[0], part, "empty");
      for (const part of range(9, 3)) settle(t, keys[1], part, "empty");
      return keys;
    });
    const read = (series?: number) =>
      readGaps(warehouse.connection, "index_ticks", present, series).map((gaps) => [gaps.key, gaps.open]);
    expect(read()).toEqual([
      [btc, range(5, 1)],
      [eth, range(3, 1)],
    ]);
    expect(read(btc.series)).toEqual([[btc, range(5, 1)]]);
    expect(read(eth.series)).toEqual([[eth, range(3, 1)]]);
  });
});

describe("live spans", () => {
  const spansOf = (warehouse: ReturnType<typeof openTestWarehouse>) =>
    queryRows(
      warehouse,
      "SELECT stream, index_type, index_id, from_ts, to_ts FROM live_spans ORDER BY 2, 3",
    ).map((row) => Object.values(row));

  it("begin at their confirmation, grow with their own ticks, and begin anew", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => {
      beginLiveSpans(t, [
        { indexType: "GWA", indexId: "btc", from: 10 },
        { indexType: "LX", from: 20 },
      ]);
      extendLiveSpans(t, [
        { indexType: "GWA", indexId: "eth", ts: 60 },
        { indexType: "GWA", indexId: "btc", ts: 50 },
        { indexType: "GWA", indexId: "btc", ts: 40 },
      ]);
      extendLiveSpans(t, [{ indexType: "GWA", indexId: "btc", ts: 45 }]);
    });
    expect(spansOf(warehouse)).toEqual([
      ["index_ticks", "GWA", "btc", 10, 50],
      ["index_ticks", "LX", "", 20, 20],
    ]);
    warehouse.transaction((t) => beginLiveSpans(t, [{ indexType: "GWA", indexId: "btc", from: 60 }]));
    expect(spansOf(warehouse)[0]).toEqual(["index_ticks", "GWA", "btc", 60, 60]);
  });
});

describe("the view gaps with a live span", () => {
  const settledTo = (warehouse: WarehouseWriter, to: number) =>
    warehouse.transaction((t) => settle(t, key, { from: present - 5 * HOUR, to }, "empty"));
  const addLiveSpan = (warehouse: WarehouseWriter, from: number, to: number, indexId?: string) =>
    warehouse.transaction((t) => {
      beginLiveSpans(t, [{ indexType: "GWA", indexId, from }]);
      extendLiveSpans(t, [{ indexType: "GWA", indexId: indexId ?? "btc-id", ts: to }]);
    });

  it("shows the live span as settling, and what is older as pending", () => {
    const warehouse = openTarget(present - 3 * HOUR);
    addLiveSpan(warehouse, present - HOUR, present);
    expect(gapsOf(warehouse)).toEqual([
      ["open", "pending", -540, -180],
      ["unconfirmed", "settling", -180, 0],
    ]);
    warehouse.transaction((t) => recordBlockedReason(t, key, "forbidden"));
    expect(gapsOf(warehouse)[0]).toEqual(["open", "forbidden", -540, -3]);
    expect(readGaps(warehouse.connection, "index_ticks", present)[0]?.blockedReason).toBe("forbidden");
  });

  it("shows the whole head as settling once REST was polled after the span began", () => {
    const warehouse = openTarget(present - 5 * HOUR);
    addLiveSpan(warehouse, present - HOUR, present);
    settledTo(warehouse, present - HOUR - DELAY - 1);
    expect(gapsOf(warehouse)[0]?.slice(0, 2)).toEqual(["open", "pending"]);
    settledTo(warehouse, present - HOUR - DELAY);
    expect(gapsOf(warehouse)).toEqual([["unconfirmed", "settling", -183, 0]]);
  });

  it("shows nothing as settling for a span that ended, or for the span of another index", () => {
    const warehouse = openTarget(present - 3 * HOUR);
    addLiveSpan(warehouse, present - 2 * HOUR, present - HOUR);
    expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -540, -3]);
    warehouse.transaction((t) => clearLiveSpans(t));
    addLiveSpan(warehouse, present - HOUR, present, "eth-id");
    expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -540, -3]);
    addLiveSpan(warehouse, present - HOUR, present, "btc-id");
    expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -540, -180]);
    warehouse.transaction((t) => endLiveSpans(t, [{ indexType: "GWA", indexId: "btc-id" }]));
    expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -540, -3]);
  });

  it("shows the head of an index that the service answers with 404 as settling until the next night", () => {
    const warehouse = openTarget(present - 90 * HOUR);
    const settleTo = (to: number) =>
      warehouse.transaction((t) => settle(t, key, { from: present - 90 * HOUR, to }, "empty", NOT_FOUND));
    // The nightly run itself may take two hours.
    settleTo(present - 27 * HOUR);
    expect(gapsOf(warehouse)[0]?.slice(0, 2)).toEqual(["open", "pending"]);
    settleTo(present - 25 * HOUR);
    expect(gapsOf(warehouse)).toEqual([["unconfirmed", "settling", -25 * 180, 0]]);
    // Also if a live span of its index type began since.
    addLiveSpan(warehouse, present - HOUR, present);
    expect(gapsOf(warehouse)).toEqual([["unconfirmed", "settling", -25 * 180, 0]]);
  });
});
