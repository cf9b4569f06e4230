import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { normalise } from "../../../src/model/time-range.ts";
import { storeClaim } from "../../../src/warehouse/coverage/pending-claims.ts";
import {
  addTarget,
  declareTargets,
  endTarget,
  openTarget,
  recordBlockedReason,
  type Target,
} from "../../../src/warehouse/coverage/targets.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { settle } from "../../support/warehouse/settle.ts";

const key = { stream: "index_ticks", series: 1 } as const;
const other = { stream: "index_ticks", series: 2 } as const;
const target = (from: number, more: Partial<Target> = {}): Target => ({
  ...{ key, from, settleDelay: 60, period: 30, step: 1, serviceWindow: null, ...more },
});

const open = (warehouse: WarehouseWriter, next: Target, isSnapshot = false) =>
  warehouse.transaction((t) => openTarget(t, next, isSnapshot));
const end = (warehouse: WarehouseWriter, at: number) => warehouse.transaction((t) => endTarget(t, key, at));
const rangesOf = (warehouse: WarehouseWriter, series = 1) =>
  queryRows(warehouse, "SELECT from_ts, to_ts FROM targets WHERE series = ? ORDER BY 1", series).map(
    ({ from_ts, to_ts }) => [from_ts, to_ts],
  );

describe("a target", () => {
  it("is gone if it ends before it began", () => {
    const warehouse = openTestWarehouse();
    open(warehouse, target(100));
    open(warehouse, target(100, { key: other }));
    end(warehouse, 100);
    expect(rangesOf(warehouse)).toEqual([]);
    expect(rangesOf(warehouse, 2)).toEqual([[100, null]]);
  });

  it("has the rules of the latest settings", () => {
    const warehouse = openTestWarehouse();
    const rules = () =>
      queryRows(warehouse, "SELECT settle_delay, step, service_window, is_snapshot FROM targets").map((row) =>
        Object.values(row),
      );
    open(warehouse, target(100));
    expect(rules()).toEqual([[60, 1, null, 0]]);
    for (const change of [{ settleDelay: 90 }, { step: 5 }, { serviceWindow: 1000 }]) {
      open(warehouse, target(100, change));
      const { settleDelay = 60, step = 1, serviceWindow = null } = change;
      expect(rules()).toEqual([[settleDelay, step, serviceWindow, 0]]);
    }
    open(warehouse, target(100, { key: { stream: "market_caps", series: 1 } }), true);
    expect(rules()).toContainEqual([60, 1, null, 1]);
  });

  it("equals the union of all selected times, whatever the order of starts and ends", () => {
    const warehouse = openTestWarehouse();
    const FOREVER = 1000;
    const step = fc.record({
      isStart: fc.boolean(),
      back: fc.nat(30),
      pause: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        warehouse.connection.database.exec("DELETE FROM targets");
        let now = 100;
        let openFrom: number | undefined;
        let ended: { from: number; to: number }[] = [];
        for (const { isStart, back, pause } of steps) {
          now += pause;
          if (isStart) {
            open(warehouse, target(now - back));
            openFrom = Math.min(openFrom ?? FOREVER, now - back);
          } else {
            end(warehouse, now);
            if (openFrom !== undefined) ended = [...ended, { from: openFrom, to: now }];
            openFrom = undefined;
          }
        }
        const rest = openFrom === undefined ? [] : [{ from: openFrom, to: FOREVER }];
        const expected = normalise([...ended, ...rest]);
        const stored = rangesOf(warehouse).map(([from, to]) => ({ from, to: to ?? FOREVER }));
        expect(stored).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });
});

describe("a key that is no longer selected", () => {
  const settleRows = (warehouse: WarehouseWriter, from: number, to: number) =>
    warehouse.transaction((t) => settle(t, key, { from, to }, "lost", "test"));
  const declare = (warehouse: WarehouseWriter, declared: Target[], at: number) =>
    warehouse.transaction((t) => declareTargets(t, "index_ticks", declared, at));

  it("has what was settled as its targets, and all of it again once it is selected", () => {
    const warehouse = openTestWarehouse();
    declare(warehouse, [target(10), target(10, { key: other })], 50);
    settleRows(warehouse, 20, 30);
    settleRows(warehouse, 60, 70);
    const declareOther = () => declare(warehouse, [target(10, { key: other })], 95);
    declareOther();
    const fetched = [
      [20, 30],
      [60, 70],
    ];
    expect(rangesOf(warehouse)).toEqual(fetched);
    // A series that was fetched once on request, or not at all, is not fetched later either.
    warehouse.transaction((t) => addTarget(t, target(25), 90));
    declareOther();
    expect(rangesOf(warehouse)).toEqual(fetched);
    expect(rangesOf(warehouse, 2)).toEqual([[10, null]]);
    declare(warehouse, [target(10)], 99);
    expect(rangesOf(warehouse)).toEqual([[10, null]]);
    expect(rangesOf(warehouse, 2)).toEqual([]);
  });

  it("awaits no second answer of the service, unless it was fetched on request", () => {
    const warehouse = openTestWarehouse();
    const claim = { kind: "end", range: { from: 10, to: 20 }, subject: [20], answers: 1 } as const;
    const seen = { firstAt: 50, lastAt: 50, acceptedAt: null };
    const storeEnd = () => warehouse.transaction((t) => storeClaim(t, key, { ...claim, ...seen }, 0));
    declare(warehouse, [target(10)], 50);
    storeEnd();
    declare(warehouse, [], 60);
    expect(queryRows(warehouse, "SELECT * FROM pending_claims")).toEqual([]);
    expect(rangesOf(warehouse)).toEqual([]);
    warehouse.transaction((t) => addTarget(t, target(10), 60));
    storeEnd();
    declare(warehouse, [], 70);
    expect(rangesOf(warehouse)).toEqual([[10, 20]]);
  });
});

describe("a target that ends", () => {
  const add = (warehouse: WarehouseWriter, from: number, to: number, more: Partial<Target> = {}) =>
    warehouse.transaction((t) => addTarget(t, target(from, more), to));

  it("is the union with the targets of its key that it overlaps or touches", () => {
    const warehouse = openTestWarehouse();
    const steps: readonly [from: number, to: number, expected: string][] = [
      [30, 40, "30-40"],
      [40, 40, "30-40"],
      [42, 41, "30-40"],
      [90, 90, "30-40"],
      [32, 35, "30-40"],
      [40, 42, "30-42"],
      [28, 30, "28-42"],
      [44, 50, "28-42 44-50"],
      [60, 70, "28-42 44-50 60-70"],
      [43, 59, "28-42 43-59 60-70"],
      [41, 65, "28-70"],
      [20, 80, "20-80"],
    ];
    for (const [from, to, expected] of steps) {
      add(warehouse, from, to);
      const ranges = rangesOf(warehouse).map((range) => range.join("-"));
      expect(ranges.join(" "), `${from}-${to}`).toBe(expected);
    }
    add(warehouse, 0, 90, { key: other });
    expect([rangesOf(warehouse), rangesOf(warehouse, 2)]).toEqual([[[20, 80]], [[0, 90]]]);
  });

  it("leaves an open-ended target as it is, but for its start", () => {
    const warehouse = openTestWarehouse();
    const columns = "from_ts, to_ts, settle_delay, step, service_window, is_snapshot, blocked_reason";
    const rows = () => queryRows(warehouse, `SELECT ${columns} FROM targets`).map(Object.values);
    open(warehouse, target(50, { settleDelay: 90, period: 45, step: 5, serviceWindow: 1000 }));
    warehouse.transaction((t) => recordBlockedReason(t, key, "forbidden"));
    for (const [from, to, start] of [
      [60, 70, 50],
      [40, 60, 40],
      [10, 40, 10],
    ] as const) {
      add(warehouse, from, to);
      expect(rows()).toEqual([[start, null, 90, 5, 1000, 0, "forbidden"]]);
    }
    add(warehouse, 0, 9);
    expect(rows()).toEqual([
      [0, 9, 60, 1, null, 0, null],
      [10, null, 90, 5, 1000, 0, "forbidden"],
    ]);
  });
});

describe("the reason why a target is blocked", () => {
  it("belongs to one key and goes when the target ends", () => {
    const warehouse = openTestWarehouse();
    const reasons = () =>
      queryRows(warehouse, "SELECT blocked_reason FROM targets ORDER BY series").flatMap(Object.values);
    open(warehouse, target(10));
    open(warehouse, target(10, { key: other }));
    warehouse.transaction((t) => recordBlockedReason(t, key, "forbidden"));
    expect(reasons()).toEqual(["forbidden", null]);
    warehouse.transaction((t) => recordBlockedReason(t, key, "gone"));
    expect(reasons()).toEqual(["gone", null]);
    // Declaring the same targets again does not unblock them.
    const same = [target(10), target(10, { key: other })];
    warehouse.transaction((t) => declareTargets(t, "index_ticks", same, 15));
    expect(reasons()).toEqual(["gone", null]);
    end(warehouse, 20);
    expect(reasons()).toEqual([null, null]);
  });
});
