import { describe, expect, it } from "vitest";
import { INTRADAY_WINDOW } from "../../../src/model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import { createCrossChecks, createRowSpacing } from "../../../src/service/pagination/cross-checks.ts";
import type { PageSummary } from "../../../src/service/pagination/page.ts";

type CrossCheckOptions = Parameters<typeof createCrossChecks>[0];
type WalkProgress = Parameters<ReturnType<typeof createCrossChecks>["needsProbe"]>[1];

const period = 30 * MICROS_PER_SECOND;
const end: Micros = 100_000 * MICROS_PER_SECOND;
const tooFar = 1.5 * period;

/** A page with five rows in order, unless `more` says otherwise. */
function page(newest: Micros | undefined, more: Partial<PageSummary> = {}): PageSummary {
  const rows = newest === undefined ? 0 : 5;
  return { rows, newest, oldest: newest, nextId: undefined, isDescending: true, ...more };
}

/** Answers probes with these pages, one after the other. */
function checksWith(answers: readonly PageSummary[] = [], options: Partial<CrossCheckOptions> = {}) {
  const probes: unknown[][] = [];
  const spacing = createRowSpacing(period);
  const checks = createCrossChecks({
    endpoint: "/index-ticker",
    isOneIndex: true,
    spacing,
    coverageEnd: end,
    probe: async (...probe) => {
      probes.push(probe);
      return answers[probes.length - 1] ?? page(undefined);
    },
    responseTime: () => undefined,
    ...options,
  });
  return { checks, probes, spacing };
}

const start = { link: "timestamp", anchor: end, oldestTs: undefined } as const;
const afterCursor = (oldestTs: Micros): WalkProgress => ({ link: "cursor", anchor: end, oldestTs });
const restartedAt = (oldestTs: Micros): WalkProgress => ({ link: "timestamp", anchor: end - 7, oldestTs });

describe("rows may be missing above a page", () => {
  it.each<[what: string, page: PageSummary, progress: WalkProgress, probeAt: Micros | undefined]>([
    ["the first page ends a period and a half below the coverage", page(end - tooFar), start, undefined],
    ["the first page ends further below", page(end - tooFar - 1), start, end],
    ["the first page has no rows", page(undefined), start, undefined],
    ["the first page is unordered", page(end - 9 * period, { isDescending: false }), start, undefined],
    ["a page at the oldest row has that row", page(end - period), restartedAt(end - period), undefined],
    ["a page at the oldest row has newer rows", page(end), restartedAt(end - period), undefined],
    ["a page at the oldest row lacks that row", page(end - period - 1), restartedAt(end - period), end - 7],
    ["the next page begins a period and a half below", page(end - tooFar), afterCursor(end), undefined],
    [
      "the next page begins further below",
      page(end - tooFar - 1),
      afterCursor(end),
      end - MICROS_PER_SECOND / 1000,
    ],
  ])("%s", async (_, given, progress, probeAt) => {
    const { checks, probes } = checksWith([given]);
    expect(checks.needsProbe(given, progress)).toBe(probeAt !== undefined);
    expect(await checks.hasMissingRows(given, progress)).toBe(false);
    expect(probes).toEqual(probeAt === undefined ? [] : [[probeAt, 5]]);
  });

  const low = end - 10 * period;
  it.each<[what: string, probed: PageSummary]>([
    ["finds a newer row", page(low + 1)],
    ["finds only older rows", page(low - 1)],
    ["finds no row", page(undefined)],
    ["is unordered", page(low, { isDescending: false })],
  ])("the probe %s: it contradicts the page, and nothing is learnt", async (_, probed) => {
    const { checks, spacing } = checksWith([probed]);
    const given = page(low, { rowDistance: 4 * period });
    expect(await checks.hasMissingRows(given, afterCursor(end))).toBe(true);
    expect(spacing).toEqual(createRowSpacing(period));
  });

  it("a confirmed page shows how far apart rows are; the distance only grows", async () => {
    const first = page(low, { rowDistance: 3 * period });
    const second = page(low - 20 * period, { rowDistance: 2 * period });
    const { checks, spacing } = checksWith([first, second, page(low - 90 * period)]);
    await checks.hasMissingRows(first, start);
    expect(spacing).toEqual({ maxDistance: 3 * period, confirmedHoles: [] });
    await checks.hasMissingRows(second, afterCursor(low));
    expect(spacing).toEqual({ maxDistance: 3 * period, confirmedHoles: [20 * period] });
    await checks.hasMissingRows(page(low - 90 * period), afterCursor(low - 20 * period));
    expect(spacing).toEqual({ maxDistance: 3 * period, confirmedHoles: [70 * period, 20 * period] });
  });

  it("a hole as long as a confirmed one, to within the distance of two rows, needs no probe", async () => {
    const { checks, spacing } = checksWith();
    spacing.confirmedHoles = [50 * period, 20 * period];
    const needsProbe = (hole: Micros) => checks.needsProbe(page(end - hole), afterCursor(end));
    expect([19 * period - 1, 19 * period, 21 * period, 21 * period + 1].map(needsProbe)).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });

  it("the last eight holes are remembered", async () => {
    const holes = Array.from({ length: 9 }, (_, at) => (at + 1) * 10 * period);
    const { checks, spacing } = checksWith(holes.map((hole) => page(end - hole)));
    for (const hole of holes) await checks.hasMissingRows(page(end - hole), afterCursor(end));
    expect(spacing.confirmedHoles).toEqual(holes.toReversed().slice(0, 8));
  });
});

