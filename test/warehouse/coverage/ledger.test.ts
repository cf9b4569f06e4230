import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  type Proof,
  retract,
  settle,
  settleAsLost,
  settledRanges,
} from "../../../src/warehouse/coverage/ledger.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { openScratch, rows } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";

const SPAN = 30;
const range = fc
  .tuple(fc.integer({ min: 0, max: SPAN }), fc.integer({ min: 1, max: 12 }))
  .map(([from, length]): TimeRange => ({ from, to: Math.min(SPAN + 1, from + length) }));

type Step =
  | {
      readonly act: "settle";
      readonly range: TimeRange;
      readonly proof: Proof;
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

/** What each moment says after the steps: slow, and beyond doubt. */
function naively(steps: readonly Step[]): (string | undefined)[] {
  const said: (string | undefined)[] = Array(SPAN + 1).fill(undefined);
  for (const { act, range: r, ...more } of steps) {
    for (let moment = r.from; moment < r.to; moment++) {
      if (act === "retract") said[moment] = undefined;
      else if (act === "prune") said[moment] = "lost retention";
      else {
        const { proof: p, reason } = more as { proof: Proof; reason: string | null };
        const proven = said[moment]?.startsWith("rows") || said[moment]?.startsWith("empty");
        if (p !== "lost" || !proven) said[moment] = `${p} ${reason}`;
      }
    }
  }
  return said;
}

function take(transaction: Transaction, series: number, done: Step): void {
  const line = { stream: "ohlcv", series } as const;
  transaction.carry("ohlcv", series);
  if (done.act === "retract") retract(transaction, line, done.range);
  else if (done.act === "prune") settleAsLost(transaction, line, done.range, "retention");
  else settle(transaction, line, done.range, done.proof, done.reason);
}

describe("the ledger", () => {
  it("says of every moment what the last step said, in ranges that are disjoint and merged", () => {
    const warehouse = openScratch();
    let series = 0;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        series++;
        warehouse.transaction((transaction) => {
          for (const done of steps) take(transaction, series, done);
        });
        const settled = settledRanges(warehouse.connection, { stream: "ohlcv", series });
        const said = Array.from({ length: SPAN + 1 }, (_, moment) => {
          const found = settled.filter(({ from, to }) => from <= moment && moment < to);
          expect(found.length).toBeLessThanOrEqual(1);
          return found[0] && `${found[0].proof} ${found[0].reason}`;
        });
        expect(said).toEqual(naively(steps));
        const changes = said.filter((text, i) => text !== undefined && text !== said[i - 1]).length;
        expect(settled).toHaveLength(changes);
      }),
      { numRuns: 600 },
    );
  });

  it("settles rows only in the transaction that carries them, and nothing once it is over", () => {
    const warehouse = openScratch();
    const line = { stream: "index_ticks", series: 1 } as const;
    const hour = { from: 0, to: 3_600_000_000 };
    expect(() => warehouse.transaction((t) => settle(t, line, hour, "rows"))).toThrow("carries no rows");
    let kept: Transaction | undefined;
    warehouse.transaction((transaction) => {
      kept = transaction;
      writeRecords(transaction, "index_ticks", [tick(5, "1")], "rest");
      settle(transaction, line, hour, "rows");
    });
    expect(() => settle(kept as Transaction, line, hour, "empty")).toThrow("transaction is over");
    expect(() => retract(kept as Transaction, line, hour)).toThrow("transaction is over");
    expect(settledRanges(warehouse.connection, line)).toEqual([{ ...hour, proof: "rows", reason: null }]);
  });

  it("refuses to call a range empty while rows stand in it", () => {
    const warehouse = openScratch();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(5, "1")], "live"));
    const line = { stream: "index_ticks", series: 1 } as const;
    expect(() => warehouse.transaction((t) => settle(t, line, { from: 0, to: 6 }, "empty"))).toThrow(
      "said to be empty",
    );
    warehouse.transaction((t) => settle(t, line, { from: 6, to: 9 }, "empty", "404"));
    expect(rows(warehouse, "SELECT from_ts, to_ts, proof, reason, name FROM coverage")).toEqual([
      { from_ts: 6, to_ts: 9, proof: "empty", reason: "404", name: "btc-id" },
    ]);
  });

  it("leaves neither rows nor proof when the transaction fails, and forgets keys made in it", () => {
    const warehouse = openScratch();
    expect(() =>
      warehouse.transaction((transaction) => {
        writeRecords(transaction, "index_ticks", [tick(5, "1")], "rest");
        settle(transaction, { stream: "index_ticks", series: 1 }, { from: 0, to: 9 }, "rows");
        throw new Error("the page was a lie");
      }),
    ).toThrow("the page was a lie");
    expect(rows(warehouse, "SELECT * FROM index_ticks")).toEqual([]);
    expect(rows(warehouse, "SELECT * FROM coverage")).toEqual([]);
    for (const indexId of ["eth-id", "btc-id"]) {
      warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(5, "1", { indexId })], "rest"));
    }
    expect(rows(warehouse, "SELECT index_id FROM index_ticks ORDER BY index_id")).toEqual([
      { index_id: "btc-id" },
      { index_id: "eth-id" },
    ]);
  });

  it("notices a ledger that contradicts itself instead of trusting it", () => {
    const warehouse = openScratch();
    warehouse.connection.database.exec(
      `INSERT INTO settled_ranges VALUES ('ohlcv', 1, 0, 10, 'rows', NULL), ('ohlcv', 1, 5, 20, 'rows', NULL)`,
    );
    expect(() => settledRanges(warehouse.connection, { stream: "ohlcv", series: 1 })).toThrow("not disjoint");
    expect(() =>
      warehouse.transaction((t) =>
        settle(t, { stream: "ohlcv", series: 1 }, { from: 4, to: 6 }, "lost", "x"),
      ),
    ).toThrow("not disjoint");
  });
});
