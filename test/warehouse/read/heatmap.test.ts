import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { buildGrid, buildMonthGrid, CellSums } from "../../../src/warehouse/read/heatmap-grid.ts";
import { midnight, present } from "../../support/present.ts";
import { fill as fillWarehouse } from "../../support/warehouse/filled-warehouse.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { parseTs } from "../../support/warehouse/records.ts";
import { readWholeHeatmap } from "../../support/warehouse/whole-heatmap.ts";

const DAY = MICROS_PER_DAY;
const HOUR = DAY / 24;
const everything = { defaultLimit: 100, byGroup: new Map<string, number>() };

describe("the time grid", () => {
  it("has one column per day or month up to now, across leap days and years", () => {
    const days = buildGrid(parseTs("2026-03-01T12:00:00Z"), "day", 3);
    expect(days.labels).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
    expect(days.bounds.at(-1)).toBe(parseTs("2026-03-01T12:00:00Z"));
    const months = buildMonthGrid(parseTs("2023-12-31T23:59:59Z"), parseTs("2024-03-15T00:00:00Z"), 100);
    expect(months.labels).toEqual(["2023-12", "2024-01", "2024-02", "2024-03"]);
    expect(months.bounds).toEqual(
      ["2023-12-01", "2024-01-01", "2024-02-01", "2024-03-01", "2024-03-15"].map((day) =>
        parseTs(`${day}T00:00:00Z`),
      ),
    );
    expect(buildMonthGrid(0, parseTs("2024-03-15T00:00:00Z"), 12).labels).toHaveLength(12);
  });

  it("rounds no part to 0 or 100 percent", () => {
    const grid = buildGrid(parseTs("2026-03-02T00:00:00Z") - 1, "day", 1);
    const [from, to] = grid.bounds as [number, number];
    const cells = new CellSums(grid);
    cells.add({ from, to: to - 1 }, "covered");
    cells.add({ from: to - 1, to }, "lost");
    expect(cells.runs()).toEqual([[1, 99, 0, 0, 1]]);
    const open = new CellSums(grid);
    open.add({ from: from - DAY, to: to + DAY }, "open");
    expect(open.runs()).toEqual([[1, 0, 0, 100, 0]]);
  });

  it("equals a sum per column for random ranges", () => {
    const grid = buildGrid(parseTs("2026-03-10T07:00:00Z"), "day", 9);
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
          const inside = Math.max(0, Math.min(to, range.to) - Math.max(from, range.from));
          return Math.round((inside / (to - from)) * 100);
        });
        expect(shown).toEqual(expected);
      }),
    );
  });
});

describe("the heat map", () => {
  function fill() {
    const warehouse = openTestWarehouse({ clock: systemClock, hasAllViews: true });
    warehouse.transaction((t) => {
      const from = midnight - 4 * DAY;
      const eth = { indexId: "eth-id", from, settled: [[from, midnight - 2 * DAY]] } as const;
      const [empty, lost] = [
        [midnight - 1.5 * DAY, midnight - DAY] as const,
        [midnight - DAY, present] as const,
      ];
      fillWarehouse(t, {
        series: [
          { from, settled: [[from, present]] },
          { ...eth, empty: [empty], lost: [lost] },
        ],
        snapshots: [{ stream: "market_caps", at: midnight - DAY, cadence: DAY }],
      });
    });
    return { warehouse, heatmap: readWholeHeatmap(warehouse.connection, present) };
  }

  it("shows the part of each day by state, per series and per group", () => {
    const { heatmap } = fill();
    const { groups, columns } = heatmap.toResult(everything);
    expect(groups.map(({ key, lines, whole }) => [key, lines, whole])).toEqual([
      ["index_ticks:GWA", 2, 1],
      ["market_caps:", 1, expect.any(Number)],
    ]);
    expect(columns.day).toHaveLength(30);
    expect(groups.map(({ step }) => step)).toEqual(["day", "hour"]);
    // The one with gaps is first.
    const [eth, btc] = groups[0]?.rows ?? [];
    expect(btc).toEqual({
      index_id: "btc-id",
      name: "btc-id",
      slug: "btc-id",
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

  it("lists the gaps of each key, open before lost", () => {
    const { heatmap } = fill();
    const { open, lost, parts } = heatmap.summarizeGaps(10);
    expect({ open, lost: lost > 0 }).toEqual({ open: 1, lost: true });
    const gap = { name: "eth-id", state: "open", reason: "pending", ranges: 1, seconds: 43_200 };
    expect(parts[0]).toMatchObject(gap);
    expect(parts.find(({ reason }) => reason === "aged out")).toMatchObject({
      name: "eth-id",
      state: "lost",
    });
    expect(heatmap.summarizeGaps(0)).toMatchObject({ open: 1, parts: [] });
  });

  it("selects by name, and only what has gaps", () => {
    const { heatmap } = fill();
    const select = (options: { name?: string; onlyProblems?: boolean }) =>
      heatmap
        .toResult({ ...everything, ...options })
        .groups.filter(({ stream }) => stream === "index_ticks")
        .map(({ lines, matches, rows }) => [lines, matches, ...rows.map(({ name }) => name)]);
    expect(select({})).toEqual([[2, 2, "eth-id", "btc-id"]]);
    expect(select({ name: "BTC" })).toEqual([[2, 1, "btc-id"]]);
    expect(select({ onlyProblems: true })).toEqual([[2, 1, "eth-id"]]);
    expect(select({ name: "btc", onlyProblems: true })).toEqual([]);
  });

  it("limits the rows per group", () => {
    const { heatmap } = fill();
    const rows = (limits: Parameters<ReturnType<typeof readWholeHeatmap>["toResult"]>[0]) =>
      heatmap.toResult(limits).groups[0]?.rows.length;
    expect(rows({ defaultLimit: 1, byGroup: new Map() })).toBe(1);
    expect(rows({ defaultLimit: 1, byGroup: new Map([["index_ticks:GWA", 2]]) })).toBe(2);
  });
});
