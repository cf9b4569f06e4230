import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import { retract, settle } from "../../../src/warehouse/coverage/ledger.ts";
import type { WithdrawalRules } from "../../../src/warehouse/coverage/mass-withdrawals.ts";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { trimWithdrawals, withdrawMissing } from "../../../src/warehouse/rows/withdraw-missing.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { bar, parseTs, tick } from "../../support/warehouse/records.ts";

const T = parseTs("2026-03-01T11:00:00Z");

/** Commits a page with ticks at `T + offset` and the proven range `[T, T + 100)`. */
function commitPage(
  warehouse: WarehouseWriter,
  offsets: readonly number[],
  {
    rules,
    range = { from: T, to: T + 100 },
    ...edge
  }: { rules?: WithdrawalRules; range?: TimeRange; windowStart?: number; servedFrom?: number } = {},
) {
  return warehouse.transaction((transaction) => {
    const ticks = offsets.map((offset) => tick(T + offset, "1"));
    writeRecords(transaction, "index_ticks", ticks, "rest");
    return withdrawMissing(transaction, {
      stream: "index_ticks",
      series: 1,
      range,
      timestamps: ticks.map(({ ts }) => ts),
      ...(rules ? { rules } : {}),
      ...edge,
    });
  });
}

const storedOffsets = (warehouse: WarehouseWriter) =>
  queryRows(warehouse, "SELECT ts FROM index_ticks ORDER BY ts").map(({ ts }) => (ts as number) - T);

const pageOffsets = Array.from({ length: 40 }, (_, i) => 99 - 2 * i);

describe("a page is authoritative for the range that it proves", () => {
  it("withdraws a stored row that the page lacks, and stores it in revisions", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) =>
      writeRecords(t, "index_ticks", [tick(T + 50, "7"), tick(T - 1, "7"), tick(T + 100, "7")], "live"),
    );
    expect(commitPage(warehouse, pageOffsets)).toEqual({ withdrawn: 1, unconfirmed: [], believed: [] });
    expect(storedOffsets(warehouse)).toEqual([-1, ...[...pageOffsets].reverse(), 100]);
    const [revision] = queryRows(warehouse, "SELECT ts, before, after FROM revisions");
    expect(revision).toMatchObject({ ts: T + 50, after: null });
    expect(JSON.parse(revision?.before as string)).toMatchObject({ price: "7", source: "live" });
    const ticks = readStatus(warehouse.connection, T).streams.find(({ stream }) => stream === "index_ticks");
    expect(ticks?.rows).toBe(42);
    expect(commitPage(warehouse, pageOffsets)).toEqual({ withdrawn: 0, unconfirmed: [], believed: [] });
  });

  it("withdraws nothing if that would be more than a tenth of the page's rows", () => {
    const warehouse = openTestWarehouse();
    const bogus = Array.from({ length: 5 }, (_, i) => tick(T + 2 * i, "7"));
    warehouse.transaction((t) => writeRecords(t, "index_ticks", bogus, "rest"));
    expect(commitPage(warehouse, pageOffsets)).toMatchObject({
      withdrawn: 0,
      unconfirmed: [{ from: T, to: T + 21, rows: 5, answers: 1, believedAt: null }],
      believed: [],
    });
    expect(storedOffsets(warehouse)).toHaveLength(45);
  });

  it("handles a page that repeats a record", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(T + 50, "7")], "live"));
    expect(commitPage(warehouse, [...pageOffsets, pageOffsets.at(-1) as number])).toEqual({
      withdrawn: 1,
      unconfirmed: [],
      believed: [],
    });
  });

  it("withdraws rows older than the oldest row of the page, down to the start of the proven range", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(T + 1, "7")], "live"));
    expect(commitPage(warehouse, pageOffsets.slice(0, 30))).toEqual({
      withdrawn: 1,
      unconfirmed: [],
      believed: [],
    });
  });

  it("withdraws bars by day", () => {
    const warehouse = openTestWarehouse();
    const day = parseTs("2026-02-01T00:00:00Z");
    const days = Array.from({ length: 20 }, (_, i) => day + i * MICROS_PER_DAY);
    warehouse.transaction((t) =>
      writeRecords(
        t,
        "ohlcv",
        days.map((start) => bar(start, "1")),
        "rest",
      ),
    );
    const result = warehouse.transaction((transaction) =>
      withdrawMissing(transaction, {
        stream: "ohlcv",
        series: 1,
        range: { from: day, to: day + 20 * MICROS_PER_DAY },
        timestamps: days.filter((start) => start !== day + MICROS_PER_DAY),
      }),
    );
    expect(result).toEqual({ withdrawn: 1, unconfirmed: [], believed: [] });
    expect(queryRows(warehouse, "SELECT time FROM revisions")).toEqual([
      { time: "2026-02-02T00:00:00.000000Z" },
    ]);
  });
});

