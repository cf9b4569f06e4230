import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { TimeRange } from "../../../src/model/time-range.ts";
import { NOT_FOUND } from "../../../src/rule/answer.ts";
import {
  findEndsAbove,
  findProofAt,
  findTargetStart,
  readNotFoundSeries,
  readSettledRanges,
  reopenNotFound,
  wasNotFound,
} from "../../../src/warehouse/coverage/ledger.ts";
import { openTarget } from "../../../src/warehouse/coverage/targets.ts";
import { readChanges, readJournalPosition } from "../../../src/warehouse/tables/journal.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";
import { retract, settle, settleAsLost } from "../../support/warehouse/settle.ts";
import { storeTicks, writeTicks } from "../../support/warehouse/write-records.ts";

const MAX_TS = 30;
const range = fc
  .tuple(fc.integer({ min: 0, max: MAX_TS }), fc.integer({ min: 1, max: 12 }))
  .map(([from, length]): TimeRange => ({ from, to: Math.min(MAX_TS + 1, from + length) }));

type Settled = { readonly proof: "rows" | "empty" | "lost"; readonly reason: string | null };
type Step =
  | ({ readonly act: "settle"; readonly range: TimeRange } & Settled)
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
        const { proof: p, reason } = more as Settled;
        const isCovered = !(states[ts] ?? "lost").startsWith("lost");
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
      { numRuns: 100 },
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
      writeTicks(transaction, [tick(5, "1")]);
      settle(transaction, key, hour, "rows");
    });
    expect(() => settle(ended as Transaction, key, hour, "empty")).toThrow("transaction has ended");
    expect(() => retract(ended as Transaction, key, hour)).toThrow("transaction has ended");
    expect(readSettledRanges(warehouse.connection, key)).toEqual([{ ...hour, proof: "rows", reason: null }]);
  });

  it("refuses to settle a range with rows as empty", () => {
    const warehouse = openTestWarehouse();
    storeTicks(warehouse, [tick(5, "1")], "live");
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
        writeTicks(transaction, [tick(5, "1")]);
        settle(transaction, { stream: "index_ticks", series: 1 }, { from: 0, to: 9 }, "rows");
        throw new Error("write failed");
      }),
    ).toThrow("write failed");
    expect(queryRows(warehouse, "SELECT * FROM index_ticks")).toEqual([]);
    expect(queryRows(warehouse, "SELECT * FROM coverage")).toEqual([]);
    for (const indexId of ["eth-id", "btc-id"]) {
      storeTicks(warehouse, [tick(5, "1", { indexId })]);
    }
    const ids = queryRows(warehouse, "SELECT index_id FROM index_ticks ORDER BY index_id");
    expect(ids.flatMap(Object.values)).toEqual(["btc-id", "eth-id"]);
  });

  it("throws on an inconsistent ledger", () => {
    const warehouse = openTestWarehouse();
    warehouse.connection.database.exec(
      `INSERT INTO settled_ranges VALUES ('ohlcv', 1, 0, 10, 'rows', NULL, 1), ('ohlcv', 1, 5, 20, 'rows', NULL, 1)`,
    );
    expect(() => readSettledRanges(warehouse.connection, { stream: "ohlcv", series: 1 })).toThrow(
      "not ascending and disjoint",
    );
    const key = { stream: "ohlcv", series: 1 } as const;
    const change = () => warehouse.transaction((t) => settle(t, key, { from: 4, to: 6 }, "lost", "x"));
    expect(change).toThrow("not ascending and disjoint");
  });

  it("refuses a range of no length, a reason for rows, and a loss without a reason", () => {
    const warehouse = openTestWarehouse();
    const key = { stream: "ohlcv", series: 1 } as const;
    const settleAs = (...args: [range: TimeRange, proof: Settled["proof"], reason?: string | null]) =>
      warehouse.transaction((transaction) => {
        transaction.markWritten("ohlcv", 1);
        settle(transaction, key, ...args);
      });
    for (const to of [5, 4, Number.NaN])
      expect(() => settleAs({ from: 5, to }, "empty")).toThrow("range of no length");
    expect(() => settleAs({ from: 5, to: 6 }, "rows", "because")).toThrow("rows with a reason");
    expect(() => settleAs({ from: 5, to: 6 }, "lost")).toThrow("without a reason");
    expect(readSettledRanges(warehouse.connection, key)).toEqual([]);
  });
});

