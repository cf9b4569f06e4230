import { describe, expect, it } from "vitest";
import { commitLostRanges } from "../../../src/ingest/commit/targets.ts";
import { commitNotFound } from "../../../src/ingest/commit/walk-page.ts";
import { coverageSql, gap, onlyPage, wholeCoverage } from "../../support/ingest/ingest-harness.ts";
import { openPages } from "../../support/ingest/open-pages.ts";
import {
  at,
  jsonBody,
  liveMessage,
  makeTicks,
  SECOND,
  tickPage,
  tickRecord,
} from "../../support/ingest/pages.ts";
import { tick } from "../../support/warehouse/records.ts";
import { storeTicks, writeTicks } from "../../support/warehouse/write-records.ts";

it("H11: a page with records from the future proves its range, even if most of its records are from the future", () => {
  const { commit, query } = openPages();
  const ahead = makeTicks(at("13:00:00"), at("16:00:00"));
  const page = { ...tickPage([...ahead, ...makeTicks(gap.from, gap.to)]), asOf: at("12:02:00") / 1000 };
  expect(commit(page)).toMatchObject({ rejected: ahead.length, alarm: undefined, isComplete: true });
  expect(query(coverageSql)).toEqual(wholeCoverage);
  expect(query("SELECT max(time) AS newest FROM index_ticks")).toEqual([
    { newest: "2026-03-01T11:59:30.000000Z" },
  ]);
  // One period ahead is not the future: a record may be stamped at the end of its period.
  const head = { from: gap.to, to: at("13:00:00") };
  const next = { ...tickPage([{ ts: at("13:05:00") }]), asOf: at("13:00:00") / 1000 };
  commit(next, { position: { gap: head, provenFrom: head.to } });
  expect(query("SELECT count(*) AS n FROM index_ticks WHERE time LIKE '%13:05:00%'")).toEqual([{ n: 1 }]);
});

