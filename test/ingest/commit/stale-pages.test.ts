import { describe, expect, it } from "vitest";
import type { WalkPage } from "../../../src/ingest/commit/walk-page.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import {
  commitPage,
  coverageSql,
  hole,
  start,
  whole,
  wholePage,
} from "../../support/ingest/ingest-harness.ts";
import { at, bodyOf, btc, pageOf, SECOND, ticks } from "../../support/ingest/pages.ts";

describe("a page that a cache has kept", () => {
  it("proves nothing about what came after it was made", async () => {
    const { ingest, query } = await start();
    const kept = {
      ...pageOf(ticks(hole.from, at("11:00:00"))),
      asOf: at("11:01:30") / 1000,
      ageMs: 3_600_000,
    };
    const commit = await commitPage(ingest, wholePage, kept);
    expect(commit).toMatchObject({ proven: { from: hole.from, to: at("11:00:30") }, isComplete: false });
    expect(query("SELECT to_time FROM coverage")).toEqual([{ to_time: "2026-03-01T11:00:30.000000Z" }]);
  });

  it("fills in what is missing, and neither reverts a correction nor withdraws a row", async () => {
    const { ingest, query } = await start();
    const before = ticks(hole.from, hole.to).slice(0, -1);
    const corrected = before.map((row) => (row.ts === at("11:00:00") ? { ...row, price: "1.5" } : row));
    await commitPage(ingest, wholePage, pageOf(corrected));
    const kept = ticks(hole.from, hole.to).filter(({ ts }) => ts !== at("11:10:00"));
    await commitPage(ingest, wholePage, { ...pageOf(kept), ageMs: 3_600_000 });
    expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 240 }]);
    expect(query("SELECT price_exact FROM index_ticks WHERE time LIKE '%11:00:00%'")).toEqual([
      { price_exact: "1.5" },
    ]);
    expect(query("SELECT * FROM revisions")).toEqual([]);
  });
});

describe("a page that was asked for by a clock that runs ahead", () => {
  it("settles nothing that is younger than its own date, less the time that records may still come", async () => {
    const { ingest, query } = await start();
    const early = { ...pageOf(ticks(hole.from, at("11:00:00"))), asOf: at("11:00:10") / 1000 };
    expect(await commitPage(ingest, wholePage, early)).toMatchObject({ isComplete: false, withdrawn: 0 });
    expect(query(coverageSql)).toEqual([{ ...whole[0], to_time: "2026-03-01T10:59:15.000000Z" }]);
    const tomorrow = { from: hole.to, to: hole.to + 3600 * SECOND };
    const ahead = { ...wholePage, position: { gap: tomorrow, provenFrom: tomorrow.to } };
    expect(await commitPage(ingest, ahead, { ...early, ...pageOf([]), asOf: early.asOf })).toMatchObject({
      proven: undefined,
      isComplete: false,
    });
  });
});

describe("a page of bars that a cache has kept", () => {
  const days = (count: number) =>
    Array.from({ length: count }, (_, i) => `2026-02-${String(28 - i).padStart(2, "0")}`);
  const barsPage = (content: { day: string; close: string }[], { ageMs = 0, nextId = "" }): ResponseBody => ({
    ...bodyOf({
      nextId,
      content: content.map(({ day, close }) => ({
        id: `bar-${day}`,
        indexId: btc.indexId,
        indexType: "GWA",
        open: "1",
        high: "9",
        low: "1",
        close,
        volume: "5",
        startTimestamp: `${day}T00:00:00Z`,
        endTimestamp: `${day}T23:59:59.999Z`,
      })),
    }),
    ageMs,
  });
  const february = { from: at("00:00:00") - 10 * 86_400 * SECOND, to: at("00:00:00") };
  const page: Omit<WalkPage, "pageId" | "isLast"> = {
    ...wholePage,
    series: { ...btc, stream: "ohlcv" },
    position: { gap: february, provenFrom: february.to },
    request: "GET /ohlcv",
  };

  it("fills in what is missing, and reverts nothing, also not what is still provisional", async () => {
    const { ingest, query } = await start();
    const closes = () => query("SELECT day, close_exact AS close FROM ohlcv ORDER BY day DESC");
    const now = days(2).map((day) => ({ day, close: "3" }));
    // The oldest of a page that is not the last is stored, and not settled.
    await commitPage(ingest, page, barsPage(now, { nextId: "more" }));
    const old = days(5).map((day) => ({ day, close: "2" }));
    await commitPage(ingest, page, barsPage(old, { ageMs: 3_600_000 }));
    expect(closes()).toEqual([...now, ...old.slice(2)]);
  });

  it("settles nothing while a stored bar that is not settled says something else, or is not on it", async () => {
    const { ingest, query } = await start();
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
    expect(query("SELECT close_exact AS close FROM ohlcv WHERE day = '2026-02-28'")).toEqual([
      { close: "3" },
    ]);
    // Once it is settled, an old answer is only an old answer.
    const late = barsPage(provisional, { ageMs: 3_600_000 });
    expect(await commitPage(ingest, page, late)).toMatchObject({ alarm: undefined });
  });

  it("settles no part of a day that was not over when the page was made", async () => {
    const { ingest, query } = await start();
    const early = barsPage([{ day: "2026-02-28", close: "2" }], {});
    await commitPage(ingest, page, { ...early, asOf: (at("00:00:00") - 3600 * SECOND) / 1000 });
    expect(query("SELECT max(to_time) AS until FROM coverage")).toEqual([
      { until: "2026-02-28T00:00:00.000000Z" },
    ]);
  });
});

