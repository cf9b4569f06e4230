import { describe, expect, it } from "vitest";
import {
  buildSlots,
  closesOf,
  comparePoints,
  type LoadedBars,
  listCovered,
  listGaps,
  merge,
  positionOf,
  type Slot,
  stateOf,
  toPoints,
} from "../../src/dashboard/page/bars/bar-slots.ts";
import type { ChartBar, ChartRange } from "../../src/model/answers/chart-bars.ts";

const H = 3_600;
const bar = (hour: number, isComplete: 0 | 1 = 1, close = 2): ChartBar => {
  return [hour * H, 1, 3, 1, close, 120, 120, isComplete, isComplete, null];
};
const span = (from: number, to: number, state: ChartRange["state"]): ChartRange => ({
  ...{ from: from * H, to: to * H, stream: "index_ticks", state, reason: state },
});
const response = (more: Partial<LoadedBars>): LoadedBars => {
  return { from: 0, to: 8 * H, width: "1h", bars: [], days: [], spans: [], ...more };
};
const states = (slots: readonly Slot[]) =>
  slots.map((slot) => `${slot.time / H} ${stateOf(slot)}`).join(", ");

describe("the chart's slots", () => {
  it("include every missing bar, but not a range at the start that is not selected", () => {
    const slots = buildSlots(
      response({
        bars: [bar(2), bar(3), bar(6, 0), bar(7, 0)],
        spans: [span(0, 2, "none"), span(4, 6, "open"), span(6.5, 6.6, "lost"), span(7, 7.5, "unconfirmed")],
      }),
    );
    const expected = "2 complete, 3 complete, 4 missing, 5 missing, 6 partial, 7 unconfirmed";
    expect(states(slots)).toBe(expected);
    const spans = slots.map((slot) => slot.span?.state ?? "proven");
    expect(spans.join(", ")).toBe("proven, proven, open, open, lost, unconfirmed");
  });

  it("cover the whole range if there is no bar at all", () => {
    const open = buildSlots(response({ to: 2 * H, spans: [span(0, 2, "open")] }));
    expect(states(open)).toBe("0 missing, 1 missing");
    expect(buildSlots(response({ spans: [span(0, 8, "none")] }))).toEqual([]);
    const old = { ...span(0, 6, "empty"), reason: "nothing older" };
    expect(states(buildSlots(response({ bars: [bar(6)], spans: [old] })))).toBe("6 complete, 7 missing");
    // An existing bar is shown even if its range is not selected.
    const unselected = response({ to: 2 * H, bars: [bar(0, 0)], spans: [span(0, 2, "none")] });
    expect(states(buildSlots(unselected))).toBe("0 partial, 1 missing");
  });

  it("have no candle if a bar has no prices", () => {
    const empty: ChartBar = [0, null, null, null, null, 0, 120, 0, 0, null];
    const [slot, next] = buildSlots(response({ to: 2 * H, bars: [empty, bar(1)] }));
    expect(slot).toMatchObject({ candle: undefined, ticks: 0, expected: 120 });
    expect(next?.candle).toEqual({ open: 1, high: 3, low: 1, close: 2 });
  });

  it("merge a newer end, and join the spans at the seam", () => {
    const spans = [span(3, 5, "open"), span(6.5, 7.9, "unconfirmed")];
    const known = response({ bars: [bar(5), bar(6), bar(7, 0)], spans });
    const bars = [bar(7, 0, 9), bar(8, 0)];
    const tail = { from: 7 * H, to: 9 * H, bars, days: [], spans: [span(7, 8.2, "unconfirmed")] };
    const merged = merge(known, tail);
    const closes = merged.bars.map(([time, , , , close]) => `${time / H}: ${close}`);
    expect(closes.join(", ")).toBe("5: 2, 6: 2, 7: 9, 8: 2");
    expect(merged.spans).toEqual([span(3, 5, "open"), span(6.5, 8.2, "unconfirmed")]);
    expect(merged.to).toBe(9 * H);
    expect(listGaps(merged.spans)).toEqual([span(3, 5, "open")]);
  });

  it("are a day long where daily bars take the place of ticks, which may begin late on their first day", () => {
    const D = 86_400;
    const daily = (day: number): ChartBar => [day * D, 1, 3, 1, 2, null, 0, 1, 1, 5];
    const loaded = response({
      to: 50 * H,
      bars: [daily(0), bar(27), bar(28)],
      days: [{ from: 0, to: D }],
      spans: [{ ...span(24, 26.5, "none") }, span(28.5, 50, "unconfirmed")],
    });
    const slots = buildSlots(loaded);
    // The hours 24 and 25 were not asked for; hour 26 was, in part.
    const lengths = slots.slice(0, 4).map(({ time, length }) => `${time / H}: ${length / H} h`);
    expect(lengths.join(", ")).toBe("0: 24 h, 26: 1 h, 27: 1 h, 28: 1 h");
    expect(stateOf(slots[0] as Slot)).toBe("complete");
    const times = [0, 12 * H, D, 25 * H, 26.5 * H, 27 * H];
    expect(times.map((time) => positionOf(slots, time))).toEqual([0, 0.5, 1, 1, 1.5, 2]);
    expect(listCovered(slots, loaded.spans)).toEqual([
      { from: 0, to: D },
      { from: 26.5 * H, to: 28.5 * H },
    ]);
  });

  it("merge an older part, and what it says about days", () => {
    const known = response({ from: 48 * H, to: 50 * H, bars: [bar(48)], spans: [span(49, 50, "open")] });
    const days = [{ from: 0, to: 48 * H }];
    const older = { from: 0, to: 48 * H, bars: [bar(0)], days, spans: [span(24, 48, "lost")] };
    const spans = [span(24, 48, "lost"), span(49, 50, "open")];
    expect(merge(known, older)).toMatchObject({ from: 0, to: 50 * H, bars: [bar(0), bar(48)], days, spans });
  });

  it("have the ratio and the spread at the end of each candle, and none before the other series begins", () => {
    const slots = buildSlots(response({ bars: [bar(1, 1, 3), bar(2, 1, 2), bar(4, 1, 1)] }));
    const bars = [bar(2, 1, 4), bar(3, 1, 8), bar(4, 1, 2)];
    const others = toPoints(slots, closesOf({ width: "1h", bars }));
    const values = (how: "ratio" | "spread") =>
      comparePoints(others, how).map(({ time, value }) => `${time / H}: ${value}`);
    expect(values("ratio")).toEqual(["2: 0.5", "4: 0.5"]);
    expect(values("spread")).toEqual(["2: -2", "4: -1"]);
  });
});
