import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import {
  digestTimestamps,
  dropUnconfirmedWithdrawals,
  findUnconfirmedWithdrawals,
  MOVED_END_DIGEST,
  readReportedWithdrawals,
  readUnconfirmedRanges,
  recordWithdrawalAnswer,
  shouldBelieve,
  trimUnconfirmedWithdrawal,
} from "../../../src/warehouse/coverage/mass-withdrawals.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { declareTarget, gapsOf, present } from "../../support/warehouse/gaps.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const now = parseTs("2026-03-01T12:00:00Z");
const first = parseTs("2026-03-01T11:00:00Z");
const everything = { from: 0, to: Number.MAX_SAFE_INTEGER };

function openSeries() {
  const clock = new ManualClock("2026-03-01T12:00:00Z");
  const warehouse = openTestWarehouse({ clock });
  const [btc, eth] = warehouse.transaction((t) =>
    ["btc", "eth"].map(
      (id) => ({ stream: "index_ticks", series: t.dictionary.getSeriesKey("GWA", id) }) as const,
    ),
  ) as [Key, Key];
  const record = (key: Key, from: number, to: number, { digest = "d", isBelieved = false } = {}) =>
    warehouse.transaction((t) =>
      recordWithdrawalAnswer(t, key, { from, to, rows: 7, digest, answers: 2, firstAt: first }, isBelieved),
    );
  const find = (key: Key, range = everything) =>
    findUnconfirmedWithdrawals(warehouse.connection, key, range).map(({ from, to }) => [from, to]);
  return { clock, warehouse, btc, eth, record, find };
}
type Key = { readonly stream: "index_ticks"; readonly series: number };

describe("the unconfirmed withdrawals of a series", () => {
  it("are found where they overlap a range, oldest first", () => {
    const { btc, eth, record, find } = openSeries();
    for (const from of [30, 10]) record(btc, from, from + 10);
    record(btc, 50, 60, { isBelieved: true });
    record(btc, 70, 80, { digest: MOVED_END_DIGEST });
    record(eth, 90, 95);
    expect(find(btc)).toEqual([
      [10, 20],
      [30, 40],
    ]);
    expect(find(btc, { from: 20, to: 30 })).toEqual([]);
    expect(find(btc, { from: 19, to: 31 })).toHaveLength(2);
    expect(find({ ...btc, series: 99 })).toEqual([]);
  });

  it("have what was answered, and when", () => {
    const { warehouse, btc, record } = openSeries();
    const stored = { from: 10, to: 20, rows: 7, digest: "d", answers: 2, firstAt: first, lastAt: now };
    expect(record(btc, 10, 20)).toEqual({ ...btc, ...stored, withdrawal: 1, believedAt: null });
    expect(findUnconfirmedWithdrawals(warehouse.connection, btc, everything)).toEqual([
      { ...btc, ...stored, withdrawal: 1, believedAt: null },
    ]);
    expect(record(btc, 40, 50, { isBelieved: true })).toMatchObject({ withdrawal: 2, believedAt: now });
  });

  it("are replaced by the next answer about the same range, and gone once the service has the rows", () => {
    const { warehouse, btc, eth, record, find } = openSeries();
    for (const key of [btc, eth]) record(key, 10, 20);
    record(btc, 30, 40);
    record(btc, 19, 30);
    expect(find(btc)).toEqual([
      [19, 30],
      [30, 40],
    ]);
    warehouse.transaction((t) => dropUnconfirmedWithdrawals(t, btc, { from: 0, to: 30 }));
    expect([find(btc), find(eth)]).toEqual([[[30, 40]], [[10, 20]]]);
    // What is believed stays.
    record(btc, 30, 40, { isBelieved: true });
    warehouse.transaction((t) => dropUnconfirmedWithdrawals(t, btc, everything));
    expect(readReportedWithdrawals(warehouse.connection, now)).toHaveLength(2);
  });

  it("lose the rows that have left the window, and keep their answers", () => {
    const { warehouse, btc, record } = openSeries();
    const withdrawal = record(btc, 10, 20);
    record(btc, 30, 40);
    warehouse.transaction((t) => trimUnconfirmedWithdrawal(t, withdrawal, { from: 15, rows: 3 }));
    expect(findUnconfirmedWithdrawals(warehouse.connection, btc, everything)).toMatchObject([
      { from: 15, to: 20, rows: 3, digest: "trimmed", answers: 2, firstAt: first },
      { from: 30, to: 40, rows: 7, digest: "d" },
    ]);
  });

  it("are listed by series for a whole stream, those of a moved end too", () => {
    const { warehouse, btc, eth, record } = openSeries();
    record(eth, 5, 6);
    for (const from of [30, 10]) record(btc, from, from + 10);
    record(btc, 50, 60, { digest: MOVED_END_DIGEST });
    record(btc, 70, 80, { isBelieved: true });
    const found = readUnconfirmedRanges(warehouse.connection, "index_ticks");
    expect([...found.keys()]).toEqual([btc.series, eth.series]);
    expect(found.get(btc.series)?.map(({ from, to }) => [from, to])).toEqual([
      [10, 20],
      [30, 40],
      [50, 60],
    ]);
    expect(found.get(eth.series)).toMatchObject([{ from: 5, to: 6 }]);
    expect(readUnconfirmedRanges(warehouse.connection, "ohlcv")).toEqual(new Map());
  });
});

