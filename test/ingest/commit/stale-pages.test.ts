import { describe, expect, it } from "vitest";
import { CommittedPages, type WalkPage } from "../../../src/ingest/commit/walk-page.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import { coverageSql, gap, onlyPage, wholeCoverage } from "../../support/ingest/ingest-harness.ts";
import { openPages } from "../../support/ingest/open-pages.ts";
import { at, btc, jsonBody, makeTicks, SECOND, tickPage } from "../../support/ingest/pages.ts";

describe("B16: a page from a cache", () => {
  it("proves nothing about the time after it was made", () => {
    const { commit, query } = openPages();
    const rows = makeTicks(gap.from, at("11:01:00"));
    const cached = { ...tickPage(rows), asOf: at("11:01:30") / 1000, ageMs: 3_600_000 };
    const result = commit(cached);
    expect(result).toMatchObject({ proven: { from: gap.from, to: at("11:00:30") }, isComplete: false });
    expect(query("SELECT to_time FROM coverage")).toEqual([{ to_time: "2026-03-01T11:00:30.000000Z" }]);
  });

  it("inserts missing rows, and neither reverts a correction nor withdraws a row", () => {
    const { commit, query } = openPages();
    const before = makeTicks(gap.from, gap.to).slice(0, -1);
    const corrected = before.map((row) => (row.ts === at("11:00:00") ? { ...row, price: "1.5" } : row));
    commit(tickPage(corrected));
    const cached = makeTicks(gap.from, gap.to).filter(({ ts }) => ts !== at("11:10:00"));
    commit({ ...tickPage(cached), ageMs: 3_600_000 });
    expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 240 }]);
    expect(query("SELECT price_exact FROM index_ticks WHERE time LIKE '%11:00:00%'")).toEqual([
      { price_exact: "1.5" },
    ]);
    expect(query("SELECT * FROM revisions")).toEqual([]);
    expect(query("SELECT source, count(*) AS rows FROM index_ticks GROUP BY source")).toEqual([
      { source: "live", rows: 1 },
      { source: "rest", rows: 239 },
    ]);
  });
});

it("a page requested on a machine whose clock is ahead settles nothing younger than its own date minus the settle delay", () => {
  const { commit, query } = openPages();
  const early = { ...tickPage(makeTicks(gap.from, at("11:00:00"))), asOf: at("11:00:10") / 1000 };
  expect(commit(early)).toMatchObject({ isComplete: false, withdrawn: 0 });
  expect(query(coverageSql)).toEqual([{ ...wholeCoverage[0], to_time: "2026-03-01T10:59:15.000000Z" }]);
  const tomorrow = { from: gap.to, to: gap.to + 3600 * SECOND };
  const ahead = { ...onlyPage, position: { gap: tomorrow, provenFrom: tomorrow.to } };
  const nothing = commit({ ...tickPage([]), asOf: early.asOf }, ahead);
  expect(nothing).toMatchObject({ proven: undefined, isComplete: false });
});

describe("B16: a page of bars from a cache", () => {
  const days = (count: number) =>
    Array.from({ length: count }, (_, i) => `2026-02-${String(28 - i).padStart(2, "0")}`);
  const barsPage = (
    content: { day: string; close: string; venues?: number }[],
    { ageMs = 0, nextId = "" },
  ): ResponseBody => ({
    ...jsonBody({
      nextId,
      content: content.map(({ day, ...rest }) => ({
        ...{ id: `bar-${day}`, indexId: btc.indexId, indexType: "GWA" },
        ...{ open: "1", high: "9", low: "1", ...rest, volume: "5" },
        ...{ startTimestamp: `${day}T00:00:00Z`, endTimestamp: `${day}T23:59:59.999Z` },
      })),
    }),
    ageMs,
  });
  const february = { from: at("00:00:00") - 10 * 86_400 * SECOND, to: at("00:00:00") };
  const page: Omit<WalkPage, "isLast"> = {
    ...onlyPage,
    series: { ...btc, stream: "ohlcv" },
    position: { gap: february, provenFrom: february.to },
    request: "GET /ohlcv",
  };

  it("inserts missing bars and reverts none, not even an unsettled one", () => {
    const { commit, query } = openPages();
    const closes = () => query("SELECT day, close_exact AS close FROM ohlcv ORDER BY day DESC");
    const now = days(2).map((day) => ({ day, close: "3" }));
    // The oldest record of a page that is not the last is stored, but not settled.
    commit(barsPage(now, { nextId: "more" }), page);
    const old = days(5).map((day) => ({ day, close: "2" }));
    commit(barsPage(old, { ageMs: 3_600_000 }), page);
    expect(closes()).toEqual([...now, ...old.slice(2)]);
  });

  it("D1: contradicts nothing if it only lacks a property that the service has added since", () => {
    const { commit, query } = openPages();
    const bars = days(5).map((day) => ({ day, close: "3" }));
    const extended = bars.slice(0, 2).map((bar) => ({ ...bar, venues: 7 }));
    commit(barsPage(extended, { nextId: "more" }), page);
    const result = commit(barsPage(bars, { ageMs: 3_600_000 }), page);
    expect(result).toMatchObject({ alarm: undefined, isComplete: true });
    expect(query("SELECT count(*) AS n FROM ohlcv WHERE extra = '{\"venues\":7}'")).toEqual([{ n: 2 }]);
  });

  it("settles nothing while an unsettled stored bar differs from it or is missing on it", () => {
    const { commit, query } = openPages();
    const provisional = days(1).map((day) => ({ day, close: "2" }));
    commit(barsPage(provisional, { nextId: "more" }), page);
    const before = query(coverageSql);
    const final = days(5).map((day) => ({ day, close: "3" }));
    const differing = commit(barsPage(final, { ageMs: 3_600_000 }), page);
    expect(differing).toMatchObject({ proven: undefined, isComplete: false, alarm: "older_than_stored" });
    const lacking = commit(barsPage(final.slice(1), { ageMs: 3_600_000 }), page);
    expect(lacking).toMatchObject({ proven: undefined, alarm: "older_than_stored" });
    expect(query(coverageSql)).toEqual(before);

    expect(commit(barsPage(final, {}), page)).toMatchObject({ isComplete: true });
    const sql = "SELECT close_exact AS close FROM ohlcv WHERE day = '2026-02-28'";
    expect(query(sql)).toEqual([{ close: "3" }]);
    // Once the bar is settled, an older response raises no alarm.
    const late = barsPage(provisional, { ageMs: 3_600_000 });
    expect(commit(late, page)).toMatchObject({ alarm: undefined });
  });

  it("settles no day that had not ended when the page was made", () => {
    const { commit, query } = openPages();
    const early = barsPage([{ day: "2026-02-28", close: "2" }], {});
    commit({ ...early, asOf: (at("00:00:00") - 3600 * SECOND) / 1000 }, page);
    expect(query("SELECT max(to_time) AS until FROM coverage")).toEqual([
      { until: "2026-02-28T00:00:00.000000Z" },
    ]);
  });
});

