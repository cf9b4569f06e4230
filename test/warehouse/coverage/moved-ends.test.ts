import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { readSettledRanges, settle } from "../../../src/warehouse/coverage/ledger.ts";
import { recordWithdrawalAnswer } from "../../../src/warehouse/coverage/mass-withdrawals.ts";
import {
  dropMovedEnd,
  recordMovedEnd,
  settleNoLongerServed,
} from "../../../src/warehouse/coverage/moved-ends.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const start = parseTs("2026-03-01T12:00:00Z");
const key = { stream: "index_ticks", series: 1 } as const;
const HOUR_MS = 3_600_000;
const HOUR = HOUR_MS * 1000;
const rules = { answers: 3, over: 2 * HOUR };

/** A warehouse and the answer "nothing older than `to`, where 5 rows were served", about the gap that begins at `from`. */
function openWithAnswers() {
  const clock = new ManualClock("2026-03-01T12:00:00Z");
  const warehouse = openTestWarehouse({ clock });
  const answer = (from: number, to: number, believeBy: typeof rules | null = rules) =>
    warehouse.transaction((t) =>
      recordMovedEnd(t, key, { open: { from, to }, rows: 5 }, believeBy ?? undefined),
    );
  const stored = () => queryRows(warehouse, "SELECT series, from_ts, to_ts FROM mass_withdrawals ORDER BY 1");
  return { clock, warehouse, answer, stored };
}

describe("the end of a history that has moved up", () => {
  it("is believed after enough answers over enough time, whichever gaps they were about", async () => {
    const { clock, answer, stored } = openWithAnswers();
    expect(answer(10, 50)).toMatchObject({
      from: 10,
      to: 50,
      rows: 5,
      answers: 1,
      firstAt: start,
      believedAt: null,
    });
    await clock.advance(HOUR_MS);
    expect(answer(5, 40)).toMatchObject({ from: 5, to: 50, answers: 2, firstAt: start, believedAt: null });
    expect(answer(20, 60)).toMatchObject({ from: 5, to: 60, answers: 3, firstAt: start, believedAt: null });
    await clock.advance(HOUR_MS);
    expect(answer(20, 30)).toMatchObject({ answers: 4, firstAt: start, believedAt: start + 2 * HOUR });
    expect(stored()).toEqual([{ series: 1, from_ts: 5, to_ts: 60 }]);
  });

  it("is never believed without rules", async () => {
    const { clock, answer } = openWithAnswers();
    for (let count = 0; count < 9; count++) {
      await clock.advance(HOUR_MS);
      expect(answer(10, 50, null).believedAt).toBeNull();
    }
  });

  it("moves on with time once it is believed, at most a day faster", async () => {
    const { clock, answer } = openWithAnswers();
    const atOnce = { answers: 1, over: 0 };
    expect(answer(10, 50, atOnce).believedAt).toBe(start);
    await clock.advance(HOUR_MS);
    const furthest = 50 + HOUR + MICROS_PER_DAY;
    // Nobody repeats it, and no rules are needed.
    expect(answer(20, furthest, null)).toMatchObject({
      from: 10,
      to: furthest,
      answers: 2,
      firstAt: start,
      believedAt: start + HOUR,
    });
    // The time counts from the last answer.
    expect(answer(30, furthest + MICROS_PER_DAY + 1)).toEqual({
      ...key,
      withdrawal: expect.any(Number) as number,
      from: 30,
      to: furthest + MICROS_PER_DAY + 1,
      rows: 5,
      digest: "moved end",
      answers: 1,
      firstAt: start + HOUR,
      lastAt: start + HOUR,
      believedAt: null,
    });
  });

  it("is judged by series, and beside other withdrawals of the series", () => {
    const { warehouse, answer, stored } = openWithAnswers();
    warehouse.transaction((t) => {
      const withdrawal = { from: 80, to: 90, rows: 1, digest: "d", answers: 8, firstAt: 0 };
      recordWithdrawalAnswer(t, key, withdrawal, false);
      for (const other of [
        { ...key, series: 2 },
        { ...key, stream: "ohlcv" as const, series: 3 },
      ])
        recordMovedEnd(t, other, { open: { from: 10, to: 50 }, rows: 5 }, rules);
    });
    expect(answer(10, 50).answers).toBe(1);
    const kept = [
      { series: 1, from_ts: 80, to_ts: 90 },
      { series: 2, from_ts: 10, to_ts: 50 },
      { series: 3, from_ts: 10, to_ts: 50 },
    ];
    const moved = { series: 1, from_ts: 10, to_ts: 50 };
    expect(stored()).toEqual(expect.arrayContaining([moved, ...kept]));
    // A record at 50 is not below the end, one at 49 is.
    warehouse.transaction((t) => dropMovedEnd(t, key, 50));
    expect(stored()).toContainEqual(moved);
    warehouse.transaction((t) => dropMovedEnd(t, key, 49));
    expect(stored()).toEqual(kept);
  });

  it("makes lost what is open below it, and leaves what is settled", () => {
    const { warehouse } = openWithAnswers();
    warehouse.transaction((t) => {
      settle(t, key, { from: 10, to: 20 }, "empty");
      settle(t, key, { from: 20, to: 30 }, "empty", "no records");
      for (const range of [
        { from: 5, to: 40 },
        { from: 50, to: 50 },
        { from: 60, to: 50 },
      ])
        settleNoLongerServed(t, key, range);
    });
    const lost = { proof: "lost", reason: "no longer served" };
    expect(readSettledRanges(warehouse.connection, key)).toEqual([
      { from: 5, to: 10, ...lost },
      { from: 10, to: 20, proof: "empty", reason: null },
      { from: 20, to: 30, proof: "empty", reason: "no records" },
      { from: 30, to: 40, ...lost },
    ]);
  });
});
