import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { endObservation, observe } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { walkObserved } from "../../../src/warehouse/read/snapshot-gaps.ts";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { prune } from "../../../src/warehouse/rows/retention.ts";
import { presentTs } from "../../../src/warehouse/views/sql-fragments.ts";
import type { Warehouse } from "../../../src/warehouse/writer.ts";
import { openScratch, rows } from "../../support/warehouse/open-warehouse.ts";

const CADENCE = 30 * MICROS_PER_SECOND;

function walked({ connection }: Warehouse) {
  const stretches: unknown[][] = [];
  walkObserved(connection, ({ stream, series }, { from, to, state, reason }) => {
    stretches.push([stream, series, from, to, state, state === "covered" ? null : reason]);
  });
  return stretches;
}

function viewed(warehouse: Warehouse) {
  const sql = `SELECT v.stream, s.series, v.from_ts, v.to_ts, v.state, v.reason FROM (
      SELECT stream, index_id, from_ts, to_ts, 'covered' AS state, NULL AS reason FROM coverage WHERE proof <> 'lost'
      UNION ALL SELECT stream, index_id, from_ts, to_ts, CASE reason WHEN 'settling' THEN reason ELSE state END, reason FROM gaps
    ) v JOIN series s ON s.index_type = '' AND s.index_id = coalesce(v.index_id, '')
    ORDER BY v.stream, s.series, v.from_ts`;
  return rows(warehouse, sql).map((row) => Object.values(row));
}

/** Both look at the same second: the view has a clock of its own. */
function inOneSecond<T>(warehouse: Warehouse, look: () => T): T {
  const second = () => warehouse.connection.database.prepare(`SELECT ${presentTs}`).pluck().get();
  for (;;) {
    const before = second();
    const seen = look();
    if (second() === before) return seen;
  }
}

describe("latest-only lines, walked in one pass", () => {
  it("say what the views say, whatever was seen, missed, pruned, ended and begun again", () => {
    const step = fc.record({
      exchangeId: fc.constantFrom(null, "kraken", "bitstamp"),
      stream: fc.constantFrom("exchange_ticks" as const, "market_caps" as const),
      /** Early, in time, late, or after a pause. */
      after: fc.constantFrom(0.5, 1, 1, 1.001, 1.2, 40),
      act: fc.constantFrom("observe", "observe", "observe", "observe", "end", "prune"),
    });
    const warehouse = openScratch({ clock: systemClock });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        warehouse.connection.database.exec("DELETE FROM settled_ranges; DELETE FROM wanted_ranges");
        const present = Math.floor(systemClock.now()) * 1_000;
        const length = steps.reduce((sum, { after }) => sum + after, 0);
        let at = present - Math.ceil(length * CADENCE);
        warehouse.transaction((transaction) => {
          for (const { stream, exchangeId, after, act } of steps) {
            at += Math.round(after * CADENCE);
            if (act === "observe") observe(transaction, { stream, exchangeId, at, cadence: CADENCE });
            else if (act === "end") endObservation(transaction, { stream, exchangeId, at });
            else prune(transaction, "exchange_ticks", at - 5 * CADENCE);
          }
        });
        const { walk, view } = inOneSecond(warehouse, () => ({
          walk: walked(warehouse),
          view: viewed(warehouse),
        }));
        expect(walk).toEqual(view);
      }),
      { numRuns: 60 },
    );
  });

  it("cost the status little, however many slivers were missed", () => {
    const warehouse = openScratch({ clock: systemClock });
    const present = Math.floor(systemClock.now()) * 1_000;
    const slivers = 25_000;
    warehouse.transaction((transaction) => {
      for (let i = slivers; i > 0; i--) {
        const at = present - i * CADENCE;
        observe(transaction, { stream: "exchange_ticks", exchangeId: null, at, cadence: CADENCE - 1_000 });
      }
    });
    const { connection } = warehouse;
    const took = (look: () => unknown) => {
      const begun = systemClock.monotonic();
      look();
      return systemClock.monotonic() - begun;
    };
    const status = readStatus(connection, present).streams.find(({ stream }) => stream === "exchange_ticks");
    expect(status).toMatchObject({ open: 0, lost_seconds: 25 });
    expect(status?.lost).toBeGreaterThan(slivers - 5);
    // The view seeks for each of them: beside it, in the same moment, the status must not be slow.
    const view = took(() => rows(warehouse, "SELECT count(*) FROM gaps"));
    expect(Math.min(...[1, 2, 3].map(() => took(() => readStatus(connection, present))))).toBeLessThan(
      view / 2,
    );
  });
});
