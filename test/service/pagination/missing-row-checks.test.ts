import { describe, expect, it } from "vitest";
import { parseTimestamp } from "../../../src/model/time.ts";
import {
  correctPage,
  type HistoryPage,
  type HistoryQuery,
  toHistoryPage,
} from "../../support/service/stub-history.ts";
import {
  allIds,
  distinct,
  noonTs,
  oldestTs,
  type PageOverride,
  rows,
  SECOND_MICROS,
  walkHistory,
} from "../../support/service/walk-history.ts";

const hourBelow = { from: oldestTs - 3600 * SECOND_MICROS };
const complete = { falselyCovered: [], isComplete: true, failure: undefined };
const wide = { size: 2000, ...hourBelow };
const tenRowPage = (query: HistoryQuery) => correctPage(rows, { ...query, size: "10" });
const nextOf = (page: HistoryPage, query: HistoryQuery) =>
  tenRowPage({ ...query, startAfter: page.nextId ?? undefined });

describe("a single response does not prove that rows do not exist", () => {
  it.each<[what: string, faultAt: number, answer: (page: HistoryPage, query: HistoryQuery) => HistoryPage]>([
    [
      "C1, C7: the first page swapped where pages are capped",
      1,
      (page, query) => ({ ...page, content: nextOf(page, query).content }),
    ],
    ["C5, C7: the first page empty, with the right nextId", 1, (page) => ({ ...page, content: [] })],
    ["C6: the first page empty, without nextId", 1, () => ({ content: [] })],
    ["C6: ten rows without nextId", 1, ({ content }) => ({ content })],
    ["C6: ten rows without nextId in the middle", 4, ({ content }) => ({ content })],
    ["C9: an empty page after a cursor", 4, () => ({ content: [] })],
    ["C1: the second page instead of the first, with its nextId", 1, nextOf],
    [
      "D5: an unreadable first page",
      1,
      ({ nextId }) => ({ content: [{ id: "x", timestamp: "?" }], nextId: nextId ?? "" }),
    ],
  ])("%s: the walk retries and proves everything", async (_, faultAt, answer) => {
    const result = await walkHistory(
      (query, count) => (count === faultAt ? answer(tenRowPage(query), query) : tenRowPage(query)),
      wide,
    );
    expect(result).toMatchObject(complete);
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.positions[0]?.number).toBe(1);
    expect(result.queries.length).toBeLessThanOrEqual(16);
  });

  it("C9: empty pages after a cursor and at its timestamp are no end: the service just served that row", async () => {
    const result = await walkHistory(
      (_, count) => (count === 4 || count === 5 ? { content: [] } : undefined),
      hourBelow,
    );
    expect(result).toMatchObject(complete);
    expect(distinct(result.ids)).toEqual(allIds);
  });

  it("C9: endless empty pages leave the range open", async () => {
    const result = await walkHistory((_, count) => (count >= 4 ? { content: [] } : undefined), hourBelow);
    expect(result).toMatchObject({ falselyCovered: [], isComplete: false });
    expect(result.failure).toMatchObject({ code: "pagination_cycle" });
    expect(result.queries.length).toBeLessThan(16);
  });

  it("C9: deleting the row at the cursor is no contradiction", async () => {
    const left = rows.filter((_, at) => at !== 29);
    const result = await walkHistory(
      (query, count) => (count > 3 ? correctPage(left, query) : undefined),
      hourBelow,
    );
    expect(result).toMatchObject(complete);
  });

  it("C1: a gap at the head that the probe cannot confirm stays open", async () => {
    const late = rows.slice(20);
    const result = await walkHistory(({ size }) => (size === "5" ? { content: [] } : undefined), {
      history: late,
    });
    expect(result).toMatchObject({ isComplete: false, failure: { code: "pagination_cycle" } });
    expect(result.ids).toEqual([]);
  });

  it.each([
    ["whose rows reach the end of the gap", 30, 0],
    ["whose newest row lies above the claimed coverage", 600, 0],
    ["without rows above its newest row", 600, 1],
  ])("C1: a walk %s (%i seconds) needs %i more requests", async (_what, gap, more) => {
    const until = noonTs - 30 * SECOND_MICROS + gap * SECOND_MICROS;
    const coverageEnd = more === 0 ? noonTs : until;
    const from = noonTs - 200 * SECOND_MICROS;
    const result = await walkHistory(undefined, { until, coverageEnd, from });
    expect(result).toMatchObject(complete);
    expect(result.queries).toHaveLength(1 + more);
  });

  it.each([
    ["needs no second response", undefined, 1],
    ["needs one if so much silence may prove that there are none", 299, 2],
  ])("H1: a silence that is usual for the series %s", async (_what, maxSilence, requests) => {
    const result = await walkHistory(undefined, {
      until: noonTs + 270 * SECOND_MICROS,
      from: noonTs - 200 * SECOND_MICROS,
      cadence: 600 * SECOND_MICROS,
      maxSilence: maxSilence && maxSilence * SECOND_MICROS,
    });
    expect(result.queries).toHaveLength(requests);
    expect(result.positions[0]?.isSilenceConfirmed).toBe(requests > 1);
  });

  it("C15: pages sorted oldest first prove nothing false", async () => {
    const oldestFirst: PageOverride = ({ timestamp = "", startAfter, size }) => {
      const bound = parseTimestamp(timestamp) ?? 0;
      const listed = rows.toReversed().filter(({ ts }) => ts <= bound);
      const at = startAfter === undefined ? 0 : listed.findIndex(({ id }) => id === startAfter) + 1;
      return toHistoryPage(listed.slice(at, at + Number(size)));
    };
    const result = await walkHistory(oldestFirst);
    expect(result).toMatchObject({ falselyCovered: [], isComplete: false });
    expect(result.events).toContain("unordered");
  });

  it("C6: an empty history needs two more requests", async () => {
    const result = await walkHistory(undefined, { history: [] });
    expect(result).toMatchObject({ ...complete, end: "exhausted" });
    expect(result.queries.map(({ size }) => size)).toEqual(["10", "5", "6"]);
  });
});

describe("a walk without progress ends", () => {
  it("C2: inclusive cursors that are always new: a confirmed last row is the end", async () => {
    const result = await walkHistory(({ startAfter, timestamp, size = "" }, count) => {
      const id = startAfter?.split("~")[0];
      const at = rows.findIndex((row) => row.id === id);
      const page =
        at < 0 ? correctPage(rows, { timestamp, size }) : toHistoryPage(rows.slice(at, at + Number(size)));
      return { ...page, nextId: `${page.nextId}~${count}` };
    }, hourBelow);
    expect(result).toMatchObject({ ...complete, end: "exhausted" });
    expect(result.queries.length).toBeLessThan(24);
  });

  it("C4: after five pages without older rows the walk continues by timestamp", async () => {
    const result = await walkHistory((query, count) =>
      query.startAfter === undefined
        ? undefined
        : { content: toHistoryPage(rows.slice(9, 10)).content, nextId: `n${count}` },
    );
    expect(result).toMatchObject(complete);
    expect(result.events).toContain("no_progress");
  });

  it("C14: pages without rows of the series and with new cursors end as pagination_cycle", async () => {
    const result = await walkHistory((_, count) => ({
      content: [{ id: "other", timestamp: "?" }],
      nextId: `x${count}`,
    }));
    expect(result).toMatchObject({ isComplete: false, failure: { code: "pagination_cycle" } });
    expect(result.queries.length).toBeLessThan(12);
  });
});