describe("a record below an end of the history", () => {
  const key = { stream: "ohlcv", series: 1 } as const;
  const other = { stream: "ohlcv", series: 2 } as const;
  const endsAbove = (
    settled: readonly (readonly [from: number, proof: "empty" | "lost", reason: string])[],
  ) => {
    const warehouse = openTestWarehouse();
    return warehouse.transaction((t) => {
      for (const [from, proof, reason] of settled)
        for (const each of [key, other]) settle(t, each, { from, to: from + 10 }, proof, reason);
      return (ts: number) => warehouse.transaction((u) => findEndsAbove(u, key, ts).map(({ from }) => from));
    });
  };

  it("disproves the ends above it, but none below it and nothing else", () => {
    const find = endsAbove([
      [10, "empty", "nothing older"],
      [30, "empty", "nothing older"],
      [40, "empty", "no records"],
    ]);
    expect([find(40), find(39), find(20), find(19)]).toEqual([[], [30], [30], [10, 30]]);
  });

  it("disproves all that is no longer served, if it is older than a part of it", () => {
    const find = endsAbove([
      [10, "lost", "no longer served"],
      [30, "lost", "no longer served"],
      [50, "lost", "aged out"],
    ]);
    expect([find(40), find(39), find(0)]).toEqual([[], [10, 30], [10, 30]]);
  });
});

describe("the start of a target", () => {
  it("is that of the oldest one; undefined: the settings never selected the series", () => {
    const warehouse = openTestWarehouse();
    const key = { stream: "index_ticks", series: 1 } as const;
    warehouse.transaction((t) => {
      expect(findTargetStart(t, key)).toBeUndefined();
      for (const from of [200, 20])
        openTarget(t, { key, from, settleDelay: 1, period: 1, step: 1, serviceWindow: null }, false);
      expect(findTargetStart(t, key)).toBe(20);
    });
  });
});

describe("a settled range", () => {
  const key = { stream: "index_ticks", series: 1 } as const;

  it("is found by a timestamp within it", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => {
      settle(t, key, { from: 10, to: 20 }, "empty");
      settle(t, key, { from: 20, to: 30 }, "lost", "aged out");
      settle(t, { ...key, series: 2 }, { from: 0, to: 90 }, "empty");
      const proofs = [9, 10, 19, 20, 29, 30].map((ts) => findProofAt(t, key, ts));
      expect(proofs).toEqual([undefined, "empty", "empty", "lost", "lost", undefined]);
    });
  });

  it("that changes is entered in the journal, and separately where it is taken back", () => {
    const warehouse = openTestWarehouse();
    const recorded = (change: (transaction: Transaction) => void) => {
      warehouse.transaction((t) => {
        retract(t, key, { from: 0, to: 100 });
        settle(t, key, { from: 10, to: 20 }, "empty");
        settle(t, key, { from: 20, to: 30 }, "empty", "no records");
        settle(t, key, { from: 40, to: 50 }, "lost", "aged out");
      });
      const { seq } = readJournalPosition(warehouse.connection);
      warehouse.transaction(change);
      const changes = readChanges(warehouse.connection, { after: seq, until: 1e9 });
      return changes.map(({ stream, kind, key: series, from, to }) => {
        expect([stream, series]).toEqual(["index_ticks", 1]);
        return [kind, from, to];
      });
    };
    expect(recorded((t) => retract(t, key, { from: 15, to: 60 }))).toEqual([["retracted", 15, 50]]);
    expect(recorded((t) => retract(t, key, { from: 30, to: 40 }))).toEqual([]);
    expect(recorded((t) => settleAsLost(t, key, { from: 0, to: 60 }, "retention"))).toEqual([
      ["rows", 0, 60],
      ["retracted", 10, 30],
    ]);
    expect(recorded((t) => settle(t, key, { from: 0, to: 60 }, "empty", "no records"))).toEqual([
      ["rows", 0, 60],
    ]);
    expect(recorded((t) => settle(t, key, { from: 12, to: 18 }, "empty"))).toEqual([]);
  });
});

it("a series that was not found is known by its ranges, until the service has it again", () => {
  const warehouse = openTestWarehouse();
  const ticks = { stream: "index_ticks", series: 1 } as const;
  const other = { stream: "index_ticks", series: 2 } as const;
  warehouse.transaction((t) => {
    settle(t, ticks, { from: 10, to: 40 }, "lost", NOT_FOUND);
    settle(t, ticks, { from: 40, to: 90 }, "empty", NOT_FOUND);
    settle(t, ticks, { from: 95, to: 99 }, "empty", "no records");
    settle(t, other, { from: 10, to: 90 }, "empty", "no records");
  });
  const { connection } = warehouse;
  expect(readNotFoundSeries(connection, "index_ticks")).toEqual(new Set([1]));
  expect(readNotFoundSeries(connection, "ohlcv")).toEqual(new Set());
  expect([ticks, other].map((key) => wasNotFound(connection, key))).toEqual([true, false]);
  for (const key of [other, ticks]) warehouse.transaction((t) => reopenNotFound(t, key));
  expect(wasNotFound(connection, ticks)).toBe(false);
  expect(readSettledRanges(connection, ticks)).toEqual([
    { from: 95, to: 99, proof: "empty", reason: "no records" },
  ]);
  expect(readSettledRanges(connection, other)).toHaveLength(1);
});
