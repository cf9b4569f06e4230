import { describe, expect, it } from "vitest";
import { type HistoryEnd, judgeHistoryEnd, settleToEnd } from "../../../src/ingest/commit/history-end.ts";
import { readSettledRanges, settle } from "../../../src/warehouse/coverage/ledger.ts";
import { recordWithdrawalAnswer } from "../../../src/warehouse/coverage/mass-withdrawals.ts";
import { openTarget } from "../../../src/warehouse/coverage/targets.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { makeEmptyWarehouse } from "../../support/ingest/ingest-harness.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";

const key = { stream: "index_ticks", series: 1 } as const;
const gap = { from: 1000, to: 2000 };
type LastPage = Parameters<typeof judgeHistoryEnd>[2];

/** Runs `work` with rows of REST at these timestamps. */
function withRows<T>(timestamps: readonly number[], work: (transaction: Transaction) => T): T {
  const warehouse = openTestWarehouse({ path: makeEmptyWarehouse() });
  return warehouse.transaction((t) => {
    t.dictionary.getSeriesKey("GWA", "btc-id");
    const ticks = timestamps.map((ts) => tick(ts, "1"));
    writeRecords(t, "index_ticks", ticks, "rest");
    t.markWritten("index_ticks", 1);
    return work(t);
  });
}

describe("the claim of a last page", () => {
  /** Judges the first page of a walk over the gap, without records. */
  const judge = (rows: readonly number[], page: Partial<LastPage> = {}, prepare = (_: Transaction) => {}) =>
    withRows(rows, (t) => {
      prepare(t);
      const first = { position: { gap, provenFrom: gap.to }, oldest: undefined, cadence: 30 };
      return judgeHistoryEnd(t, key, { ...first, ...page });
    });
  const atOnce = { emptyFrom: 0, withdrawals: { answers: 1, over: 0 } };

  it("is about what is older than the oldest record of the walk", () => {
    const below = { position: { gap, provenFrom: 1500 } };
    const servedFrom = (rows: readonly number[], page: Partial<LastPage> = {}) =>
      judge(rows, { emptyFrom: 7, windowStart: 5000, ...page });
    expect(servedFrom([])).toEqual({ servedFrom: 2000, settleFrom: 7 });
    expect(servedFrom([], { oldest: 1200 })).toEqual({ servedFrom: 1200, settleFrom: 7 });
    // The page before ended with a record.
    expect(servedFrom([], below)).toEqual({ servedFrom: 1499, settleFrom: 7 });
    // An earlier walk may have ended at the row just below.
    expect(servedFrom([1999])).toEqual({ servedFrom: 1999, settleFrom: 7 });
    expect(servedFrom([1998, 2000])).toEqual({ servedFrom: 2000, settleFrom: 7 });
  });

  it("contradicts older rows of REST within the window, unless they are withdrawn already", () => {
    expect(judge([500])).toStrictEqual({ unconfirmed: undefined });
    expect(judge([500], { windowStart: 500 })).toEqual({ unconfirmed: undefined });
    expect(judge([500], { windowStart: 501 })).toEqual({ servedFrom: 2000, settleFrom: undefined });
    const withdraw = (t: Transaction) => {
      const hole = { from: 400, to: 600, rows: 1, digest: "d", answers: 1, firstAt: 0 };
      recordWithdrawalAnswer(t, key, hole, false);
    };
    expect(judge([500], {}, withdraw)).toEqual({ servedFrom: 2000, settleFrom: undefined });
    expect(judge([300, 500], {}, withdraw)).toEqual({ unconfirmed: undefined });
  });

  it("is not needed if no record fits between the oldest one and the start of the gap", () => {
    expect(judge([500], { oldest: 1029 })).toEqual({ servedFrom: 1029, lostTo: 1000 });
    expect(judge([500], { oldest: 1030 })).toEqual({ unconfirmed: undefined });
  });

  it("changes nothing if nothing is open below", () => {
    const settleBelow = (t: Transaction) => settle(t, key, { from: 1000, to: 1500 }, "empty");
    expect(judge([500], { oldest: 1500 }, settleBelow)).toEqual({ servedFrom: 1500, lostTo: 1500 });
    expect(judge([500], { oldest: 1501 }, settleBelow)).toEqual({ unconfirmed: undefined });
  });

  it("is believed after enough answers", () => {
    expect(judge([500, 600], { emptyFrom: 0 })).toMatchObject({
      unconfirmed: { from: 1000, to: 2000, rows: 2, answers: 1, believedAt: null },
    });
    expect(judge([500], { ...atOnce, oldest: 1500 })).toMatchObject({
      servedFrom: 1500,
      lostTo: 1500,
      settleFrom: 0,
      believed: { from: 1000, to: 1500, answers: 1 },
    });
  });

  it("of a page without any record makes empty what is above all rows, as if the index had ended", () => {
    expect(judge([500, 1800], atOnce)).toMatchObject({ servedFrom: 2000, lostTo: 1801 });
    expect(judge([500], atOnce)).toMatchObject({ servedFrom: 2000, lostTo: 501 });
    // It has not ended if there are newer rows.
    expect(judge([500, 2000], atOnce)).toMatchObject({ servedFrom: 2000, lostTo: 2000 });
  });
});

