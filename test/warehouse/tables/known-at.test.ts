import { expect, it } from "vitest";
import { openWarehouse } from "../../../src/library/open-warehouse.ts";
import { declareTargets } from "../../../src/warehouse/coverage/targets.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { HISTORY_FROM as from } from "../../support/library/random-history.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { retract, settle } from "../../support/warehouse/settle.ts";

const hour = 3_600_000_000;

it("an earlier state has the gaps of then: what each target lacked, from its start on", () => {
  const clock = new ManualClock();
  const writer = openTestWarehouse({ clock, hasAllViews: true });
  using warehouse = openWarehouse(writer.path);
  const settleHours = (...hours: readonly (readonly [from: number, to: number])[]) =>
    writer.transaction((transaction) => {
      const key = ledgerKey(transaction);
      for (const [first, end] of hours)
        settle(transaction, key, { from: from + first * hour, to: from + end * hour }, "empty", "ended");
    });
  const ledgerKey = (transaction: Transaction) =>
    ({ stream: "index_ticks", series: transaction.dictionary.getSeriesKey("GWA", "btc") }) as const;
  // Selected, deselected after ten hours, and selected again after twenty.
  for (const [first, isSelected] of [
    [0, true],
    [10, false],
    [20, true],
  ] as const)
    writer.transaction((transaction) => {
      const rules = { settleDelay: 0, period: 60_000_000, step: 1, serviceWindow: null };
      const target = { key: ledgerKey(transaction), from: from + first * hour, ...rules };
      if (first === 10) settle(transaction, target.key, { from, to: from + 10 * hour }, "empty", "ended");
      declareTargets(transaction, "index_ticks", isSelected ? [target] : [], from + first * hour);
      if (first === 10) retract(transaction, target.key, { from, to: from + 10 * hour });
    });
  settleHours([5, 6], [25, 26]);
  clock.jump(1_000);
  const knownAt = clock.now() * 1000;
  clock.jump(60_000);
  settleHours([0, 10], [20, 200]);
  const gaps = warehouse.query("SELECT from_ts, to_ts FROM gaps ORDER BY from_ts", {}, { knownAt });
  const hours = gaps.map(({ from_ts, to_ts }) => [from_ts, to_ts].map((ts) => (Number(ts) - from) / hour));
  expect(hours).toEqual([
    [0, 5],
    [6, 10],
    [20, 25],
    [26, (knownAt - from) / hour],
  ]);
});
