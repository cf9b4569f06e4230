import { describe, expect, it } from "vitest";
import { forbidPeriod } from "../../../src/rule/snapshot.ts";
import {
  planSnapshotChanges,
  readStoredSnapshots,
  writeSnapshotChanges,
} from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { endTarget } from "../../../src/warehouse/coverage/targets.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { settleSnapshot } from "../../support/warehouse/settle-snapshot.ts";

const kraken = { stream: "exchange_ticks", exchangeId: "kraken" } as const;

function openSnapshots() {
  const warehouse = openTestWarehouse();
  return {
    warehouse,
    observe: (
      at: number,
      more: { exchangeId?: string | null; isEmpty?: boolean; cadence?: number; to?: number } = {},
    ) => warehouse.transaction((t) => settleSnapshot(t, { ...kraken, at, cadence: 10, ...more })),
    coverage: () =>
      queryRows(
        warehouse,
        "SELECT from_ts, to_ts, proof, reason FROM coverage ORDER BY index_id, from_ts",
      ).map((row) => Object.values(row)),
    targets: () =>
      queryRows(
        warehouse,
        "SELECT from_ts, to_ts, settle_delay, step, service_window, is_snapshot FROM targets ORDER BY 1",
      ).map((row) => Object.values(row)),
  };
}

describe("a snapshot", () => {
  it("covers one period, and touching periods are one range", () => {
    const { observe, coverage } = openSnapshots();
    for (const at of [100, 110, 130]) observe(at);
    expect(coverage()).toEqual([
      [100, 120, "rows", null],
      [130, 140, "rows", null],
    ]);
  });

  it("may be known to cover more than one period", () => {
    const { observe, coverage, targets } = openSnapshots();
    observe(100, { to: 135 });
    expect(coverage()).toEqual([[100, 135, "rows", null]]);
    expect(targets()).toEqual([[100, null, 20, 1, null, 1]]);
  });

  it("that the service denies is lost, unless its period is covered", () => {
    const { observe, coverage, targets, warehouse } = openSnapshots();
    const deny = (at: number) =>
      warehouse.transaction((t) =>
        writeSnapshotChanges(t, planSnapshotChanges(t, { ...kraken, cadence: 10 }, forbidPeriod(at, 10))),
      );
    deny(100);
    expect(targets()).toEqual([[100, null, 20, 1, null, 1]]);
    observe(115);
    for (const at of [110, 120]) deny(at);
    expect(coverage()).toEqual([
      [100, 115, "lost", "forbidden"],
      [115, 125, "rows", null],
      [125, 130, "lost", "forbidden"],
    ]);
  });

  it("opens a target that is final after two periods and cannot be fetched later", () => {
    const { observe, targets, warehouse } = openSnapshots();
    observe(100);
    observe(110);
    expect(targets()).toEqual([[100, null, 20, 1, null, 1]]);
    const end = (exchangeId: string | null) =>
      warehouse.transaction((t) => {
        const series = t.dictionary.getSubscriptionKey(exchangeId);
        endTarget(t, { stream: "exchange_ticks", series }, 115);
      });
    end(null);
    expect(targets()).toEqual([[100, null, 20, 1, null, 1]]);
    end("kraken");
    expect(targets()).toEqual([[100, 115, 20, 1, null, 1]]);
  });

  it("without a selected record covers its period as empty", () => {
    const { observe, coverage } = openSnapshots();
    observe(100, { isEmpty: true });
    observe(110, { isEmpty: true });
    expect(coverage()).toEqual([[100, 120, "empty", "nothing listed"]]);
  });

  it("without a selected record leaves the rows of its period as they are", () => {
    const { observe, coverage } = openSnapshots();
    observe(90, { cadence: 15 });
    observe(107, { cadence: 2 });
    observe(200);
    observe(100, { isEmpty: true });
    expect(coverage()).toEqual([
      [90, 105, "rows", null],
      [105, 107, "empty", "nothing listed"],
      [107, 109, "rows", null],
      [109, 110, "empty", "nothing listed"],
      [200, 210, "rows", null],
    ]);
    // All of it has rows: nothing is left to be empty.
    observe(92, { isEmpty: true });
    expect(coverage()).toHaveLength(5);
  });

  it("replaces an empty period when records come", () => {
    const { observe, coverage } = openSnapshots();
    observe(100, { isEmpty: true });
    observe(100);
    expect(coverage()).toEqual([[100, 110, "rows", null]]);
  });

  it("of one exchange says nothing about another", () => {
    const { observe, warehouse } = openSnapshots();
    const hasRows = (exchangeId: string | null) =>
      warehouse.transaction((t) => readStoredSnapshots(t, { ...kraken, exchangeId }).hadRows);
    observe(100, { exchangeId: null });
    observe(100, { isEmpty: true });
    expect([hasRows(null), hasRows("kraken"), hasRows("okx")]).toEqual([true, false, false]);
    observe(110);
    expect(hasRows("kraken")).toBe(true);
    expect(
      warehouse.transaction((t) => readStoredSnapshots(t, { ...kraken, stream: "derivative_ticks" }).hadRows),
    ).toBe(false);
  });
});
