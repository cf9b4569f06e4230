import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { extent, normalise, subtract } from "../../../src/model/time-range.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { declareWanted } from "../../../src/warehouse/coverage/targets.ts";
import { findNamed } from "../../../src/warehouse/lookups/resolve-names.ts";
import { readMissingInWindow } from "../../../src/warehouse/read/gap-report.ts";
import { openScratch } from "../../support/warehouse/open-warehouse.ts";

const HOUR = 3600 * MICROS_PER_SECOND;
const present = Math.floor(Date.now() / 1000) * MICROS_PER_SECOND;
/** Around the present, and around the edge of the service's window of 20 days. */
const hours = fc.integer({ min: -30 * 24, max: 48 }).map((n) => present + n * HOUR);
const ranges = fc
  .array(fc.tuple(hours, hours, fc.boolean()), { maxLength: 6 })
  .map((list) => list.map(([a, b, lost]) => ({ from: Math.min(a, b), to: Math.max(a, b), lost })));

describe("what is missing from a window", () => {
  it("is, to the microsecond, what is not covered of it, in parts that do not overlap", () => {
    const warehouse = openScratch({ clock: systemClock });
    let n = 0;
    fc.assert(
      fc.property(ranges, fc.option(hours), hours, hours, (settled, wantedFrom, a, b) => {
        const id = `series-${n++}`;
        const covered = settled.filter(({ from, to, lost }) => from < to && !lost);
        warehouse.transaction((transaction) => {
          const line = { stream: "index_ticks", series: transaction.dictionary.series("GWA", id) } as const;
          if (wantedFrom !== null) {
            const rules = { settleDelay: 60 * MICROS_PER_SECOND, step: 1, keptFor: 20 * MICROS_PER_DAY };
            declareWanted(transaction, "index_ticks", [{ line, from: wantedFrom, ...rules }], present);
          }
          // What is proven outweighs what is lost, whichever came first.
          for (const range of settled) {
            if (range.from < range.to)
              settle(transaction, line, range, range.lost ? "lost" : "empty", range.lost ? "aged out" : null);
          }
        });
        const window = { from: Math.min(a, b), to: Math.max(a, b) + HOUR };
        const { found } = findNamed(warehouse.connection, [id]);
        const { gaps } = readMissingInWindow(
          warehouse.connection,
          { streams: ["index_ticks"], series: found },
          window,
        );
        const missing = gaps.map(({ from_ts, to_ts }) => ({ from: from_ts, to: to_ts }));
        expect(normalise(missing)).toEqual(subtract([window], normalise(covered)));
        expect(extent(missing)).toBe(extent(normalise(missing)));
        expect(gaps.every(({ reason }) => reason !== "")).toBe(true);
      }),
      { numRuns: 150 },
    );
  });
});
