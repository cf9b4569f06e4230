import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TimeRange } from "../../../src/model/time-range.ts";
import { readSettledRanges, retract, settle, settleAsLost } from "../../../src/warehouse/coverage/ledger.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { LedgerProof } from "../../../src/warehouse/schema/coverage.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";

const MAX_TS = 30;
const range = fc
  .tuple(fc.integer({ min: 0, max: MAX_TS }), fc.integer({ min: 1, max: 12 }))
  .map(([from, length]): TimeRange => ({ from, to: Math.min(MAX_TS + 1, from + length) }));

type Step =
  | {
      readonly act: "settle";
      readonly range: TimeRange;
      readonly proof: LedgerProof;
      readonly reason: string | null;
    }
  | { readonly act: "retract"; readonly range: TimeRange }
  | { readonly act: "prune"; readonly range: TimeRange };

const proof = fc.constantFrom(
  { proof: "rows" as const, reason: null },
  { proof: "empty" as const, reason: null },
  { proof: "empty" as const, reason: "404" },
  { proof: "lost" as const, reason: "aged out" },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(range, proof).map(([r, p]): Step => ({ act: "settle", range: r, ...p })) },
  { weight: 3, arbitrary: range.map((r): Step => ({ act: "retract", range: r })) },
  { weight: 1, arbitrary: range.map((r): Step => ({ act: "prune", range: r })) },
);

/** The state of each timestamp after the steps: a slow but obvious model. */
function applyNaively(steps: readonly Step[]): (string | undefined)[] {
  const states: (string | undefined)[] = Array(MAX_TS + 1).fill(undefined);
  for (const { act, range: r, ...more } of steps) {
    for (let ts = r.from; ts < r.to; ts++) {
      if (act === "retract") states[ts] = undefined;
      else if (act === "prune") states[ts] = "lost retention";
      else {
        const { proof: p, reason } = more as { proof: LedgerProof; reason: string | null };
        const isCovered = states[ts]?.startsWith("rows") || states[ts]?.startsWith("empty");
        if (p !== "lost" || !isCovered) states[ts] = `${p} ${reason}`;
      }
    }
  }
  return states;
}

function applyStep(transaction: Transaction, series: number, step: Step): void {
  const key = { stream: "ohlcv", series } as const;
  transaction.markWritten("ohlcv", series);
  if (step.act === "retract") retract(transaction, key, step.range);
  else if (step.act === "prune") settleAsLost(transaction, key, step.range, "retention");
  else settle(transaction, key, step.range, step.proof, step.reason);
}

describe("the ledger", () => {
  it("equals a naive model after random steps, with disjoint and merged ranges", () => {
    const warehouse = openTestWarehouse();
    let series = 0;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        series++;
        warehouse.transaction((transaction) => {
          for (const each of steps) applyStep(transaction, series, each);
        });
        const settled = readSettledRanges(warehouse.connection, { stream: "ohlcv", series });
        const states = Array.from({ length: MAX_TS + 1 }, (_, ts) => {
          const found = settled.filter(({ from, to }) => from <= ts && ts < to);
          expect(found.length).toBeLessThanOrEqual(1);
          return found[0] && `${found[0].proof} ${found[0].reason}`;
        });
        expect(states).toEqual(applyNaively(steps));
        const changes = states.filter((text, i) => text !== undefined && text !== states[i - 1]).length;
        expect(settled).toHaveLength(changes);
      }),
      { numRuns: 600 },
    );
  });

  it("settles rows only in the transaction that wrote them, and nothing after it ended", () => {
    const warehouse = openTestWarehouse();
    const key = { stream: "index_ticks", series: 1 } as const;
    const hour = { from: 0, to: 3_600_000_000 };
    expect(() => warehouse.transaction((t) => settle(t, key, hour, "rows"))).toThrow("wrote no rows");
    let ended: Transaction | undefined;
    warehouse.transaction((transaction) => {
      ended = transaction;
      writeRecords(transaction, "index_ticks", [tick(5, "1")], "rest");
      settle(transaction, key, hour, "rows");
    });
    expect(() => settle(ended as Transaction, key, hour, "empty")).toThrow("transaction has ended");
    expect(() => retract(ended as Transaction, key, hour)).toThrow("transaction has ended");
    expect(readSettledRanges(warehouse.connection, key)).toEqual([{ ...hour, proof: "rows", reason: null }]);
  });

  it("refuses to settle a range with rows as empty", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(5, "1")], "live"));
    const key = { stream: "index_ticks", series: 1 } as const;
    expect(() => warehouse.transaction((t) => settle(t, key, { from: 0, to: 6 }, "empty"))).toThrow(
      "the range has rows",
    );
    warehouse.transaction((t) => settle(t, key, { from: 6, to: 9 }, "empty", "404"));
    expect(queryRows(warehouse, "SELECT from_ts, to_ts, proof, reason, name FROM coverage")).toEqual([
      { from_ts: 6, to_ts: 9, proof: "empty", reason: "404", name: "btc-id" },
    ]);
  });

  it("stores neither rows nor coverage nor dictionary keys of a failed transaction", () => {
    const warehouse = openTestWarehouse();
    expect(() =>
      warehouse.transaction((transaction) => {
        writeRecords(transaction, "index_ticks", [tick(5, "1")], "rest");
        settle(transaction, { stream: "index_ticks", series: 1 }, { from: 0, to: 9 }, "rows");
        throw new Error("write failed");
      }),
    ).toThrow("write failed");
    expect(queryRows(warehouse, "SELECT * FROM index_ticks")).toEqual([]);
    expect(queryRows(warehouse, "SELECT * FROM coverage")).toEqual([]);
    for (const indexId of ["eth-id", "btc-id"]) {
      warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(5, "1", { indexId })], "rest"));
    }
    expect(queryRows(warehouse, "SELECT index_id FROM index_ticks ORDER BY index_id")).toEqual([
      { index_id: "btc-id" },
      { index_id: "eth-id" },
    ]);
  });

  it("throws on an inconsistent ledger", () => {
    const warehouse = openTestWarehouse();
    warehouse.connection.database.exec(
      `INSERT INTO settled_ranges VALUES ('ohlcv', 1, 0, 10, 'rows', NULL), ('ohlcv', 1, 5, 20, 'rows', NULL)`,
    );
    expect(() => readSettledRanges(warehouse.connection, { stream: "ohlcv", series: 1 })).toThrow(
      "not ascending and disjoint",
    );
    expect(() =>
      warehouse.transaction((t) =>
        settle(t, { stream: "ohlcv", series: 1 }, { from: 4, to: 6 }, "lost", "x"),
      ),
    ).toThrow("not ascending and disjoint");
  });
});