describe("what a last page settles", () => {
  const settled = (
    end: Partial<HistoryEnd>,
    {
      rows = [],
      expected = rows,
      target = 0,
    }: { rows?: readonly number[]; expected?: readonly number[]; target?: number } = {},
  ) =>
    withRows(rows, (t) => {
      openTarget(t, { key, from: target, settleDelay: 1, step: 1, serviceWindow: null }, false);
      settleToEnd(t, key, { proven: gap, gap, expected }, { servedFrom: 0, ...end });
      return readSettledRanges(t, key).map(({ from, to, proof, reason }) => [from, to, proof, reason]);
    });
  const nothingOlder = (from: number, to: number) => [from, to, "empty", "nothing older"];
  const lost = (from: number, to: number) => [from, to, "lost", "no longer served"];

  it("is its rows, and that there is nothing below them", () => {
    expect(settled({}, { rows: [1500, 1600] })).toEqual([
      nothingOlder(1000, 1500),
      [1500, 2000, "rows", null],
    ]);
    expect(settled({}, { rows: [1000] })).toEqual([[1000, 2000, "rows", null]]);
    expect(settled({})).toEqual([nothingOlder(1000, 2000)]);
    // Records below the proven range are not in it.
    expect(settled({}, { expected: [900] })).toEqual([nothingOlder(1000, 2000)]);
    // Below the gap only if the claim was confirmed.
    expect(settled({ settleFrom: 700 }, { rows: [1500] })).toEqual([
      nothingOlder(700, 1500),
      [1500, 2000, "rows", null],
    ]);
    expect(settled({ settleFrom: 700 }, { rows: [1500], target: 800 })[0]).toEqual(nothingOlder(800, 1500));
  });

  it("is lost below the end if that has moved, and its rows stay", () => {
    expect(settled({ lostTo: 1500 }, { rows: [1500] })).toEqual([
      lost(1000, 1500),
      [1500, 2000, "rows", null],
    ]);
    expect(settled({ lostTo: 1500, settleFrom: 700 }, { rows: [1500], target: 800 })).toEqual([
      lost(800, 1500),
      [1500, 2000, "rows", null],
    ]);
    expect(settled({ lostTo: 1500, settleFrom: 700 }, { rows: [1500] })[0]).toEqual(lost(700, 1500));
    expect(settled({ lostTo: 1500, settleFrom: 1200 }, { rows: [1500] })[0]).toEqual(lost(1000, 1500));
    // All of the proven range is below the end, or above it.
    expect(settled({ lostTo: 3000 })).toEqual([lost(1000, 2000)]);
    expect(settled({ lostTo: 501 })).toEqual([nothingOlder(1000, 2000)]);
    expect(settled({ lostTo: 1801 })).toEqual([lost(1000, 1801), nothingOlder(1801, 2000)]);
  });

  it("is lost where rows have just left the window", () => {
    expect(settled({}, { rows: [1200, 1500], expected: [1500] })).toEqual([
      lost(1000, 1500),
      [1500, 2000, "rows", null],
    ]);
  });
});
