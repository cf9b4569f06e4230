import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { findRowsBeside } from "../../../src/warehouse/rows/previews.ts";
import { withdrawRows } from "../../../src/warehouse/rows/row-sql.ts";
import { readChanges, readJournalPosition } from "../../../src/warehouse/tables/journal.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { bar, parseTs, tick } from "../../support/warehouse/records.ts";
import { settle } from "../../support/warehouse/settle.ts";
import { writeRecords, writeTicks } from "../../support/warehouse/write-records.ts";

const T = parseTs("2026-03-01T11:00:00Z");
const key = { stream: "index_ticks", series: 1 } as const;
const all = { from: T, to: T + 100 };

/** A warehouse with ticks of REST and of the websocket at these offsets from `T`. */
function openWith(rest: readonly number[], live: readonly number[] = []) {
  const warehouse = openTestWarehouse();
  const ticksAt = (offsets: readonly number[]) => offsets.map((offset) => tick(T + offset, "7"));
  warehouse.transaction((t) => {
    writeTicks(t, ticksAt(rest));
    writeTicks(t, ticksAt(live), "live");
  });
  return {
    warehouse,
    /** Offsets of the rows beside those of a page that this transaction writes. */
    beside: (page: readonly number[], range: TimeRange = all, previous: readonly number[] = []) =>
      warehouse.transaction((t) => {
        writeTicks(t, ticksAt(page));
        const timestamps = [...previous, ...page].map((offset) => T + offset);
        const rows = findRowsBeside(t, key, range, timestamps);
        return rows.map(({ ts, isPreview }) => (isPreview ? `${ts - T} live` : `${ts - T}`));
      }),
  };
}

describe("the rows beside those of a page", () => {
  it.each<[what: string, rest: number[], live: number[], page: number[], beside: string[]]>([
    ["are none, if the page has all", [90, 50], [], [90, 50], []],
    ["are those that it lacks, oldest first", [90, 50, 20], [], [90, 40], ["20", "50"]],
    ["may be older than its oldest, or newer than its newest", [99, 1], [], [50], ["1", "99"]],
    ["are not counted wrong by a record that repeats", [90, 50], [], [90, 90, 80, 80], ["50"]],
    ["lie in the half-open range", [-1, 0, 99, 100], [], [50], ["0", "99"]],
    ["are previews, if only the websocket has shown them", [20], [50], [90], ["20", "50 live"]],
    ["are all rows, if it has none", [20, 50], [], [], ["20", "50"]],
  ])("%s", (_, rest, live, page, beside) => {
    expect(openWith(rest, live).beside(page)).toEqual(beside);
  });

  it("lie between the page and the oldest row of the page before, which is none of them", () => {
    expect(openWith([90]).beside([50, 40], { from: T + 41, to: T + 91 }, [90])).toEqual([]);
    const { beside } = openWith([90, 60], [70]);
    expect(beside([50, 40], { from: T + 41, to: T + 91 }, [90])).toEqual(["60", "70 live"]);
  });

  it("H5: are no previews, if REST has covered them since", () => {
    const { warehouse, beside } = openWith([], [50]);
    const range = { from: T, to: T + 60 };
    warehouse.transaction((t) => {
      t.markWritten("index_ticks", 1);
      settle(t, key, range, "rows");
    });
    expect(beside([90])).toEqual(["50"]);
  });
});

describe("withdrawn rows", () => {
  const stored = (warehouse: ReturnType<typeof openTestWarehouse>) =>
    queryRows(warehouse, "SELECT ts FROM index_ticks ORDER BY ts").map(({ ts }) => (ts as number) - T);

  it("are deleted, and kept in revisions; one that is not stored changes nothing", () => {
    const { warehouse } = openWith([10, 30], [20]);
    const { seq } = readJournalPosition(warehouse.connection);
    warehouse.transaction((t) => withdrawRows(t, key, [T + 20, T + 25, T + 30]));
    expect(stored(warehouse)).toEqual([10]);
    const revisions = queryRows(warehouse, "SELECT ts, before, after FROM revisions ORDER BY ts");
    expect(revisions).toMatchObject([
      { ts: T + 20, after: null },
      { ts: T + 30, after: null },
    ]);
    expect(JSON.parse(revisions[0]?.before as string)).toMatchObject({ price: "7", source: "live" });
    const { streams } = readStatus(warehouse.connection, T);
    expect(streams.find(({ stream }) => stream === "index_ticks")?.rows).toBe(1);
    const changes = readChanges(warehouse.connection, { after: seq, until: 1e9 });
    expect(changes).toMatchObject([{ from: T + 20, to: T + 31 }]);
  });

  it("are bars by their day", () => {
    const warehouse = openTestWarehouse();
    const day = parseTs("2026-02-01T00:00:00Z");
    const days = [0, 1, 2].map((count) => day + count * MICROS_PER_DAY);
    const bars = { stream: "ohlcv", series: 1 } as const;
    const records = days.map((start) => bar(start, "1"));
    warehouse.transaction((t) => void writeRecords(t, "ohlcv", records));
    warehouse.transaction((t) => {
      const range = { from: day, to: day + 3 * MICROS_PER_DAY };
      const kept = days.filter((_, at) => at !== 1).reverse();
      const gone = findRowsBeside(t, bars, range, kept);
      expect(gone).toEqual([{ ts: day + MICROS_PER_DAY, isPreview: false }]);
      withdrawRows(t, bars, [day + MICROS_PER_DAY]);
    });
    expect(queryRows(warehouse, "SELECT time FROM revisions")).toEqual([
      { time: "2026-02-02T00:00:00.000000Z" },
    ]);
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM ohlcv")).toEqual([{ n: 2 }]);
  });
});
