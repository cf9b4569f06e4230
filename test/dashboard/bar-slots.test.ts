import { describe, expect, it } from "vitest";
import { MOST_BARS } from "../../src/dashboard/query-params.ts";
import { barLengths, MICROS_PER_SECOND } from "../../src/model/time.ts";

/** The page's own modules are plain scripts without types. */
const load = (file: string) => import(new URL(`../../src/dashboard/page/${file}`, import.meta.url).href);
const page = await load("bar-slots.js");
const { gapsOf, merge, precisionOf, slots, stateOf } = page;

const H = 3_600;
const bar = (hour: number, isComplete = 1, close = 2) => [
  hour * H,
  1,
  3,
  1,
  close,
  120,
  120,
  isComplete,
  isComplete,
];
const span = (from: number, to: number, state: string) => ({
  from: from * H,
  to: to * H,
  state,
  reason: state,
});
const answer = (more: object) => ({ from: 0, to: 8 * H, width: "1h", bars: [], spans: [], ...more });

interface Slot {
  time: number;
  span?: { state: string };
}
const states = (made: Slot[]) => made.map((slot) => `${slot.time / H} ${stateOf(slot)}`);

describe("the chart's slots", () => {
  it("leave room for every bar that is missing, and none for what nobody asked for", () => {
    const made = slots(
      answer({
        bars: [bar(2), bar(3), bar(6, 0), bar(7, 0)],
        spans: [span(0, 2, "none"), span(4, 6, "open"), span(6.5, 6.6, "lost"), span(7, 7.5, "settling")],
      }),
    );
    expect(states(made)).toEqual(["2 whole", "3 whole", "4 missing", "5 missing", "6 partial", "7 settling"]);
    expect(made.map((slot: Slot) => slot.span?.state)).toEqual([
      undefined,
      undefined,
      "open",
      "open",
      "lost",
      "settling",
    ]);
  });

  it("are those of the whole range where nothing is known at all", () => {
    expect(states(slots(answer({ to: 2 * H, spans: [span(0, 2, "open")] })))).toEqual([
      "0 missing",
      "1 missing",
    ]);
    expect(slots(answer({ spans: [span(0, 8, "none")] }))).toEqual([]);
    // A bar counts, even where it was never asked for.
    expect(states(slots(answer({ to: 2 * H, bars: [bar(0, 0)], spans: [span(0, 2, "none")] })))).toEqual([
      "0 partial",
      "1 missing",
    ]);
  });

  it("take in a newer end, and heal a gap at the seam", () => {
    const known = answer({
      bars: [bar(5), bar(6), bar(7, 0)],
      spans: [span(3, 5, "open"), span(6.5, 7.9, "settling")],
    });
    const tail = {
      from: 7 * H,
      to: 9 * H,
      bars: [bar(7, 0, 9), bar(8, 0)],
      spans: [span(7, 8.2, "settling")],
    };
    const merged = merge(known, tail);
    expect(merged.bars.map(([time, , , , close]: number[]) => [(time ?? 0) / H, close])).toEqual([
      [5, 2],
      [6, 2],
      [7, 9],
      [8, 2],
    ]);
    expect(merged.spans).toEqual([span(3, 5, "open"), span(6.5, 8.2, "settling")]);
    expect(merged.to).toBe(9 * H);
    expect(gapsOf(merged.spans)).toEqual([span(3, 5, "open")]);
  });

  it("show as many digits as tell prices apart", () => {
    const digits = (high: number | null) => precisionOf([[0, 0, high, 0, 0]]);
    expect([61_000, 150, 1.5, 0.00042, 0, null].map(digits)).toEqual([2, 2, 4, 8, 2, 2]);
  });
});

describe("what the page knows of the daemon", () => {
  it("is what the daemon holds to: the lengths of bars, and how many it sends at once", () => {
    const seconds = Object.entries(barLengths).map(([name, length]) => [name, length / MICROS_PER_SECOND]);
    expect(Object.entries(page.widths)).toEqual(seconds);
    expect(page.MOST_BARS).toBe(MOST_BARS);
  });
});