describe("a page that another has overtaken", () => {
  it("reverts nothing that was asked for later, however late it comes, and still fills in what is older", async () => {
    const { ingest, query } = await start();
    const rows = ticks(hole.from, hole.to);
    const corrected = rows.map((row) => (row.ts === at("11:30:00") ? { ...row, price: "1.5" } : row));
    const head = { from: at("11:00:00"), to: hole.to };
    const newer = { ...wholePage, position: { gap: head, provenFrom: head.to } };
    await commitPage(ingest, newer, { ...pageOf(corrected), requestedAt: 2_000 });
    const late = { ...pageOf(rows.filter(({ ts }) => ts !== at("11:45:00"))), askedAt: 1_000 };
    expect(await commitPage(ingest, wholePage, late)).toMatchObject({ isComplete: true, withdrawn: 0 });
    expect(query("SELECT price_exact FROM index_ticks WHERE time LIKE '%11:30:00%'")).toEqual([
      { price_exact: "1.5" },
    ]);
    expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 240 }]);
    expect(query(coverageSql)).toEqual(whole);
    expect(query("SELECT * FROM revisions")).toEqual([]);

    await commitPage(ingest, wholePage, { ...pageOf(rows), requestedAt: 3_000 });
    expect(query("SELECT count(*) AS n FROM revisions")).toEqual([{ n: 1 }]);
  });
});

describe("a list that a cache has kept", () => {
  it("B16: adds what is new, and neither changes a status nor counts an absence", async () => {
    const { ingest, query } = await start();
    const list = async (assets: Record<string, string>, ageMs: number) => {
      const content = Object.entries(assets).map(([id, status]) => ({ id, symbol: id, name: id, status }));
      const body = { ...bodyOf({ content }), ageMs };
      const { pageId: held } = await ingest.call("readPage", { stream: "assets" }, [body]);
      return ingest.call("commitLookup", { stream: "assets", pageIds: [held], request: "GET /asset" });
    };
    await list({ BTC: "INACTIVE", ETH: "ACTIVE" }, 0);
    for (let run = 0; run < 3; run++) {
      const kept = await list({ BTC: "ACTIVE", OLD: "ACTIVE" }, 3_600_000);
      expect(kept).toMatchObject({ added: run === 0 ? 1 : 0, changed: 0, delisted: 0 });
    }
    expect(query("SELECT id, status, delisted_at FROM assets ORDER BY id")).toEqual([
      { id: "BTC", status: "INACTIVE", delisted_at: null },
      { id: "ETH", status: "ACTIVE", delisted_at: null },
      { id: "OLD", status: "ACTIVE", delisted_at: null },
    ]);
    expect(query("SELECT * FROM status_changes")).toEqual([]);
    expect(await list({ BTC: "ACTIVE", ETH: "ACTIVE", OLD: "ACTIVE" }, 0)).toMatchObject({ changed: 1 });
  });
});