it("B16: a superseded page reverts nothing that was requested later, and still inserts missing rows", () => {
  const { commit, query } = openPages();
  const rows = makeTicks(gap.from - 30 * SECOND, gap.to);
  const corrected = rows.map((row) => (row.ts === at("11:30:00") ? { ...row, price: "1.5" } : row));
  const head = { from: at("11:00:00"), to: gap.to };
  const newer = { ...onlyPage, position: { gap: head, provenFrom: head.to } };
  commit({ ...tickPage(corrected, "more"), requestedAt: 2_000 }, newer);
  const lacking = rows.filter(({ ts }) => ts !== at("11:45:00"));
  const late = { ...tickPage(lacking, "more"), requestedAt: 1_000 };
  expect(commit(late)).toMatchObject({ isComplete: true, withdrawn: 0 });
  expect(query("SELECT price_exact FROM index_ticks WHERE time LIKE '%11:30:00%'")).toEqual([
    { price_exact: "1.5" },
  ]);
  expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 241 }]);
  expect(query(coverageSql)).toEqual(wholeCoverage);
  expect(query("SELECT * FROM revisions")).toEqual([]);

  commit({ ...tickPage(rows, "more"), requestedAt: 3_000 });
  expect(query("SELECT count(*) AS n FROM revisions")).toEqual([{ n: 1 }]);
});

describe("recently committed pages", () => {
  it("do not count if their transaction was rolled back", () => {
    const pages = new CommittedPages();
    pages.add("index_ticks", 1, { from: 0, to: 100 }, 50);
    const undo = pages.add("index_ticks", 1, { from: 100, to: 200 }, 60);
    pages.add("index_ticks", 1, { from: 200, to: 300 }, 70);
    undo();
    const isSuperseded = (at: number) => pages.isSuperseded("index_ticks", 1, { from: at, to: at + 1 }, 0);
    expect([isSuperseded(50), isSuperseded(150), isSuperseded(250)]).toEqual([true, false, true]);
    undo();
    expect(isSuperseded(250)).toBe(true);
    const undoFirst = pages.add("ohlcv", 1, { from: 0, to: 100 }, 50);
    undoFirst();
    expect(pages.isSuperseded("ohlcv", 1, { from: 0, to: 100 }, 0)).toBe(false);
  });

  it("are remembered for ten minutes, and of one series only the latest", () => {
    const pages = new CommittedPages();
    const add = (at: number, requestedAt: number) =>
      pages.add("ohlcv", 1, { from: at, to: at + 1 }, requestedAt);
    const isKnown = (at: number) => pages.isSuperseded("ohlcv", 1, { from: at, to: at + 1 }, -1);
    add(0, 0);
    add(1, 599_999);
    expect([isKnown(0), isKnown(1)]).toEqual([true, true]);
    add(2, 600_000);
    expect([isKnown(0), isKnown(1), isKnown(2)]).toEqual([false, true, true]);
    for (let at = 3; at < 300; at++) add(at, 600_000);
    expect([isKnown(1), isKnown(299)]).toEqual([false, true]);
  });
});