describe("a mass withdrawal", () => {
  it("is the reason of the gap that contains it, until it is believed", () => {
    const warehouse = openTestWarehouse();
    const HOUR = 3_600_000_000;
    declareTarget(warehouse, present - 10 * HOUR);
    const key = { stream: "index_ticks", series: 1 } as const;
    const lacking = { from: present - 5 * HOUR, to: present - 4 * HOUR };
    const answer = { ...lacking, rows: 7, digest: "d", answers: 2, firstAt: first };
    warehouse.transaction((t) => recordWithdrawalAnswer(t, key, answer, false));
    expect(gapsOf(warehouse)[0]).toEqual(["open", "withdrawal unconfirmed", -1800, -3]);
    warehouse.transaction((t) => recordWithdrawalAnswer(t, key, answer, true));
    expect(gapsOf(warehouse)[0]).toEqual(["open", "pending", -1800, -3]);
  });

  it("is believed after enough answers over enough time", () => {
    const rules = { answers: 3, over: 100 };
    const believe = (answers: number, now: number) => shouldBelieve({ answers, firstAt: 1000 }, rules, now);
    expect([believe(3, 1100), believe(2, 1100), believe(3, 1099), believe(4, 1200)]).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  it("is known by a short digest of its timestamps", () => {
    const digests = [[1, 23], [12, 3], [123], []].map(digestTimestamps);
    expect(new Set(digests).size).toBe(4);
    for (const digest of digests) expect(digest).toMatch(/^[0-9a-f]{16}$/);
    expect(digestTimestamps([1, 23])).toBe(digests[0]);
  });

  it("is reported until it is believed, and a week longer", () => {
    const { warehouse, btc, eth, record } = openSeries();
    record(eth, now, now + 1_000_000);
    record(btc, first, first + 1_000_000, { isBelieved: true });
    record(btc, first, first + 1_000_000, { digest: MOVED_END_DIGEST });
    record(eth, first, first + 1_000_000, { digest: MOVED_END_DIGEST, isBelieved: true });
    const report = (at: number) => readReportedWithdrawals(warehouse.connection, at);
    expect(report(now)).toEqual([
      {
        stream: "index_ticks",
        index_type: "GWA",
        index_id: "eth",
        name: "eth",
        from_time: "2026-03-01T12:00:00.000000Z",
        to_time: "2026-03-01T12:00:01.000000Z",
        rows: 7,
        answers: 2,
        first_seen: "2026-03-01T11:00:00.000000Z",
        believed_at: null,
      },
      expect.objectContaining({ index_id: "btc", believed_at: "2026-03-01T12:00:00.000000Z" }),
      // The end of the history of an index, which has no rows to withdraw, only until it is believed.
      expect.objectContaining({ index_id: "btc", believed_at: null }),
    ]);
    expect(report(now + 7 * MICROS_PER_DAY - 1)).toHaveLength(3);
    expect(report(now + 7 * MICROS_PER_DAY).map((row) => row.believed_at)).toEqual([null, null]);
  });
});
