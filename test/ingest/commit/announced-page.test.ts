import { describe, expect, it } from "vitest";
import type { AnnouncedRange } from "../../../src/model/announced-coverage.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import { readPublication } from "../../../src/warehouse/coverage/publication.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { gap, onlyPage } from "../../support/ingest/ingest-harness.ts";
import { openPages } from "../../support/ingest/open-pages.ts";
import { at, btc, jsonBody, makeTicks, SECOND, type TestTick, tickPage } from "../../support/ingest/pages.ts";
import { tick } from "../../support/warehouse/records.ts";

const range = (
  state: AnnouncedRange["state"],
  from: string,
  to: string,
  reason: string | null = null,
): AnnouncedRange => ({ state, from: at(from), to: at(to), reason });

/** A page of `mds-sync serve` whose ledger has these ranges. */
const servedPage = (
  rows: readonly TestTick[],
  ranges: readonly AnnouncedRange[],
  more: Partial<ResponseBody> = {},
): ResponseBody => ({ ...tickPage(rows), announced: { windowStart: undefined, ranges }, ...more });

const without = (...ranges: [from: string, to: string][]) =>
  allRows.filter(({ ts }) => !ranges.some(([from, to]) => ts >= at(from) && ts < at(to)));
const allRows = makeTicks(gap.from, gap.to);

