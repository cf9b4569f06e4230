import { describe, expect, it } from "vitest";
import { NOT_FOUND } from "../../../src/rule/answer.ts";
import {
  beginLiveSpans,
  clearLiveSpans,
  endLiveSpans,
  extendLiveSpans,
} from "../../../src/warehouse/coverage/live-spans.ts";
import { recordBlockedReason } from "../../../src/warehouse/coverage/targets.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { DELAY, gapsOf, HOUR, key, openTarget, present } from "../../support/warehouse/gaps.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { settle } from "../../support/warehouse/settle.ts";

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