describe("a page that has a live tick at a slightly other moment", () => {
  it("H4: replaces the preview, and withdraws a second one into revisions", () => {
    const { commit, query, receive } = openPages();
    const [tick] = makeTicks(at("11:00:00"), at("11:00:30"));
    if (!tick) throw new Error("no tick");
    const live = [{ ts: tick.ts + 137_000 }, { ts: tick.ts + 3 * SECOND }];
    receive(...live.map(liveMessage));
    const result = commit(tickPage(makeTicks(gap.from, gap.to)));
    expect(result).toMatchObject({ isComplete: true, withdrawn: 1, learnedOffset: 137_000 });
    expect(query("SELECT ts FROM revisions")).toEqual([{ ts: tick.ts + 3 * SECOND }]);
    expect(query("SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 240 }]);
  });

  it("H4: tells the offset once, and forgets it when the websocket agrees with REST", () => {
    const { commit, query, receive } = openPages();
    const offset = () => query("SELECT live_offset FROM stream_states")[0]?.live_offset;
    const confirm = (from: string, to: string, skew: number) => {
      const range = { from: at(from), to: at(to) };
      const ticks = makeTicks(range.from, range.to);
      receive(...ticks.map(({ ts }) => liveMessage({ ts: ts + skew })));
      const position = { gap: range, provenFrom: range.to };
      const below = makeTicks(range.from - 60 * SECOND, range.to);
      return commit(tickPage(below, "more"), { position });
    };
    expect(confirm("10:00:00", "10:10:00", 137_000)).toMatchObject({ learnedOffset: 137_000 });
    expect(confirm("10:10:00", "10:20:00", 150_000)).toMatchObject({ learnedOffset: undefined });
    expect(offset()).toBe(137_000);
    expect(confirm("10:20:00", "10:30:00", 0)).toMatchObject({ learnedOffset: undefined });
    expect(offset()).toBeNull();
    expect(query("SELECT * FROM revisions")).toEqual([]);
  });
});

it("H5: a pending withdrawal ends when its range leaves the window, or the index is not found", () => {
  for (const end of ["aged out", "not found"]) {
    const { commit, query, warehouse } = openPages();
    const rows = makeTicks(gap.from, gap.to);
    const page = { ...onlyPage, confirmation: { answers: 2, over: 0 } };
    commit(tickPage(rows), page);
    const result = commit(tickPage(rows.toSpliced(100, 100)), page);
    expect(result).toMatchObject({ pending: [{ kind: "withdrawn", rows: 100 }] });
    const key = { stream: "index_ticks", series: 1 } as const;
    if (end === "aged out") {
      const lost = {
        ...{ key, indexType: "GWA", indexId: "btc-id", name: "BTC", open: [], missing: [], unpublished: [] },
        ...{ unconfirmed: [], unconfirmedReason: "", claims: [], blockedReason: null },
        ...{ agedOut: [gap], serviceWindow: 1 },
      };
      warehouse.transaction((t) => commitLostRanges(t, [lost]));
    } else {
      const { timing } = onlyPage;
      const answer = { key, indexType: "GWA", range: gap, timing, confirmation: { answers: 1, over: 0 } };
      warehouse.transaction((t) => commitNotFound(t, answer));
    }
    expect(query("SELECT kind FROM pending_claims WHERE accepted_at IS NULL")).toEqual([]);
  }
});

describe("a page of a walk", () => {
  it("counts the records of its proven range that were not stored, if asked to", () => {
    const { commit } = openPages();
    const rows = makeTicks(gap.from, gap.to);
    commit(tickPage(rows.filter(({ ts }) => ts !== at("11:00:00") && ts !== at("11:30:00"))));
    const half = { from: at("11:15:00"), to: gap.to };
    const position = { gap: half, provenFrom: half.to };
    expect(commit(tickPage(rows, "more"), { position, shouldCountMissing: true }).missing).toBe(1);
    expect(commit(tickPage(rows, "more"), { position, shouldCountMissing: true }).missing).toBe(0);
    const { commit: commitElsewhere } = openPages();
    expect(commitElsewhere(tickPage(rows, "more")).missing).toBe(0);
  });

  it("stores what it could not read or does not know, with its request", () => {
    const { commit, query } = openPages();
    const [first = {}, ...rest] = makeTicks(gap.from, gap.to).map(tickRecord);
    const content = [{ ...first, timestamp: "yesterday" }, ...rest.map((record) => ({ ...record, flag: 1 }))];
    expect(commit(jsonBody({ content }))).toMatchObject({ rejected: 1, written: { inserted: 239 } });
    expect(query("SELECT stream, request FROM rejects")).toEqual([
      { stream: "index_ticks", request: "GET /index-ticker" },
    ]);
    expect(query("SELECT name, count FROM unknown_fields")).toEqual([{ name: "flag", count: 239 }]);
  });

  it("that is empty settles the oldest row of the page before, which is stored", () => {
    const { commit, coverage } = openPages();
    commit(tickPage(makeTicks(at("11:00:00"), gap.to), "more"));
    const position = { gap, provenFrom: at("11:00:00") + 1 };
    expect(commit(tickPage([]), { position })).toMatchObject({ withdrawn: 0, isComplete: true });
    expect(coverage()).toEqual([
      ["10:00:00", "11:00:00", "empty", "nothing older"],
      ["11:00:00", "12:00:00", "rows", null],
    ]);
  });

  it("proves its range if at most half of its records are unreadable", () => {
    const { commit } = openPages();
    const readable = makeTicks(gap.from, gap.to).map(tickRecord);
    const unreadable = readable.map((record) => ({ ...record, timestamp: "yesterday" }));
    const alarmOf = (content: object[]) => commit(jsonBody({ content })).alarm;
    expect(alarmOf([...unreadable, ...readable])).toBeUndefined();
    expect(alarmOf([...unreadable, ...readable.slice(1)])).toBe("mass_rejection");
  });
});

describe("live ticks above the newest record of a page", () => {
  /** Where the range ends that a page with records up to 11:50:00 proves, in microseconds after that. */
  function provenTo(liveAt: number, { asOf = "12:01:00", isFirst = true }) {
    const newest = "11:50:00";
    const { commit, warehouse } = openPages();
    storeTicks(warehouse, [tick(at(newest) + liveAt, "1")], "live");
    const rows = makeTicks(gap.from - 30 * SECOND, at(newest) + 1);
    const position = isFirst ? { gap, provenFrom: gap.to } : { gap, provenFrom: at("11:55:00") };
    const body = { ...tickPage(rows, "more"), asOf: at(asOf) / 1000 };
    const { proven } = commit(body, { position });
    return proven && proven.to - at(newest);
  }

  // Up to a quarter of the settle delay after it, a tick is that record, stamped by another clock.
  it.each([
    ["is that record", 15 * SECOND, {}, 30 * SECOND],
    ["is not in REST yet: the page proves only up to that record", 15 * SECOND + 1, {}, 1],
    ["at the end of what it proves is not in REST either", 29 * SECOND, {}, 1],
    ["above that proves nothing", 30 * SECOND, {}, 30 * SECOND],
    ["counts for an hour", 20 * SECOND, { asOf: "12:50:19" }, 1],
    ["does not count for longer", 20 * SECOND, { asOf: "12:50:20" }, 30 * SECOND],
    ["counts on the first page of a walk only", 20 * SECOND, { isFirst: false }, 300 * SECOND],
  ])("%s", (_, liveAt, more, proven) => {
    expect(provenTo(liveAt, more)).toBe(proven);
  });

  it("leave nothing proven of a page without records", () => {
    const { commit, warehouse, coverage } = openPages();
    warehouse.transaction((t) => {
      writeTicks(t, [tick(at("12:30:00"), "1")]);
      writeTicks(t, [tick(at("11:50:00"), "1")], "live");
    });
    const commitEmpty = (asOf: string) => commit({ ...tickPage([]), asOf: at(asOf) / 1000 });
    expect(commitEmpty("12:31:00")).toMatchObject({ withdrawn: 0, pending: [] });
    expect(coverage()).toEqual([]);
    expect(commitEmpty("12:51:00")).toMatchObject({ withdrawn: 1, pending: [] });
    expect(coverage()).toEqual([["10:00:00", "12:00:00", "empty", "nothing older"]]);
  });
});

it("a walk whose pages contradict each other loses what its earlier pages proved, and proves nothing", () => {
  const { commit, coverage } = openPages();
  const swapped = commit(tickPage(makeTicks(at("10:30:00"), at("11:00:00")), "more"));
  expect(coverage()).toHaveLength(1);
  const position = { gap, provenFrom: swapped.proven?.from ?? 0 };
  const nothing = { proven: undefined, isComplete: false, isUnpublished: false, hasReopened: false };
  expect(commit(tickPage(makeTicks(at("11:00:00"), gap.to), "more"), { position })).toMatchObject({
    alarm: "newer_than_proven",
    ...nothing,
  });
  expect(coverage()).toEqual([]);
  const disordered = makeTicks(gap.from, gap.to).reverse();
  expect(commit(tickPage(disordered))).toMatchObject({ alarm: "disordered", ...nothing });
});

describe("a page of the head", () => {
  const headTo = (to: string) => {
    const head = { from: gap.from, to: at(to) };
    return { isHead: true, position: { gap: head, provenFrom: head.to } };
  };
  const madeAt = (time: string, rows: ReturnType<typeof makeTicks>) => ({
    ...tickPage(rows, "more"),
    asOf: at(time) / 1000,
  });
  const lateBy = "SELECT late_by / 1000000 AS seconds FROM stream_states";
  const asked = "SELECT asked_at AS at, published_to AS shown FROM publications";

  it("shows which records are late, and claims less from then on", () => {
    const { commit, query } = openPages();
    const rows = makeTicks(gap.from - 30 * SECOND, at("12:05:00"));
    const first = rows.filter(({ ts }) => ts < gap.to && ts !== at("11:50:00"));
    expect(commit(madeAt("12:01:00", first), headTo("12:00:00"))).toMatchObject({
      proven: gap,
      isUnpublished: false,
    });
    expect(query(lateBy)).toEqual([{ seconds: 0 }]);
    expect(query(asked)).toEqual([{ at: at("12:01:00"), shown: gap.to }]);
    // The lateness at most doubles the settle delay of a minute.
    const second = commit(madeAt("12:06:00", rows), headTo("12:05:00"));
    expect(query(lateBy)).toEqual([{ seconds: 120 }]);
    expect(second).toMatchObject({ proven: { to: at("12:04:05") }, isComplete: true, isUnpublished: false });
  });

  it("is the only one that shows late records: not a lower page, a later one of the walk, or a cache", () => {
    const rows = makeTicks(gap.from - 30 * SECOND, at("12:05:00"));
    const first = rows.filter(({ ts }) => ts < gap.to && ts !== at("11:50:00"));
    const { isHead, position } = headTo("12:05:00");
    const lateAfter = (more: object, ageMs = 0) => {
      const { commit, query } = openPages();
      commit(madeAt("12:01:00", first), headTo("12:00:00"));
      commit({ ...madeAt("12:06:00", rows), ageMs }, { isHead, position, ...more });
      return query(lateBy)[0]?.seconds;
    };
    const later = { position: { ...position, provenFrom: at("12:04:59") } };
    const others = [lateAfter({ isHead: false }), lateAfter(later), lateAfter({}, 60_000)];
    expect([lateAfter({}), ...others]).toEqual([120, 0, 0, 0]);
  });

  it("is not shown by a later page of the walk, nor by a cache", () => {
    const { commit, query } = openPages();
    const rows = makeTicks(gap.from - 30 * SECOND, gap.to);
    const { position } = headTo("12:00:00");
    const later = { isHead: true, position: { ...position, provenFrom: gap.to - SECOND } };
    commit(madeAt("12:01:00", rows), later);
    expect(query(asked)).toEqual([]);
    commit({ ...madeAt("12:01:00", rows), ageMs: 60_000 }, headTo("12:00:00"));
    expect(query(asked).map(({ at }) => at)).not.toContain(at("12:01:00"));
    commit(madeAt("12:02:00", rows), headTo("12:00:00"));
    expect(query(asked)).toEqual([{ at: at("12:02:00"), shown: gap.to }]);
  });

  it("is complete, but unpublished, if REST has not shown all of it", () => {
    const { commit } = openPages();
    const rows = makeTicks(gap.from - 30 * SECOND, at("11:50:00"));
    expect(commit(madeAt("12:01:00", rows), headTo("12:00:00"))).toMatchObject({
      proven: { from: gap.from, to: at("11:50:00") },
      isComplete: true,
      isUnpublished: true,
    });
    // Made before the end of the gap, it does not even ask for all of it.
    expect(commit(madeAt("11:55:00", rows), headTo("12:00:00"))).toMatchObject({ isComplete: false });
  });
});

it("H14: an end of the history that is in doubt stands while pages of other gaps agree, until a page has an older record", () => {
  const { commit, query } = openPages();
  const rows = makeTicks(at("10:00:00"), gap.to);
  const from = (time: string) => rows.filter(({ ts }) => ts >= at(time));
  const over = (since: string, until: string) => {
    const part = { from: at(since), to: at(until) };
    return { position: { gap: part, provenFrom: part.to }, confirmation: { answers: 3, over: 0 } };
  };
  const answers = () => query("SELECT answers, to_ts AS until FROM pending_claims");
  const oldest = rows.filter(({ ts }) => ts < at("11:00:00"));
  commit(tickPage(oldest, "more"), over("10:00:00", "11:00:00"));
  expect(commit(tickPage(from("11:30:00")), over("11:00:00", "12:00:00"))).toMatchObject({
    pending: [{ kind: "end moved", answers: 1 }],
    proven: { from: at("11:30:00") + 1, to: gap.to },
  });
  commit(tickPage([]), over("11:00:00", "11:10:00"));
  expect(answers()).toEqual([{ answers: 2, until: at("11:30:00") + 1 }]);
  // This page has a single record, just below the end of its gap, and proves nothing above it: the end was wrong.
  const single = commit(tickPage([{ ts: at("11:20:00") - 1 }]), over("11:00:00", "11:20:00"));
  expect(single).toMatchObject({ pending: [{ answers: 1 }], proven: undefined });
  expect(answers()).toEqual([{ answers: 1, until: at("11:20:00") }]);
  // A page without records shows no older one.
  commit(tickPage([], "more"), over("11:00:00", "11:15:00"));
  expect(answers()).toHaveLength(1);
  // This one reaches below the end, though its gap is above it.
  commit(tickPage(from("11:05:00"), "more"), over("11:40:00", "12:00:00"));
  expect(answers()).toEqual([]);
});

it("a page that lacks many stored rows settles what lies between its own records, and the rest once it is believed", () => {
  const { commit, coverage } = openPages();
  const rows = makeTicks(gap.from, gap.to);
  const lacking = rows.toSpliced(100, 100);
  commit(tickPage(rows));
  const confirmation = { answers: 2, over: 0 };
  const pending = { withdrawn: 0, pending: [{ rows: 100 }], believed: [] };
  expect(commit(tickPage(lacking), { confirmation })).toMatchObject(pending);
  expect(coverage()).toHaveLength(2);
  const believed = { withdrawn: 100, pending: [], believed: [{ rows: 100 }] };
  expect(commit(tickPage(lacking), { confirmation })).toMatchObject(believed);
  expect(coverage()).toEqual([
    ["10:00:00", "10:20:00", "rows", null],
    ["10:20:00", "11:10:00", "empty", "no records"],
    ["11:10:00", "12:00:00", "rows", null],
  ]);
});

it("B16: a page from a cache without a record in its gap settles nothing: the records may have come since", () => {
  const { commit, coverage, warehouse } = openPages();
  storeTicks(warehouse, [tick(at("12:30:00"), "1")]);
  const hour = { from: at("11:00:00"), to: gap.to };
  const position = { gap: hour, provenFrom: hour.to };
  const below = tickPage(makeTicks(at("10:00:00"), hour.from), "more");
  const nothing = { proven: undefined, isComplete: false };
  expect(commit({ ...below, ageMs: 60_000 }, { position })).toMatchObject(nothing);
  expect(coverage()).toEqual([]);
  expect(commit(below, { position })).toMatchObject({ proven: hour, isComplete: true });
  expect(coverage()).toEqual([["11:00:00", "12:00:00", "empty", "no records"]]);
});