describe("the end of the history", () => {
  const empty = page(undefined);
  const emptyWithCursor = page(undefined, { nextId: "a" });
  const oldest = end - 7 * period + 1;
  const atOldest = { link: "cursor", anchor: end, oldestTs: oldest } as const;
  const aboveOldest = end - 7 * period + 1000;
  const few = (more: Partial<PageSummary> = {}) => page(oldest, { rows: 4, ...more });

  it.each<[what: string, answers: PageSummary[], isEnd: boolean, probes: unknown[][]]>([
    [
      "two empty responses",
      [empty, empty],
      true,
      [
        [end, 5],
        [end, 6],
      ],
    ],
    [
      "a second response with a cursor",
      [empty, emptyWithCursor],
      false,
      [
        [end, 5],
        [end, 6],
      ],
    ],
    ["a first response with a cursor", [emptyWithCursor, empty], false, [[end, 5]]],
    ["a row", [page(oldest, { rows: 1 }), empty], false, [[end, 5]]],
    [
      "a row in the second response",
      [empty, page(oldest, { rows: 1 })],
      false,
      [
        [end, 5],
        [end, 6],
      ],
    ],
  ])("without a row, %s", async (_, answers, isEnd, expected) => {
    const { checks, probes } = checksWith(answers);
    expect(await checks.isEndOfHistory(start)).toBe(isEnd);
    expect(probes).toEqual(expected);
  });

  it.each<[what: string, answer: PageSummary, isEnd: boolean]>([
    ["an empty response below the oldest row", empty, true],
    ["an empty response with a cursor", emptyWithCursor, false],
    ["a row below", page(oldest - period, { rows: 1 }), false],
  ])("of several indices: %s", async (_, answer, isEnd) => {
    const { checks, probes } = checksWith([answer], { isOneIndex: false });
    expect(await checks.isEndOfHistory(atOldest)).toBe(isEnd);
    expect(probes).toEqual([[oldest - 1, 5]]);
  });

  it.each<[what: string, answers: PageSummary[], isEnd: boolean, hasSecondProbe?: boolean]>([
    ["a page that ends with the oldest row", [few()], true],
    ["a page that ends with the oldest row and has a cursor", [few({ nextId: "a" })], true],
    ["a full page that ends with the oldest row", [page(oldest)], false],
    ["a page that goes below", [few({ oldest: oldest - 1 })], false],
    ["a page that ends above, without a cursor", [few({ oldest: oldest + 1 }), few()], false],
    [
      "a page that ends above, and its next page",
      [few({ oldest: oldest + 1, nextId: "a" }), few()],
      true,
      true,
    ],
    ["two pages above", [few({ oldest: oldest + 1, nextId: "a" }), few({ oldest: oldest + 1 })], false, true],
    ["an empty page", [empty], false],
    ["an empty page with a cursor", [emptyWithCursor, few()], false],
    ["unreadable rows", [page(undefined, { rows: 3 })], false],
  ])("of one index: %s", async (_, answers, isEnd, hasSecondProbe = false) => {
    const { checks, probes } = checksWith(answers);
    expect(await checks.isEndOfHistory(atOldest)).toBe(isEnd);
    expect(probes).toEqual([[aboveOldest, 5], ...(hasSecondProbe ? [[aboveOldest, 5, "a"]] : [])]);
  });

  it.each<
    [what: string, rowAge: Micros, more: Partial<CrossCheckOptions>, answer: PageSummary, isEnd: boolean]
  >([
    ["older than the window", INTRADAY_WINDOW + 1, {}, empty, true],
    ["older than the window, and the page has a cursor", INTRADAY_WINDOW + 1, {}, emptyWithCursor, false],
    ["about to leave the window", INTRADAY_WINDOW - 600 * MICROS_PER_SECOND + 1, {}, empty, true],
    ["ten minutes inside the window", INTRADAY_WINDOW - 600 * MICROS_PER_SECOND, {}, empty, false],
    ["of a service that sends no time", INTRADAY_WINDOW + 1, { responseTime: () => undefined }, empty, false],
    ["of a history without a window", 9000 * MICROS_PER_DAY, { endpoint: "/ohlcv" }, empty, false],
  ])("an empty page after a row %s", async (_, rowAge, more, answer, isEnd) => {
    const { checks } = checksWith([answer], { responseTime: () => oldest + rowAge, ...more });
    expect(await checks.isEndOfHistory(atOldest)).toBe(isEnd);
  });
});
