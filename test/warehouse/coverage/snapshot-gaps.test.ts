import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { auditLedger } from "../../../src/warehouse/audit/audit-ledger.ts";
import type { LedgerKey } from "../../../src/warehouse/coverage/ledger.ts";
import { readRanges } from "../../../src/warehouse/coverage/series-gaps.ts";
import { endTarget, readPresentTs } from "../../../src/warehouse/coverage/targets.ts";
import { prune } from "../../../src/warehouse/rows/retention.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { settleSnapshot } from "../../support/warehouse/settle-snapshot.ts";

const CADENCE = 30 * MICROS_PER_SECOND;

/** The rules of coverage and gaps that the ledger breaks: together they are exactly the targets. */
function findBrokenTiling({ connection }: WarehouseWriter) {
  return auditLedger(connection).findings.filter(({ rule }) => rule === "tiling");
}

describe("the ranges of snapshot streams", () => {
  it("tile their targets after random snapshots, losses, pruning, ends and restarts", () => {
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
            else if (act === "end") {
              const series = transaction.dictionary.getSubscriptionKey(exchangeId);
              endTarget(transaction, { stream, series }, at);
            } else prune(transaction, "exchange_ticks", at - 5 * CADENCE);
          }
        });
        expect(findBrokenTiling(warehouse)).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it("are all read, however many there are", () => {
    const warehouse = openTestWarehouse({ clock: systemClock });
    const { connection } = warehouse;
    const count = 10_001;
    const start = readPresentTs(connection) - 2 * count * CADENCE;
    warehouse.transaction((t) => {
      settleSnapshot(t, { stream: "market_caps", exchangeId: null, at: start, cadence: CADENCE });
      const sql = `INSERT INTO settled_ranges WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
        SELECT stream, series, from_ts + 2 * i * ?, to_ts + 2 * i * ?, proof, reason, since FROM settled_ranges, n`;
      t.statement(sql).run([count - 1, CADENCE, CADENCE]);
    });
    const [key] = connection.rows<LedgerKey>("SELECT stream, series FROM targets");
    const { stream, series } = key as LedgerKey;
    const span = { stream, first: series, last: series };
    const ranges = readRanges(connection, span, readPresentTs(connection)).get(series) ?? [];
    const states = Object.groupBy(ranges, ({ state }) => state);
    expect([states.covered?.length, states.lost?.length]).toEqual([count, count - 1]);
    expect(findBrokenTiling(warehouse)).toEqual([]);
  });
});
