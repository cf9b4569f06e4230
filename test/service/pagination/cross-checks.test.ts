import { describe, expect, it } from "vitest";
import { parseInstant } from "../../../src/model/time.ts";
import {
  type HistoryPage,
  type HistoryQuery,
  honestPage,
  pageOf,
  rowsEvery30s,
} from "../../support/service/stub-history.ts";
import {
  type Answer,
  allIds,
  distinct,
  noon,
  oldestTs,
  rows,
  second,
  walked,
} from "../../support/service/walk-history.ts";

const hourBelow = { from: oldestTs - 3600 * second };
const whole = { falselyCovered: [], isWhole: true, failure: undefined };
const wide = { size: 2000, ...hourBelow };
const tenAPage = (query: HistoryQuery) => honestPage(rows, { ...query, size: "10" });
const nextOf = (page: HistoryPage, query: HistoryQuery) =>
  tenAPage({ ...query, startAfter: page.nextId ?? undefined });

describe("one answer alone does not prove what it leaves out", () => {
  it.each<[what: string, strike: number, answer: (page: HistoryPage, query: HistoryQuery) => HistoryPage]>([
    [
      "C1, C7: the first page swapped where pages are capped",
      1,
      (page, query) => ({ ...page, content: nextOf(page, query).content }),
    ],
    ["C5, C7: the first page empty, with the right nextId", 1, (page) => ({ ...page, content: [] })],
    ["C6: an empty first page without nextId", 1, () => ({ content: [] })],
    ["C6: ten rows without nextId", 1, ({ content }) => ({ content })],
    ["C6: ten rows without nextId in the middle", 4, ({ content }) => ({ content })],
    ["C9: silence after a cursor", 4, () => ({ content: [] })],
    ["C1: the very first page is another one, its nextId too", 1, nextOf],
    [
      "D5: a first page that cannot be read",
      1,
      ({ nextId }) => ({ content: [{ id: "x", timestamp: "?" }], nextId: nextId ?? "" }),
    ],
  ])("%s: asked again, and all is proven", async (_, strike, answer) => {
    const result = await walked(
      (query, count) => (count === strike ? answer(tenAPage(query), query) : tenAPage(query)),
      wide,
    );
    expect(result).toMatchObject(whole);
    expect(distinct(result.ids)).toEqual(allIds);
    expect(result.positions[0]?.number).toBe(1);
    expect(result.queries.length).toBeLessThanOrEqual(16);
  });

  it("C9: silence after a cursor and again at its timestamp is no end, since that row was just served", async () => {
    const result = await walked(
      (_, count) => (count === 4 || count === 5 ? { content: [] } : undefined),
      hourBelow,
    );
    expect(result).toMatchObject(whole);
    expect(distinct(result.ids)).toEqual(allIds);
  });

  it("C9: silence for ever leaves the range open", async () => {
    const result = await walked((_, count) => (count >= 4 ? { content: [] } : undefined), hourBelow);
    expect(result).toMatchObject({
      falselyCovered: [],
      isWhole: false,
      failure: { code: "pagination_cycle" },
    });
    expect(result.queries.length).toBeLessThan(16);
  });

  it("C9: silence is an end where the row has left the window since", async () => {
    const now = oldestTs + 200 * 86_400 * second + 25 * second;
    const result = await walked((_, count) => (count > 10 ? { content: [] } : undefined), {
      ...hourBelow,
      now,
    });
    expect(result).toMatchObject({ ...whole, end: "served_out" });
    expect(result.queries).toHaveLength(12);
  });

  it("C9: a row that was deleted while the walk stood on it is no contradiction", async () => {
    const left = rows.filter((_, at) => at !== 29);
    const result = await walked(
      (query, count) => (count > 3 ? honestPage(left, query) : undefined),
      hourBelow,
    );
    expect(result).toMatchObject(whole);
  });

  it("C1: a head gap that the second look cannot confirm stays open", async () => {
    const late = rows.slice(20);
    const result = await walked(({ size }) => (size === "5" ? { content: [] } : undefined), {
      history: late,
    });
    expect(result).toMatchObject({ isWhole: false, failure: { code: "pagination_cycle" } });
    expect(result.ids).toEqual([]);
  });

  it.each([
    ["whose rows come to the hole's end", 30, 0],
    ["whose newest row lies above what is claimed", 600, 0],
    ["that is really empty above its newest row", 600, 1],
  ])("C1: a walk %s (%i seconds) costs %i more", async (_what, gap, more) => {
    const until = noon - 30 * second + gap * second;
    const claimedTo = more === 0 ? noon : until;
    const result = await walked(undefined, { until, claimedTo, from: noon - 200 * second });
    expect(result).toMatchObject(whole);
    expect(result.queries).toHaveLength(1 + more);
  });

  it("C15: oldest first with a limit proves nothing but the oldest row", async () => {
    const oldestFirst: Answer = ({ timestamp = "", startAfter, size }) => {
      const bound = parseInstant(timestamp) ?? 0;
      const listed = rows.toReversed().filter(({ ts }) => ts <= bound);
      const at = startAfter === undefined ? 0 : listed.findIndex(({ id }) => id === startAfter) + 1;
      return pageOf(listed.slice(at, at + Number(size)));
    };
    const result = await walked(oldestFirst);
    expect(result).toMatchObject({ falselyCovered: [], isWhole: false });
    expect(result.events).toContain("unordered");
  });

  it("C6: an empty history costs two more questions", async () => {
    const result = await walked(undefined, { history: [] });
    expect(result).toMatchObject({ ...whole, end: "served_out" });
    expect(result.queries.map(({ size }) => size)).toEqual(["10", "5", "6"]);
  });
});

