import fc from "fast-check";
import { expect, it } from "vitest";
import { barWidths, formatTimestamp, MICROS_PER_DAY, type Micros } from "../../../src/model/time.ts";
import { declareTargets } from "../../../src/warehouse/coverage/targets.ts";
import { computeStaleBars, hasStaleBars } from "../../../src/warehouse/rows/kept-bars.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { applyChange, HISTORY_FROM, PERIOD, someHistory } from "../../support/library/random-history.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";

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

it("bars equal a plain calculation after any sequence of commits, corrections and withdrawals", () => {
  const now = HISTORY_FROM + 10 * MICROS_PER_DAY;
  const warehouse = openTestWarehouse({ clock: new ManualClock(now / 1000), hasAllViews: true });
  // Hundreds of commits that need not survive a crash.
  warehouse.connection.database.pragma("synchronous = OFF");
  let runs = 0;
  fc.assert(
    fc.property(someHistory, (history) => {
      const indexId = `series-${runs++}`;
      warehouse.transaction((transaction) => {
        const series = transaction.dictionary.getSeriesKey("GWA", indexId);
        const key = { stream: "index_ticks", series } as const;
        const rules = {
          ...{ settleDelay: 2 * PERIOD, period: PERIOD, step: 1 },
          serviceWindow: 200 * MICROS_PER_DAY,
        };
        declareTargets(transaction, "index_ticks", [{ key, from: HISTORY_FROM, ...rules }], HISTORY_FROM);
      });
      for (const commit of [...history, [{ kind: "compute", limit: 10_000 } as const]]) {
        warehouse.transaction((transaction) => {
          for (const change of commit) applyChange(transaction, indexId, change);
        });
        for (const width of ["1h", "4h", "1d"] as const) {
          const sql = `SELECT * FROM bars_${width} WHERE index_id = ? ORDER BY ts`;
          const bars = warehouse.connection.statement(sql).all([indexId]);
          const expected = barsOf(warehouse, indexId, barWidths[width]).map((bar) =>
            width === "1d" ? { ...bar, day: String(bar.time).slice(0, 10) } : bar,
          );
          expect(bars, `${width} after ${JSON.stringify(commit)}`).toEqual(expected);
        }
      }
    }),
    { numRuns: 25 },
  );
  warehouse.transaction((transaction) => computeStaleBars(transaction, 10_000));
  expect(hasStaleBars(warehouse.connection, now)).toBe(false);
  expect(queryRows(warehouse, "SELECT count(*) > 100 AS many FROM kept_bars")).toEqual([{ many: 1 }]);
});
