import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND, startOfDay } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { observe } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { declareWanted } from "../../../src/warehouse/coverage/targets.ts";
import { LedgerPicture } from "../../../src/warehouse/read/heatmap.ts";
import { CellSums, dayGrid, monthGrid } from "../../../src/warehouse/read/heatmap-grid.ts";
import { readLatestTicks } from "../../../src/warehouse/rows/row-queries.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { openScratch } from "../../support/warehouse/open-warehouse.ts";
import { at, tick } from "../../support/warehouse/records.ts";

const DAY = MICROS_PER_DAY;
const HOUR = DAY / 24;
const present = Math.floor(Date.now() / 1000) * MICROS_PER_SECOND;
const midnight = startOfDay(present);
const everything = { usual: 100, byGroup: new Map<string, number>() };

describe("a grid of time", () => {
  it("has a column a day up to now, or a column a month over years and leap days", () => {
    const days = dayGrid(at("2026-03-01T12:00:00Z"), 3);
    expect(days.labels).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
    expect(days.bounds.at(-1)).toBe(at("2026-03-01T12:00:00Z"));
    const months = monthGrid(at("2023-12-31T23:59:59Z"), at("2024-03-15T00:00:00Z"), 100);
    expect(months.labels).toEqual(["2023-12", "2024-01", "2024-02", "2024-03"]);
    expect(months.bounds).toEqual(
      ["2023-12-01", "2024-01-01", "2024-02-01", "2024-03-01", "2024-03-15"].map((day) =>
        at(`${day}T00:00:00Z`),
      ),
    );
    expect(monthGrid(0, at("2024-03-15T00:00:00Z"), 12).labels).toHaveLength(12);
  });

  it("never shows a part as nothing or as everything", () => {
    const grid = dayGrid(at("2026-03-02T00:00:00Z") - 1, 1);
    const [from, to] = grid.bounds as [number, number];
    const cells = new CellSums(grid);
    cells.add({ from, to: to - 1 }, "covered");
    cells.add({ from: to - 1, to }, "lost");
    expect(cells.runs()).toEqual([[1, 99, 0, 0, 1]]);
    cells.clear();
    cells.add({ from: from - DAY, to: to + DAY }, "open");
    expect(cells.runs()).toEqual([[1, 0, 0, 100, 0]]);
  });

  it("agrees with measuring each column by itself, whatever the range", () => {
    const grid = dayGrid(at("2026-03-10T07:00:00Z"), 9);
    const first = grid.bounds[0] as number;
    const hours = fc.integer({ min: -30, max: 260 });
    fc.assert(
      fc.property(hours, hours, (a, b) => {
        const range = { from: first + Math.min(a, b) * HOUR, to: first + Math.max(a, b) * HOUR };
        const cells = new CellSums(grid);
        cells.add(range, "covered");
        const shown = cells.runs().flatMap(([columns, covered]) => Array(columns).fill(covered) as number[]);
        const expected = grid.labels.map((_, i) => {
          const [from, to] = [grid.bounds[i] as number, grid.bounds[i + 1] as number];
          return Math.round(
            (Math.max(0, Math.min(to, range.to) - Math.max(from, range.from)) / (to - from)) * 100,
          );
        });
        expect(shown).toEqual(expected);
      }),
    );
  });
});

describe("the ledger's picture", () => {
  function fill() {
    const warehouse = openScratch({ clock: systemClock });
    warehouse.transaction((t) => {
      const rules = { settleDelay: 60 * MICROS_PER_SECOND, step: 1, keptFor: 200 * DAY };
      const lines = ["btc-id", "eth-id"].map((id) => ({
        stream: "index_ticks" as const,
        series: t.dictionary.series("GWA", id),
      }));
      const from = midnight - 4 * DAY;
      declareWanted(
        t,
        "index_ticks",
        lines.map((line) => ({ line, from, ...rules })),
        present,
      );
      const [btc, eth] = lines as [(typeof lines)[0], (typeof lines)[0]];
      writeRecords(t, "index_ticks", [tick(from, "1.5"), tick(from, "7", { indexId: "eth-id" })], "rest");
      settle(t, btc, { from, to: present }, "rows");
      settle(t, eth, { from, to: midnight - 2 * DAY }, "rows");
      settle(t, eth, { from: midnight - 1.5 * DAY, to: midnight - DAY }, "empty", "no data");
      settle(t, eth, { from: midnight - DAY, to: present }, "lost", "aged out");
      observe(t, { stream: "market_caps", exchangeId: null, at: midnight - DAY, cadence: DAY });
    });
    return { warehouse, picture: new LedgerPicture(warehouse.connection, present) };
  }

  it("shows the share of each day by state, per series and for all of a family", () => {
    const { picture } = fill();
    const { groups, columns } = picture.show(everything);
    expect(groups.map(({ key, lines, whole }) => [key, lines, whole])).toEqual([
      ["index_ticks:GWA", 2, 1],
      ["market_caps:", 1, expect.any(Number)],
    ]);
    expect(columns.day).toHaveLength(30);
    expect(groups.map(({ step }) => step)).toEqual(["day", "hour"]);
    const [btc, eth] = groups[0]?.rows ?? [];
    expect(btc).toEqual({
      index_id: "btc-id",
      name: "btc-id",
      runs: [
        [25, 0, 0, 0, 0],
        [5, 100, 0, 0, 0],
      ],
    });
    expect(eth?.runs).toEqual(
      [
        [25, 0, 0, 0, 0],
        [2, 100, 0, 0, 0],
        [1, 50, 0, 50, 0],
        [2, 0, 0, 0, 100],
      ].filter(([days]) => days !== 0),
    );
    expect(groups[0]?.summary.slice(1)).toEqual([
      [2, 100, 0, 0, 0],
      [1, 75, 0, 25, 0],
      [2, 50, 0, 0, 50],
    ]);
  });

  it("lists what each line lacks, open before lost", () => {
    const { picture } = fill();
    const { open, lost, parts } = picture.missing(10);
    expect({ open, lost: lost > 0 }).toEqual({ open: 1, lost: true });
    expect(parts[0]).toMatchObject({
      name: "eth-id",
      state: "open",
      reason: "pending",
      ranges: 1,
      seconds: 43_200,
    });
    expect(parts.find(({ reason }) => reason === "aged out")).toMatchObject({
      name: "eth-id",
      state: "lost",
    });
    expect(picture.missing(0)).toMatchObject({ open: 1, parts: [] });
  });

  it("shows only as many rows as somebody looks at, and knows the newest ticks of the first", () => {
    const { warehouse, picture } = fill();
    const rows = (shown: Parameters<LedgerPicture["show"]>[0]) => picture.show(shown).groups[0]?.rows.length;
    expect(rows({ usual: 1, byGroup: new Map() })).toBe(1);
    expect(rows({ usual: 1, byGroup: new Map([["index_ticks:GWA", 2]]) })).toBe(2);
    expect(readLatestTicks(warehouse.connection, picture.bestKnown(1))).toEqual([
      expect.objectContaining({ name: "btc-id", price_exact: "1.5", is_settled: 1 }),
    ]);
  });
});
