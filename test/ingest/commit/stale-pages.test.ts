import { describe, expect, it } from "vitest";
import type { WalkPage } from "../../../src/ingest/commit/walk-page.ts";
import { CommittedPages } from "../../../src/ingest/commit/walk-page.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import {
  commitPage,
  coverageSql,
  gap,
  onlyPage,
  startIngest,
  wholeCoverage,
} from "../../support/ingest/ingest-harness.ts";
import { at, btc, jsonBody, makeTicks, SECOND, tickPage } from "../../support/ingest/pages.ts";

describe("B16: a page from a cache", () => {
  it("proves nothing about the time after it was made", async () => {
    const { ingest, query } = await startIngest();
    const rows = makeTicks(gap.from, at("11:01:00"));
    const cached = { ...tickPage(rows), asOf: at("11:01:30") / 1000, ageMs: 3_600_000 };
    const commit = await commitPage(ingest, onlyPage, cached);
    expect(commit).toMatchObject({ proven: { from: gap.from, to: at("11:00:30") }, isComplete: false });
    expect(query("SELECT to_time FROM coverage")).toEqual([{ to_time: "2026-03-01T11:00:30.000000Z" }]);
  });

  it("inserts missing rows, and neither reverts a correction nor withdraws a row", async () => {
    const { ingest, query } = await startIngest();
    const before = makeTicks(gap.from, gap.to).slice(0, -1);
    const corrected = before.map((row) => (row.ts === at("11:00:00") ? { ...row, price: "1.5" } : row));
    await commitPage(ingest, onlyPage, tickPage(corrected));
    const cached = makeTicks(gap.from, gap.to).filter(({ ts }) => ts !== at("11:10:00"));
    await commitPage(ingest, onlyPage, { ...tickPage(cached), ageMs: 3_600_000 });
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

describe("a page requested on a machine whose clock is ahead", () => {
  it("settles nothing younger than its own date minus the settle delay", async () => {
    const { ingest, query } = await startIngest();
    const early = { ...tickPage(makeTicks(gap.from, at("11:00:00"))), asOf: at("11:00:10") / 1000 };
    expect(await commitPage(ingest, onlyPage, early)).toMatchObject({ isComplete: false, withdrawn: 0 });
    expect(query(coverageSql)).toEqual([{ ...wholeCoverage[0], to_time: "2026-03-01T10:59:15.000000Z" }]);
    const tomorrow = { from: gap.to, to: gap.to + 3600 * SECOND };
    const ahead = { ...onlyPage, position: { gap: tomorrow, provenFrom: tomorrow.to } };
    const nothing = await commitPage(ingest, ahead, { ...tickPage([]), asOf: early.asOf });
    expect(nothing).toMatchObject({ proven: undefined, isComplete: false });
  });
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

  it("inserts missing bars and reverts none, not even an unsettled one", async () => {
    const { ingest, query } = await startIngest();
    const closes = () => query("SELECT day, close_exact AS close FROM ohlcv ORDER BY day DESC");
    const now = days(2).map((day) => ({ day, close: "3" }));
    // The oldest record of a page that is not the last is stored, but not settled.
    await commitPage(ingest, page, barsPage(now, { nextId: "more" }));
    const old = days(5).map((day) => ({ day, close: "2" }));
    await commitPage(ingest, page, barsPage(old, { ageMs: 3_600_000 }));
    expect(closes()).toEqual([...now, ...old.slice(2)]);
  });

  it("D1: contradicts nothing if it only lacks a property that the service has added since", async () => {
    const { ingest, query } = await startIngest();
    const bars = days(5).map((day) => ({ day, close: "3" }));
    const extended = bars.slice(0, 2).map((bar) => ({ ...bar, venues: 7 }));
    await commitPage(ingest, page, barsPage(extended, { nextId: "more" }));
    const commit = await commitPage(ingest, page, barsPage(bars, { ageMs: 3_600_000 }));
    expect(commit).toMatchObject({ alarm: undefined, isComplete: true });
    expect(query("SELECT count(*) AS n FROM ohlcv WHERE extra = '{\"venues\":7}'")).toEqual([{ n: 2 }]);
  });

  it("settles nothing while an unsettled stored bar differs from it or is missing on it", async () => {
    const { ingest, query } = await startIngest();
    const provisional = days(1).map((day) => ({ day, close: "2" }));
    await commitPage(ingest, page, barsPage(provisional, { nextId: "more" }));
    const before = query(coverageSql);
    const final = days(5).map((day) => ({ day, close: "3" }));
    const differing = await commitPage(ingest, page, barsPage(final, { ageMs: 3_600_000 }));
    expect(differing).toMatchObject({ proven: undefined, isComplete: false, alarm: "older_than_stored" });
    const lacking = await commitPage(ingest, page, barsPage(final.slice(1), { ageMs: 3_600_000 }));
    expect(lacking).toMatchObject({ proven: undefined, alarm: "older_than_stored" });
    expect(query(coverageSql)).toEqual(before);

    expect(await commitPage(ingest, page, barsPage(final, {}))).toMatchObject({ isComplete: true });
    const sql = "SELECT close_exact AS close FROM ohlcv WHERE day = '2026-02-28'";
    expect(query(sql)).toEqual([{ close: "3" }]);
    // Once the bar is settled, an older response raises no alarm.
    const late = barsPage(provisional, { ageMs: 3_600_000 });
    expect(await commitPage(ingest, page, late)).toMatchObject({ alarm: undefined });
  });

  it("settles no day that had not ended when the page was made", async () => {
    const { ingest, query } = await startIngest();
    const early = barsPage([{ day: "2026-02-28", close: "2" }], {});
    await commitPage(ingest, page, { ...early, asOf: (at("00:00:00") - 3600 * SECOND) / 1000 });
    expect(query("SELECT max(to_time) AS until FROM coverage")).toEqual([
      { until: "2026-02-28T00:00:00.000000Z" },
    ]);
  });
});

describe("B16: a superseded page", () => {
  it("reverts nothing that was requested later, and still inserts missing rows", async () => {
    const { ingest, query } = await startIngest();
    const rows = makeTicks(gap.from - 30 * SECOND, gap.to);
    const corrected = rows.map((row) => (row.ts === at("11:30:00") ? { ...row, price: "1.5" } : row));
    const head = { from: at("11:00:00"), to: gap.to };
    const newer = { ...onlyPage, position: { gap: head, provenFrom: head.to } };
    await commitPage(ingest, newer, { ...tickPage(corrected, "more"), requestedAt: 2_000 });
    const lacking = rows.filter(({ ts }) => ts !== at("11:45:00"));
    const late = { ...tickPage(lacking, "more"), requestedAt: 1_000 };
    expect(await commitPage(ingest, onlyPage, late)).toMatchObject({ isComplete: true, withdrawn: 0 });
    expect(query("SELECT price_exact FROM index_ticks WHERE time LIKE '%11:30:00%'")).toEqual([
      { price_exact: "1.5" },
    ]);
    expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 241 }]);
    expect(query(coverageSql)).toEqual(wholeCoverage);
    expect(query("SELECT * FROM revisions")).toEqual([]);

    await commitPage(ingest, onlyPage, { ...tickPage(rows, "more"), requestedAt: 3_000 });
    expect(query("SELECT count(*) AS n FROM revisions")).toEqual([{ n: 1 }]);
  });
});

describe("a lookup from a cache", () => {
  it("B16: adds new entries, and neither changes a status nor counts a missing entry", async () => {
    const { ingest, query } = await startIngest();
    const list = async (assets: Record<string, string>, ageMs: number) => {
      const content = Object.entries(assets).map(([id, status]) => ({ id, symbol: id, name: id, status }));
      const body = { ...jsonBody({ content }), ageMs };
      const pages = ingest.openPages({ stream: "assets" });
      await pages.read(body);
      const origin = { request: "GET /asset", serviceUrl: "https://service.test" };
      return ingest.call("commitLookup", { stream: "assets", reader: pages.id, ...origin });
    };
    await list({ BTC: "INACTIVE", ETH: "ACTIVE" }, 0);
    for (let run = 0; run < 3; run++) {
      const result = await list({ BTC: "ACTIVE", OLD: "ACTIVE" }, 3_600_000);
      expect(result).toMatchObject({ added: run === 0 ? 1 : 0, changed: 0, delisted: 0 });
    }
    const assets = query("SELECT id || ' ' || status FROM assets WHERE delisted_at IS NULL ORDER BY id");
    expect(assets.flatMap(Object.values)).toEqual(["BTC INACTIVE", "ETH ACTIVE", "OLD ACTIVE"]);
    expect(query("SELECT * FROM status_changes")).toEqual([]);
    expect(await list({ BTC: "ACTIVE", ETH: "ACTIVE", OLD: "ACTIVE" }, 0)).toMatchObject({ changed: 1 });
  });
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