describe("many rows that a page lacks", () => {
  const MINUTE_MS = 60_000;
  const rules = { answers: 3, over: 10 * MINUTE_MS * 1000 };
  const withdrawnOffsets = [0, 2, 4, 6, 8, 10, 12];
  const key = { stream: "index_ticks", series: 1 } as const;

  function startWithdrawal(source: "rest" | "live" = "rest") {
    const clock = new ManualClock();
    const warehouse = openTestWarehouse({ clock });
    const rows = withdrawnOffsets.map((offset) => tick(T + offset, "7"));
    warehouse.transaction((t) => writeRecords(t, "index_ticks", rows, source));
    return { warehouse, clock };
  }
  const answersSql = "SELECT answers, believed_at IS NULL AS open FROM mass_withdrawals";

  it("H4: go at once if they are previews, whatever their share", () => {
    const { warehouse } = startWithdrawal("live");
    expect(commitPage(warehouse, pageOffsets)).toMatchObject({ withdrawn: 7, unconfirmed: [] });
  });

  it("H5: must be confirmed if they are from the websocket and REST has covered them since", () => {
    const { warehouse } = startWithdrawal("live");
    warehouse.transaction((transaction) => {
      transaction.markWritten("index_ticks", 1);
      settle(transaction, key, { from: T, to: T + 20 }, "rows");
    });
    expect(commitPage(warehouse, pageOffsets)).toMatchObject({ withdrawn: 0, unconfirmed: [{ rows: 7 }] });
    // The range is open now, but its rows are still no previews.
    warehouse.transaction((transaction) => retract(transaction, key, { from: T, to: T + 20 }));
    expect(commitPage(warehouse, pageOffsets)).toMatchObject({
      withdrawn: 0,
      unconfirmed: [{ rows: 7, answers: 2 }],
    });
  });

  it("H5: go after enough equal answers over enough time", async () => {
    const { warehouse, clock } = startWithdrawal();
    for (let answers = 1; answers <= 5; answers++) {
      expect(commitPage(warehouse, pageOffsets, { rules })).toMatchObject({
        withdrawn: 0,
        unconfirmed: [{ answers }],
      });
      await clock.advance(MINUTE_MS);
    }
    await clock.advance(5 * MINUTE_MS);
    expect(commitPage(warehouse, pageOffsets, { rules })).toMatchObject({
      withdrawn: 7,
      unconfirmed: [],
      believed: [{ rows: 7, answers: 6 }],
    });
    expect(queryRows(warehouse, answersSql)).toEqual([{ answers: 6, open: 0 }]);
    expect(commitPage(warehouse, pageOffsets, { rules })).toMatchObject({ withdrawn: 0, believed: [] });
  });

  it("H5: stay if the time has passed without enough answers, or without rules", async () => {
    const { warehouse, clock } = startWithdrawal();
    commitPage(warehouse, pageOffsets, { rules });
    await clock.advance(60 * MINUTE_MS);
    expect(commitPage(warehouse, pageOffsets, { rules })).toMatchObject({ withdrawn: 0 });
    expect(commitPage(warehouse, pageOffsets)).toMatchObject({ withdrawn: 0, unconfirmed: [{ answers: 3 }] });
  });

  it("H5: are unconfirmed anew if another answer lacks other rows of the range", () => {
    const { warehouse } = startWithdrawal();
    commitPage(warehouse, pageOffsets);
    commitPage(warehouse, pageOffsets);
    expect(commitPage(warehouse, [...pageOffsets, 4])).toMatchObject({
      unconfirmed: [{ rows: 6, answers: 1 }],
    });
    expect(commitPage(warehouse, [...pageOffsets, ...withdrawnOffsets])).toEqual({
      withdrawn: 0,
      unconfirmed: [],
      believed: [],
    });
    expect(queryRows(warehouse, answersSql)).toEqual([]);
  });

  it("H5: keep their answers while the service withdraws more beside them", () => {
    const { warehouse } = startWithdrawal();
    commitPage(warehouse, pageOffsets);
    const fewer = pageOffsets.slice(5);
    expect(commitPage(warehouse, fewer)).toMatchObject({
      unconfirmed: [
        { from: T, rows: 7, answers: 2 },
        { from: T + 91, to: T + 100, rows: 5, answers: 1 },
      ],
    });
  });

  it("H5: are not judged by a page that proves only a part of their range", () => {
    const { warehouse } = startWithdrawal();
    commitPage(warehouse, pageOffsets);
    const range = { from: T + 5, to: T + 100 };
    expect(commitPage(warehouse, pageOffsets, { range })).toMatchObject({
      withdrawn: 0,
      unconfirmed: [{ from: T, answers: 1 }],
    });
  });

  describe("at the edge of the window", () => {
    it("H5: keep their answers while the oldest leave the window, and go in time", async () => {
      const { warehouse, clock } = startWithdrawal();
      for (let answers = 1; answers <= 5; answers++) {
        const windowStart = T + answers;
        const range = { from: windowStart, to: T + 100 };
        expect(commitPage(warehouse, pageOffsets, { rules, range, windowStart })).toMatchObject({
          withdrawn: 0,
          unconfirmed: [{ answers, rows: 7 - Math.ceil(answers / 2) }],
        });
        await clock.advance(2 * MINUTE_MS);
      }
      const range = { from: T + 6, to: T + 100 };
      expect(commitPage(warehouse, pageOffsets, { rules, range, windowStart: range.from })).toMatchObject({
        withdrawn: 4,
        unconfirmed: [],
        believed: [{ from: T + 6, rows: 4, answers: 6 }],
      });
      expect(storedOffsets(warehouse).slice(0, 4)).toEqual([0, 2, 4, 21]);
    });

    it("H5: are judged anew if the service has some of them again", () => {
      const { warehouse } = startWithdrawal();
      commitPage(warehouse, pageOffsets, { rules });
      const edge = { range: { from: T + 1, to: T + 100 }, windowStart: T + 1 };
      expect(commitPage(warehouse, [...pageOffsets, 8], { rules, ...edge })).toMatchObject({
        unconfirmed: [{ answers: 1, rows: 5 }],
      });
    });

    it("H5: keep the answers of the rest when a part is lost", () => {
      const { warehouse } = startWithdrawal();
      commitPage(warehouse, pageOffsets, { rules });
      const trim = (to: number) =>
        warehouse.transaction((transaction) =>
          trimWithdrawals(transaction, key, { from: T - 50, to: T + to }),
        );
      trim(5);
      const trimmed = "SELECT from_ts - ? AS since, to_ts - ? AS until, rows, answers FROM mass_withdrawals";
      const stored = () => warehouse.connection.statement(trimmed).all([T, T]);
      expect(stored()).toEqual([{ since: 5, until: 21, rows: 4, answers: 1 }]);
      const edge = { range: { from: T + 7, to: T + 100 }, windowStart: T + 7 };
      expect(commitPage(warehouse, pageOffsets, { rules, ...edge })).toMatchObject({
        unconfirmed: [{ from: T + 7, rows: 3, answers: 2 }],
      });
      trim(21);
      expect(stored()).toEqual([]);
    });
  });

  it("H14: stay if the service has nothing older than the page, unless they are previews", () => {
    const { warehouse } = startWithdrawal();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(T + 5, "7")], "live"));
    expect(commitPage(warehouse, pageOffsets, { rules, servedFrom: T + 21 })).toEqual({
      withdrawn: 1,
      unconfirmed: [],
      believed: [],
    });
    expect(storedOffsets(warehouse).slice(0, 8)).toEqual([...withdrawnOffsets, 21]);
  });
});
