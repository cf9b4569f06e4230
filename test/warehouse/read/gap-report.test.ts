import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { normalise, subtract, totalDuration } from "../../../src/model/time-range.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { declareTargets } from "../../../src/warehouse/coverage/targets.ts";
import { resolveNames } from "../../../src/warehouse/lookups/resolve-names.ts";
import { readGapReport } from "../../../src/warehouse/read/gap-report.ts";
import { present } from "../../support/present.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { settle } from "../../support/warehouse/settle.ts";

const HOUR = 3600 * MICROS_PER_SECOND;
const PERIOD = 30 * MICROS_PER_SECOND;
/** Around the present, and around the start of the service's window of 20 days. */
const hours = fc.integer({ min: -30 * 24, max: 48 }).map((n) => present + n * HOUR);
const ranges = fc
  .array(fc.tuple(hours, hours, fc.boolean()), { maxLength: 6 })
  .map((list) => list.map(([a, b, lost]) => ({ from: Math.min(a, b), to: Math.max(a, b), lost })));

describe("the gap report of a range", () => {
  it("lists exactly what is not covered, in parts that do not overlap", () => {
    const warehouse = openTestWarehouse({ clock: systemClock });
    let n = 0;
    fc.assert(
      fc.property(ranges, fc.option(hours), hours, hours, (settled, targetFrom, a, b) => {
        const id = `series-${n++}`;
        const covered = settled.filter(({ from, to, lost }) => from < to && !lost);
        warehouse.transaction((transaction) => {
          const key = {
            stream: "index_ticks",
            series: transaction.dictionary.getSeriesKey("GWA", id),
          } as const;
          if (targetFrom !== null) {
            const rules = {
              settleDelay: 2 * PERIOD,
              period: PERIOD,
              step: 1,
              serviceWindow: 20 * MICROS_PER_DAY,
            };
            declareTargets(transaction, "index_ticks", [{ key, from: targetFrom, ...rules }], present);
          }
          // Coverage takes precedence over loss, whichever was settled first.
          for (const range of settled) {
            if (range.from < range.to)
              settle(transaction, key, range, range.lost ? "lost" : "empty", range.lost ? "aged out" : null);
          }
        });
        const requested = { from: Math.min(a, b), to: Math.max(a, b) + HOUR };
        const { found } = resolveNames(warehouse.connection, [id]);
        const asked = { streams: ["index_ticks"] as const, series: found };
        const { gaps } = readGapReport(warehouse.connection, asked, requested);
        const missing = gaps.map(({ from_ts, to_ts }) => ({ from: from_ts, to: to_ts }));
        expect(normalise(missing)).toEqual(subtract([requested], normalise(covered)));
        expect(totalDuration(missing)).toBe(totalDuration(normalise(missing)));
        expect(gaps.every(({ reason }) => reason !== "")).toBe(true);
      }),
      { numRuns: 80 },
    );
  });
});
