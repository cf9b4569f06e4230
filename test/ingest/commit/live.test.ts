import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import {
  commitLiveFeedChange,
  commitLiveMessages,
  type LiveFeedChange,
  LiveState,
} from "../../../src/ingest/commit/live.ts";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { at, exchangeMessage, liveMessage, tickRecord } from "../../support/ingest/pages.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";
import { storeTicks } from "../../support/warehouse/write-records.ts";

const cadence = 30 * MICROS_PER_SECOND;

/** A warehouse that receives live messages at 12:10, after this change of the feed. */
function openLive(first?: LiveFeedChange) {
  const warehouse = openTestWarehouse({ clock: new ManualClock("2026-03-01T12:10:00Z") });
  const live = new LiveState();
  const change = (next: LiveFeedChange) => commitLiveFeedChange(warehouse, live, next);
  if (first) change({ isReset: true, cadence, markets: null, ...first });
  const query = (sql: string) => queryRows(warehouse, sql);
  const rows = (sql: string) => query(sql).map((row) => Object.values(row));
  return {
    warehouse,
    live,
    change,
    query,
    receive: (...messages: string[]) => commitLiveMessages(warehouse, live, messages),
    /** Another connection holds the write lock until it is closed. */
    takeWriteLock: () => {
      warehouse.connection.database.pragma("busy_timeout = 0");
      return new Database(warehouse.path).exec("BEGIN IMMEDIATE");
    },
    execute: (sql: string) => void warehouse.connection.database.exec(sql),
    spans: () => rows("SELECT index_type, index_id, from_ts, to_ts FROM live_spans ORDER BY 1, 2"),
    covered: () =>
      rows("SELECT index_id, substr(from_time, 12, 8), substr(to_time, 12, 8) FROM coverage ORDER BY 1, 2"),
    proofs: () => rows("SELECT substr(from_time, 12, 8), proof, reason FROM coverage ORDER BY 1"),
    ticks: () => rows("SELECT exchange_id, market_id FROM exchange_ticks ORDER BY ts, 1, 2"),
  };
}

it("a batch of messages is stored by what each of them is", () => {
  const { receive, query } = openLive();
  const result = receive(
    liveMessage({ ts: at("12:00:00") }),
    liveMessage({ ts: at("12:00:30") }),
    exchangeMessage("12:00:31"),
    JSON.stringify({ event: "INDEX_TICKER", ...tickRecord({ ts: 0 }), timestamp: "now", price: "5" }),
    exchangeMessage("12:00:32", { exchangeId: null }),
    exchangeMessage("12:00:33", { marketId: null }),
    '{"event":"TRADE","id":1}',
    '{"event":"TRADE","id":2}',
  );
  expect(result).toMatchObject({
    indexTicks: { inserted: 2 },
    exchangeTicks: { inserted: 1 },
    rejected: 3,
    unknownEvents: 2,
    newest: at("12:00:31"),
    skippedTicks: [],
  });
  const sources = query("SELECT source FROM index_ticks UNION ALL SELECT source FROM exchange_ticks");
  expect(sources).toEqual(Array(3).fill({ source: "live" }));
  expect(query("SELECT stream, request, count(*) AS rejects FROM rejects GROUP BY 1, 2 ORDER BY 1")).toEqual([
    { stream: "exchange_ticks", request: null, rejects: 2 },
    { stream: "index_ticks", request: null, rejects: 1 },
  ]);
  expect(query("SELECT name, count, sample FROM unknown_events")).toEqual([
    { name: "TRADE", count: 2, sample: '{"event":"TRADE","id":1}' },
  ]);
});

it("the newest tick of a batch may be the first, of either stream, or none", () => {
  const { receive } = openLive();
  expect(receive(liveMessage({ ts: at("12:05:00") }), exchangeMessage("12:01:00")).newest).toBe(
    at("12:05:00"),
  );
  expect(receive(exchangeMessage("12:06:00"), exchangeMessage("12:05:59")).newest).toBe(at("12:06:00"));
  expect(receive('{"event":"TRADE"}').newest).toBeUndefined();
});

it("properties that this version does not know are counted for their stream", () => {
  const { receive, query } = openLive();
  receive(
    JSON.stringify({ ...JSON.parse(liveMessage({ ts: at("12:00:00") })), shiny: 1 }),
    exchangeMessage("12:00:00", { dull: true }),
  );
  expect(query('SELECT "where" AS stream, name FROM unknown_fields ORDER BY 1')).toEqual([
    { stream: "exchange_ticks", name: "dull" },
    { stream: "index_ticks", name: "shiny" },
  ]);
});

