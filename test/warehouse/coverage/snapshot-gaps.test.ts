import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { endSnapshotTarget } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { readSnapshotRanges } from "../../../src/warehouse/coverage/snapshot-gaps.ts";
import { readPresentTs } from "../../../src/warehouse/coverage/targets.ts";
import { prune } from "../../../src/warehouse/rows/retention.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { settleSnapshot } from "../../support/warehouse/settle-snapshot.ts";

const CADENCE = 30 * MICROS_PER_SECOND;

function readInOnePass({ connection }: WarehouseWriter) {
  return [...readSnapshotRanges(connection)].flatMap(({ key: { stream, series }, ranges }) =>
    ranges.map(({ from, to, state, reason }) => [
      ...[stream, series, from, to, state],
      state === "covered" ? null : reason,
    ]),
  );
}

function readFromViews(warehouse: WarehouseWriter) {
  const sql = `SELECT v.stream, s.series, v.from_ts, v.to_ts, v.state, v.reason FROM (
      SELECT stream, index_id, from_ts, to_ts, 'covered' AS state, NULL AS reason FROM coverage WHERE proof <> 'lost'
      UNION ALL SELECT stream, index_id, from_ts, to_ts, state, reason FROM gaps
    ) v JOIN series s ON s.index_type = '' AND s.index_id = coalesce(v.index_id, '')
    ORDER BY v.stream, s.series, v.from_ts`;
  return queryRows(warehouse, sql).map((row) => Object.values(row));
}

/** Repeats until both reads saw the same second: the view has its own clock. */
function inOneSecond<T>(warehouse: WarehouseWriter, read: () => T): T {
  const second = () => readPresentTs(warehouse.connection);
  for (;;) {
    const before = second();
    const result = read();
    if (second() === before) return result;
  }
}

describe("the ranges of snapshot streams, read in one pass", () => {
  it("equal the views after random snapshots, losses, pruning, ends and restarts", () => {
    const step = fc.record({
      exchangeId: fc.constantFrom(null, "kraken", "bitstamp"),
      stream: fc.constantFrom("exchange_ticks" as const, "market_caps" as const),
      /** Early, on time, late, or after a pause. */
      after: fc.constantFrom(0.5, 1, 1, 1.001, 1.2, 40),
      act: fc.constantFrom("snapshot", "snapshot", "snapshot", "snapshot", "end", "prune"),
    });
    const warehouse = openTestWarehouse({ clock: systemClock });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        warehouse.connection.database.exec("DELETE FROM settled_ranges; DELETE FROM targets");
        const present = Math.floor(systemClock.now()) * 1_000;
        const length = steps.reduce((sum, { after }) => sum + after, 0);
        let at = present - Math.ceil(length * CADENCE);
        warehouse.transaction((transaction) => {
          for (const { stream, exchangeId, after, act } of steps) {
            at += Math.round(after * CADENCE);
            if (act === "snapshot") settleSnapshot(transaction, { stream, exchangeId, at, cadence: CADENCE });
            else if (act === "end") endSnapshotTarget(transaction, { stream, exchangeId, at });
            else prune(transaction, "exchange_ticks", at - 5 * CADENCE);
          }
        });
        const { onePass, views } = inOneSecond(warehouse, () => ({
          onePass: readInOnePass(warehouse),
          views: readFromViews(warehouse),
        }));
        expect(onePass).toEqual(views);
      }),
      { numRuns: 60 },
    );
  });

  it("are all read, however many there are", () => {
    const warehouse = openTestWarehouse({ clock: systemClock });
    // One more than a read returns.
    const count = 10_001;
    const start = readPresentTs(warehouse.connection) - 2 * count * CADENCE;
    warehouse.transaction((t) => {
      settleSnapshot(t, { stream: "market_caps", exchangeId: null, at: start, cadence: CADENCE });
      const sql = `INSERT INTO settled_ranges WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        SELECT stream, series, from_ts + 2 * i * ?, to_ts + 2 * i * ?, proof, reason, since FROM settled_ranges, n`;
      t.statement(sql).run([count - 1, CADENCE, CADENCE]);
    });
    const ranges = readInOnePass(warehouse);
    const broken = ranges.filter(([, , from], i) => from !== (i === 0 ? start : ranges[i - 1]?.[3]));
    expect(broken).toEqual([]);
    const states = Object.groupBy(ranges, ([, , , , state]) => String(state));
    expect([states.covered?.length, states.lost?.length]).toEqual([count, count - 1]);
  });
});