describe("a page of mds-sync serve", () => {
  it("brings its ledger; where that is open, its records are as unconfirmed as live ticks", () => {
    const { commit, coverage, query } = openPages();
    const rows = without(["10:00:00", "10:10:00"], ["10:20:00", "10:30:00"]);
    const ranges = [
      range("lost", "09:00:00", "10:10:00", "aged out"),
      range("empty", "10:20:00", "10:25:00", "not found"),
      range("empty", "10:25:00", "10:30:00"),
      range("open", "10:40:00", "10:45:00"),
      range("open", "11:59:00", "13:00:00"),
    ];
    expect(commit(servedPage(rows, ranges))).toMatchObject({
      written: { inserted: 200, changed: 0, unchanged: 0, outranked: 0 },
      withdrawn: 0,
      proven: gap,
      isComplete: true,
      alarm: undefined,
    });
    expect(coverage()).toEqual([
      ["10:00:00", "10:10:00", "lost", "aged out"],
      ["10:10:00", "10:20:00", "rows", null],
      ["10:20:00", "10:25:00", "empty", "not found"],
      ["10:25:00", "10:30:00", "empty", "no records"],
      ["10:30:00", "10:40:00", "rows", null],
      ["10:45:00", "11:59:00", "rows", null],
    ]);
    const live = "SELECT count(*) AS n, min(time) AS since FROM index_ticks WHERE source = 'live'";
    expect(query(live)).toEqual([{ n: 12, since: "2026-03-01T10:40:00.000000Z" }]);
    // The same again, then with other prices.
    expect(commit(servedPage(rows, ranges)).written).toMatchObject({ inserted: 0, unchanged: 200 });
    const repriced = rows.map(({ ts }) => ({ ts, price: "7" }));
    expect(commit(servedPage(repriced, ranges)).written).toMatchObject({ changed: 200, unchanged: 0 });
    // What REST has confirmed meanwhile outranks an open range.
    commit(tickPage(rows));
    expect(commit(servedPage(repriced, ranges)).written).toMatchObject({ changed: 188, outranked: 12 });
  });

  it("takes away the rows that it lacks where its ledger is covered, and nowhere else", () => {
    const { commit, query, coverage } = openPages();
    commit(tickPage(allRows));
    const lacking = [
      ["10:05:00", "10:05:30"],
      ["10:15:00", "10:15:30"],
      ["10:25:00", "10:25:30"],
      ["10:35:00", "10:35:30"],
    ] as [string, string][];
    const rows = without(...lacking);
    const ranges = [
      range("lost", "10:05:00", "10:06:00", "aged out"),
      range("empty", "10:15:00", "10:15:30"),
      range("open", "10:25:00", "10:26:00"),
    ];
    expect(commit(servedPage(rows, ranges))).toMatchObject({ withdrawn: 2, pending: [], believed: [] });
    expect(query("SELECT substr(time, 12, 8) AS time FROM revisions ORDER BY 1")).toEqual([
      { time: "10:15:00" },
      { time: "10:35:00" },
    ]);
    expect(coverage()).toEqual([
      ["10:00:00", "10:15:00", "rows", null],
      ["10:15:00", "10:15:30", "empty", "no records"],
      ["10:15:30", "12:00:00", "rows", null],
    ]);
  });

  it("makes lost what is lost for the sender, even if rows of it are stored here without proof", () => {
    const { commit, coverage, warehouse } = openPages();
    warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(at("10:05:00"), "1")], "live"));
    const rows = without(["10:05:00", "10:06:00"]);
    commit(servedPage(rows, [range("lost", "10:05:00", "10:06:00", "aged out")]));
    expect(coverage()[1]).toEqual(["10:05:00", "10:06:00", "lost", "aged out"]);
  });

  it("does not take away many rows before the sender has repeated it", () => {
    const { commit, coverage } = openPages();
    commit(tickPage(allRows));
    const page = () =>
      servedPage(without(["10:30:00", "11:30:00"]), [
        range("empty", "10:30:00", "11:30:00", "nothing listed"),
      ]);
    expect(commit(page(), { confirmation: { answers: 2, over: 0 } })).toMatchObject({
      withdrawn: 0,
      pending: [{ rows: 120, answers: 1 }],
      believed: [],
    });
    // The rows are still there, so the range is open, not empty.
    const [below, above] = coverage();
    expect([below, above]).toEqual([
      ["10:00:00", expect.stringMatching(/^10:(29|30)/) as string, "rows", null],
      [expect.stringMatching(/^11:(29|30)/) as string, "12:00:00", "rows", null],
    ]);
    expect(commit(page(), { confirmation: { answers: 2, over: 0 } })).toMatchObject({
      withdrawn: 120,
      pending: [],
      believed: [{ rows: 120, answers: 2 }],
    });
    expect(coverage()).toEqual([
      ["10:00:00", "10:30:00", "rows", null],
      ["10:30:00", "11:30:00", "empty", "nothing listed"],
      ["11:30:00", "12:00:00", "rows", null],
    ]);
  });

  it("shows up to where the sender has proven the head", () => {
    const { commit, warehouse } = openPages();
    const key = { stream: "index_ticks", series: 1 } as const;
    const publishedTo = (ranges: AnnouncedRange[], more: Parameters<typeof commit>[1] = {}) => {
      warehouse.connection.database.exec("DELETE FROM publications");
      const body = servedPage(allRows, ranges, { asOf: at("12:05:00") / 1000 });
      commit(body, { isHead: true, ...more });
      return readPublication(warehouse.connection, key);
    };
    const shown = { askedAt: at("12:05:00"), askedTo: gap.to, quietMargin: 0 };
    expect(publishedTo([])).toEqual({ ...shown, publishedTo: gap.to });
    expect(publishedTo([range("open", "11:50:00", "12:00:00")])).toEqual({
      ...shown,
      publishedTo: at("11:50:00"),
    });
    // Open ranges below or above the end of the request, and other ones, are not the head.
    const others = [
      range("open", "11:00:00", "11:59:59"),
      range("open", "12:30:00", "13:00:00"),
      range("lost", "11:55:00", "13:00:00", "aged out"),
    ];
    expect(publishedTo(others)).toEqual({ ...shown, publishedTo: gap.to });
    expect(publishedTo([], { isHead: false })).toBeUndefined();
    expect(publishedTo([], { position: { gap, provenFrom: gap.to - 1 } })).toBeUndefined();
  });

  it("proves nothing from a cache, or above its oldest record", () => {
    const { commit, coverage, query } = openPages();
    const open = [range("open", "11:00:00", "11:30:00")];
    expect(commit(servedPage(allRows, open, { ageMs: 60_000 }))).toMatchObject({
      proven: undefined,
      isComplete: false,
      alarm: undefined,
    });
    expect(query("SELECT DISTINCT source FROM index_ticks")).toEqual([{ source: "live" }]);
    const newer = { ...tickPage(makeTicks(gap.to, gap.to + 60 * SECOND), "more") };
    expect(commit({ ...newer, announced: { windowStart: undefined, ranges: [] } })).toMatchObject({
      proven: undefined,
      isComplete: false,
    });
    expect(coverage()).toEqual([]);
  });

  it("does not undo a page that was requested later", () => {
    const { commit, query, coverage } = openPages();
    commit(servedPage(allRows, [], { requestedAt: 2 }));
    commit(servedPage(without(["11:00:00", "11:00:30"]), [], { requestedAt: 1 }));
    expect(query("SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: allRows.length }]);
    expect(coverage()).toEqual([["10:00:00", "12:00:00", "rows", null]]);
  });

  it("of bars, which have no live feed, has no unconfirmed rows: it replaces what is stored", () => {
    const { commit, query } = openPages();
    const [DAY, today] = [86_400 * SECOND, at("00:00:00")];
    const commitBars = (close: string) => {
      const content = ["2026-02-28", "2026-02-27"].map((day) => ({
        ...{ id: day, indexId: btc.indexId, indexType: "GWA", open: "1", high: "9", low: "1", close },
        ...{ volume: "5", startTimestamp: `${day}T00:00:00Z`, endTimestamp: `${day}T23:59:59.999Z` },
      }));
      const ranges = [{ state: "open", from: today - DAY, to: today, reason: null }] as const;
      const gap = { from: today - 2 * DAY, to: today };
      commit(
        { ...jsonBody({ content }), announced: { windowStart: undefined, ranges } },
        {
          series: { ...btc, stream: "ohlcv" },
          position: { gap, provenFrom: today },
          rules: { ...onlyPage.rules, period: DAY },
        },
      );
    };
    for (const close of ["2", "3"]) {
      commitBars(close);
      expect(query("SELECT close FROM ohlcv")).toEqual([{ close: Number(close) }, { close: Number(close) }]);
    }
    expect(query("SELECT substr(to_time, 1, 10) AS until FROM coverage")).toEqual([{ until: "2026-02-28" }]);
  });
});