it("a tick from the future extends no live span and shows no skipped tick", () => {
  const { receive, change, query } = openLive();
  change({ startedSpans: [{ indexType: "GWA", from: at("12:00:00") }], cadence: 30 * MICROS_PER_SECOND });
  const spanEnd = () => query("SELECT to_ts FROM live_spans")[0]?.to_ts;
  // The service's clock may differ by ten seconds.
  receive(liveMessage({ ts: at("12:10:10") }));
  expect(spanEnd()).toBe(at("12:10:10"));
  const ahead = receive(liveMessage({ ts: at("12:10:10") + 1 }), liveMessage({ ts: at("12:20:00") }));
  expect(ahead.skippedTicks).toEqual([]);
  expect(spanEnd()).toBe(at("12:10:10"));
});

it("a longer step than usual is reported at the next tick, unless a late tick fills it", () => {
  const { receive } = openLive();
  const skips = (...times: string[]) =>
    receive(...times.map((time) => liveMessage({ ts: at(time) }))).skippedTicks.map(({ after, at: end }) => [
      (after - at("12:00:00")) / MICROS_PER_SECOND,
      (end - at("12:00:00")) / MICROS_PER_SECOND,
    ]);
  // Up to one and a half periods is jitter.
  expect(skips("12:00:00", "12:00:45", "12:01:15")).toEqual([]);
  expect(skips("12:02:15")).toEqual([]);
  expect(skips("12:02:45")).toEqual([[75, 135]]);
  // A late tick in the middle fills the step; one at its edge does not.
  expect(skips("12:03:45", "12:03:15", "12:04:15")).toEqual([]);
  expect(skips("12:05:15", "12:05:15", "12:04:15", "12:05:45")).toEqual([[255, 315]]);
  // What a late tick leaves open is still reported, on either side of it.
  expect(skips("12:07:15", "12:06:15", "12:07:45")).toEqual([[375, 435]]);
  expect(skips("12:09:15", "12:08:45", "12:09:45")).toEqual([[465, 525]]);
});

it("a repeated or much older tick changes nothing about a step", () => {
  const { receive } = openLive();
  const skips = (time: string) => receive(liveMessage({ ts: at(time) })).skippedTicks;
  // Late, when no step is pending.
  expect([skips("12:01:00"), skips("12:00:30")]).toEqual([[], []]);
  expect([skips("12:02:00"), skips("12:02:00"), skips("12:00:45")]).toEqual([[], [], []]);
  expect(skips("12:02:30")).toMatchObject([{ after: at("12:01:00"), at: at("12:02:00") }]);
});

it("ticks of other indices are no successors", () => {
  const { receive } = openLive();
  const tick = (time: string, indexId: string) => liveMessage({ ts: at(time), indexId });
  receive(tick("12:00:00", "btc"), tick("12:01:30", "eth"), tick("12:00:30", "btc"), tick("12:02:00", "eth"));
  const typed = (time: string, indexType: string) =>
    JSON.stringify({ ...JSON.parse(tick(time, "btc")), indexType });
  expect(receive(typed("12:05:00", "MWA"), typed("12:05:30", "MWA")).skippedTicks).toEqual([]);
  expect(receive(tick("12:02:30", "btc"), tick("12:03:00", "btc")).skippedTicks).toEqual([
    { indexType: "GWA", indexId: "btc", after: at("12:00:30"), at: at("12:02:30") },
  ]);
});

it("a tick from more than a period and the clocks' difference ahead is rejected as received", () => {
  const { receive, query } = openLive();
  // The clock stands at 12:10:00; a period has 30 seconds, and clocks may differ by ten.
  const latest = at("12:10:40");
  const ahead = liveMessage({ ts: latest + 1 });
  const others = [exchangeMessage("12:10:40"), exchangeMessage("12:10:40.000001")];
  const inserted = { indexTicks: { inserted: 1 }, exchangeTicks: { inserted: 1 } };
  const result = receive(liveMessage({ ts: latest }), ahead, ...others);
  expect(result).toMatchObject({ ...inserted, rejected: 2, newest: latest });
  expect(receive(ahead)).toMatchObject({ indexTicks: { inserted: 0 }, rejected: 1 });
  expect(query("SELECT stream, raw FROM rejects ORDER BY 1 DESC")).toEqual([
    { stream: "index_ticks", raw: ahead },
    { stream: "exchange_ticks", raw: exchangeMessage("12:10:40.000001") },
  ]);
});

it("the newest tick of each index is known", () => {
  const { receive, live } = openLive();
  expect(live.skips.listNewestTicks()).toEqual([]);
  for (const indexId of ["btc", "eth"]) receive(liveMessage({ ts: at("12:01:00"), indexId }));
  receive(liveMessage({ ts: at("12:02:00"), indexId: "eth" }));
  receive(liveMessage({ ts: at("12:01:30"), indexId: "eth" }));
  expect(live.skips.listNewestTicks()).toEqual([
    { indexType: "GWA", indexId: "btc", ts: at("12:01:00") },
    { indexType: "GWA", indexId: "eth", ts: at("12:02:00") },
  ]);
});

