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

describe("a history without a row", () => {
  const empty = page(undefined);
  const withCursor = page(undefined, { nextId: "a" });
  const both = [
    [end, 5],
    [end, 6],
  ];
  it.each<[what: string, answers: PageSummary[], isEmpty: boolean, probes: unknown[][]]>([
    ["two empty responses", [empty, empty], true, both],
    ["a second response with a cursor", [empty, withCursor], false, both],
    ["a first response with a cursor", [withCursor, empty], false, [[end, 5]]],
    ["a row", [page(end - period, { rows: 1 }), empty], false, [[end, 5]]],
    ["a row in the second response", [empty, page(end - period, { rows: 1 })], false, both],
    ["an unreadable row", [page(undefined, { rows: 1 }), empty], false, [[end, 5]]],
  ])("%s", async (_, answers, isEmpty, expected) => {
    const { checks, probes } = checksWith(answers);
    expect(await checks.isEmptyHistory(end)).toBe(isEmpty);
    expect(probes).toEqual(expected);
  });
});

describe("a row has left the window", () => {
  it.each<[what: string, rowAge: Micros, more: Partial<CrossCheckOptions>, hasLeft: boolean]>([
    ["older than the window", INTRADAY_WINDOW + 1, {}, true],
    ["about to leave it", INTRADAY_WINDOW - 600 * MICROS_PER_SECOND + 1, {}, true],
    ["ten minutes inside", INTRADAY_WINDOW - 600 * MICROS_PER_SECOND, {}, false],
    ["of a service that sends no time", INTRADAY_WINDOW + 1, { responseTime: () => undefined }, false],
    ["of a history without a window", 9000 * MICROS_PER_DAY, { endpoint: "/ohlcv" }, false],
  ])("%s", (_, rowAge, more, hasLeft) => {
    const { checks } = checksWith([], { responseTime: () => end + rowAge, ...more });
    expect(checks.hasLeftWindow(end)).toBe(hasLeft);
  });
});