describe("a walk that makes no progress ends", () => {
  it("C2: an inclusive last row under ever fresh cursors is the end, once it is confirmed", async () => {
    const result = await walked(({ startAfter, timestamp, size = "" }, count) => {
      const id = startAfter?.split("~")[0];
      const at = rows.findIndex((row) => row.id === id);
      const page = at < 0 ? honestPage(rows, { timestamp, size }) : pageOf(rows.slice(at, at + Number(size)));
      return { ...page, nextId: `${page.nextId}~${count}` };
    }, hourBelow);
    expect(result).toMatchObject({ ...whole, end: "served_out" });
    expect(result.queries.length).toBeLessThan(24);
  });

  it("C4: pages that bring nothing older are followed five times, then the walk goes on by timestamp", async () => {
    const result = await walked((query, count) =>
      query.startAfter === undefined
        ? undefined
        : { content: pageOf(rows.slice(9, 10)).content, nextId: `n${count}` },
    );
    expect(result).toMatchObject(whole);
    expect(result.events).toContain("no_progress");
  });

  it("C14: pages without a row of ours, under ever fresh cursors, end as pagination_cycle", async () => {
    const result = await walked((_, count) => ({
      content: [{ id: "other", timestamp: "?" }],
      nextId: `x${count}`,
    }));
    expect(result).toMatchObject({ isWhole: false, failure: { code: "pagination_cycle" } });
    expect(result.queries.length).toBeLessThan(12);
  });

  it("C3: six hundred pages of ties are followed where no index is named", async () => {
    const moment = noon - 30 * second;
    const tied = Array.from({ length: 6000 }, (_, at) => ({ id: `t${at}`, ts: moment }));
    const history = [...tied, ...rowsEvery30s(20, moment - 30 * second)];
    const result = await walked(undefined, {
      history,
      filters: { indexType: "MWA" },
      from: moment - 120 * second,
    });
    expect(new Set(result.ids).size).toBeGreaterThan(6000);
    expect(result).toMatchObject({ ...whole, end: "reached" });
  });
});