it("a tick within half a period of a REST row is that row, stamped by another clock", () => {
  const { receive, warehouse, query } = openLive();
  storeTicks(warehouse, [tick(at("12:00:00"), "1")]);
  receive(liveMessage({ ts: at("12:00:14") }));
  receive(liveMessage({ ts: at("12:00:16") }));
  expect(query("SELECT substr(time, 12, 8) AS time FROM index_ticks ORDER BY ts")).toEqual([
    { time: "12:00:00" },
    { time: "12:00:16" },
  ]);
});

const indexTick = (indexType: string, indexId: string, time: string) =>
  JSON.stringify({ event: "INDEX_TICKER", ...tickRecord({ ts: at(time), indexId }), indexType });
const exchangeTick = (exchangeId: string, marketId: string, time: string) =>
  exchangeMessage(time, { exchangeId, marketId });

describe("live ticks", () => {
  it("extend the live span of their own subscription, except ticks from the future", () => {
    const live = openLive({
      startedSpans: [
        { indexType: "GWA", indexId: "btc", from: at("12:00:00") },
        { indexType: "GWA", indexId: "eth", from: at("12:01:00") },
        { indexType: "LX", from: at("12:00:00") },
        { indexType: "MWA", from: at("12:00:00") },
      ],
    });
    live.receive(indexTick("GWA", "btc", "12:05:00"), indexTick("GWA", "btc", "12:04:30"));
    live.receive(indexTick("MWA", "btc", "12:05:00"), indexTick("MWA", "eth", "12:05:30"));
    live.receive(indexTick("LX", "blx", "12:30:00"));
    expect(live.spans()).toEqual([
      ["GWA", "btc", at("12:00:00"), at("12:05:00")],
      ["GWA", "eth", at("12:01:00"), at("12:01:00")],
      ["LX", "", at("12:00:00"), at("12:00:00")],
      // The ticks of any of its indices are its own.
      ["MWA", "", at("12:00:00"), at("12:05:30")],
    ]);
    live.change({
      endedSpans: [{ indexType: "GWA", indexId: "btc" }],
      startedSpans: [{ indexType: "LX", from: at("12:06:00") }],
    });
    expect(live.spans().map(([, id, from]) => [id, from])).toEqual([
      ["eth", at("12:01:00")],
      ["", at("12:06:00")],
      ["", at("12:00:00")],
    ]);
  });

  it("of an exchange settle their period at the first tick of the next one, if all its subscriptions are live", () => {
    const live = openLive({ exchanges: [{ exchangeId: "kraken", since: at("12:00:10") }] });
    live.receive(exchangeTick("kraken", "btc", "12:00:00"), exchangeTick("kraken", "btc", "12:00:31"));
    live.receive(exchangeTick("kraken", "eth", "12:00:32"), exchangeTick("offline", "btc", "12:00:30"));
    live.receive(exchangeTick("kraken", "btc", "12:01:00"), exchangeTick("kraken", "btc", "12:40:00"));
    // ETH has not ticked in the last period.
    expect(live.covered()).toEqual([["kraken", "12:00:30", "12:01:00"]]);
    live.receive(exchangeTick("kraken", "btc", "12:01:30"), exchangeTick("kraken", "eth", "12:01:31"));
    live.receive(exchangeTick("kraken", "btc", "12:02:00"));
    expect(live.covered()).toEqual([["kraken", "12:00:30", "12:02:00"]]);
    // Ticks were missed: the period of the resubscription is incomplete.
    live.change({
      exchanges: [{ exchangeId: "kraken", since: at("12:02:40") }],
      missed: [{ exchangeId: "kraken", from: at("12:01:00"), to: at("12:02:10") }],
    });
    live.receive(exchangeTick("kraken", "btc", "12:02:45"), exchangeTick("kraken", "btc", "12:03:00"));
    expect(live.covered()).toEqual([["kraken", "12:00:30", "12:01:00"]]);
    // A disconnect in the middle of a period: it is never settled.
    live.change({ exchanges: [] });
    live.change({ exchanges: [{ exchangeId: "kraken", since: at("12:03:20") }] });
    live.receive(exchangeTick("kraken", "btc", "12:03:29"), exchangeTick("kraken", "btc", "12:03:30"));
    expect(live.covered()).toEqual([["kraken", "12:00:30", "12:01:00"]]);
  });

  it("of every market of the period before settle their period at once: a later disconnect takes nothing from it", () => {
    const live = openLive({ exchanges: [{ exchangeId: null, since: at("12:00:00") }] });
    live.receive(exchangeTick("kraken", "btc", "12:00:00"), exchangeTick("okx", "btc", "12:00:01"));
    live.receive(exchangeTick("kraken", "btc", "12:00:30"), exchangeTick("kraken", "btc", "12:00:31"));
    expect(live.covered()).toEqual([[null, "12:00:00", "12:00:30"]]);
    live.receive(exchangeTick("okx", "btc", "12:00:32"));
    expect(live.covered()).toEqual([[null, "12:00:00", "12:01:00"]]);
    // A new market makes the next period wait for it.
    live.receive(exchangeTick("bitso", "btc", "12:00:33"));
    live.receive(exchangeTick("kraken", "btc", "12:01:00"), exchangeTick("okx", "btc", "12:01:00"));
    expect(live.covered()).toEqual([[null, "12:00:00", "12:01:00"]]);
    live.receive(exchangeTick("bitso", "btc", "12:01:01"));
    expect(live.covered()).toEqual([[null, "12:00:00", "12:01:30"]]);
  });

  it("that cannot be stored are processed again later as if they were new", () => {
    const live = openLive({ exchanges: [{ exchangeId: "kraken", since: at("12:00:00") }] });
    live.receive(exchangeTick("kraken", "btc", "12:00:00"));
    live.receive(exchangeTick("kraken", "btc", "12:00:30"));
    expect(live.covered()).toEqual([["kraken", "12:00:00", "12:01:00"]]);
    const other = live.takeWriteLock();
    expect(() => live.receive(exchangeTick("kraken", "btc", "12:01:00"))).toThrow("write lock");
    other.close();
    live.receive(exchangeTick("kraken", "btc", "12:01:00"));
    expect(live.covered()).toEqual([["kraken", "12:00:00", "12:01:30"]]);
  });

  it("that are lost for good interrupt the feed: no period counts as whole without them", () => {
    const live = openLive({ exchanges: [{ exchangeId: "kraken", since: at("12:00:00") }] });
    live.receive(exchangeTick("kraken", "btc", "12:00:00"), exchangeTick("kraken", "eth", "12:00:00"));
    live.receive(exchangeTick("kraken", "btc", "12:00:30"));
    live.execute(
      "CREATE TRIGGER refuse BEFORE INSERT ON settled_ranges BEGIN SELECT RAISE(ABORT, 'refused'); END",
    );
    expect(() => live.receive(exchangeTick("kraken", "eth", "12:00:30"))).toThrow("refused");
    live.execute("DROP TRIGGER refuse");
    live.receive(exchangeTick("kraken", "btc", "12:00:31"));
    live.receive(exchangeTick("kraken", "btc", "12:01:00"), exchangeTick("kraken", "btc", "12:01:30"));
    expect(live.ticks()).toHaveLength(6);
    expect(live.covered()).toEqual([["kraken", "12:00:00", "12:00:30"]]);
  });

  it("of markets that are not selected are dropped, but settle their period", () => {
    const exchanges = [{ exchangeId: null, since: at("12:00:00") }];
    const live = openLive({ exchanges, markets: new Set(["btc"]) });
    live.receive(exchangeTick("kraken", "btc", "12:00:30"), exchangeTick("kraken", "eth", "12:00:30"));
    live.receive(exchangeTick("okx", "eth", "12:01:00"));
    expect(live.ticks()).toEqual([["kraken", "btc"]]);
    expect(live.covered()).toEqual([[null, "12:00:30", "12:01:00"]]);
    // A period with only such ticks is settled as empty.
    live.receive(exchangeTick("okx", "btc", "12:01:30"), exchangeTick("okx", "eth", "12:01:30"));
    live.receive(exchangeTick("okx", "eth", "12:02:00"));
    expect(live.proofs()).toEqual([
      ["12:00:30", "rows", null],
      ["12:01:00", "empty", "nothing listed"],
      ["12:01:30", "rows", null],
    ]);
  });
});

describe("a change of the feed", () => {
  it("leaves alone what it does not name", () => {
    const live = openLive({
      exchanges: [{ exchangeId: null, since: at("12:00:00") }],
      markets: new Set(["btc"]),
      cadence: 2 * cadence,
      startedSpans: [{ indexType: "LX", from: at("12:00:00") }],
    });
    live.change({});
    live.receive(exchangeTick("kraken", "eth", "12:01:30"), exchangeTick("kraken", "btc", "12:02:00"));
    expect(live.ticks()).toEqual([["kraken", "btc"]]);
    expect(live.covered()).toEqual([[null, "12:01:00", "12:02:00"]]);
    expect(live.spans()).toHaveLength(1);
  });

  it("deletes the live spans of an earlier run if the feed starts", () => {
    const live = openLive({ startedSpans: [{ indexType: "LX", from: at("12:00:00") }] });
    live.change({ isReset: true, startedSpans: [{ indexType: "GWA", from: at("12:01:00") }] });
    expect(live.spans()).toEqual([["GWA", "", at("12:01:00"), at("12:01:00")]]);
  });
});
