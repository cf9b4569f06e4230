import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  commitLiveFeedChange,
  commitLiveMessages,
  type LiveFeedChange,
  LiveState,
} from "../../../src/ingest/commit/live.ts";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { makeEmptyWarehouse } from "../../support/ingest/ingest-harness.ts";
import { at, exchangeMessage, tickRecord } from "../../support/ingest/pages.ts";

const cadence = 30 * MICROS_PER_SECOND;

function createLiveCoverage(change: LiveFeedChange) {
  const clock = { now: () => at("12:10:00") / 1000 };
  const path = makeEmptyWarehouse();
  const warehouse = openWriter(path, { clock });
  onTestFinished(() => warehouse.close());
  const live = new LiveState();
  commitLiveFeedChange(warehouse, live, { isReset: true, cadence, markets: null, ...change });
  const rows = (sql: string) => warehouse.connection.database.prepare(sql).raw().all() as unknown[][];
  return {
    receive: (...messages: string[]) => commitLiveMessages(warehouse, live, messages),
    /** Another connection holds the write lock until it is closed. */
    takeWriteLock: () => {
      warehouse.connection.database.pragma("busy_timeout = 0");
      const other = new Database(path);
      other.exec("BEGIN IMMEDIATE");
      return other;
    },
    execute: (sql: string) => void warehouse.connection.database.exec(sql),
    change: (next: LiveFeedChange) => commitLiveFeedChange(warehouse, live, next),
    spans: () => rows("SELECT index_type, index_id, from_ts, to_ts FROM live_spans ORDER BY 1, 2"),
    covered: () =>
      rows("SELECT index_id, substr(from_time, 12, 8), substr(to_time, 12, 8) FROM coverage ORDER BY 1, 2"),
    proofs: () => rows("SELECT substr(from_time, 12, 8), proof, reason FROM coverage ORDER BY 1"),
    ticks: () => rows("SELECT exchange_id, market_id FROM exchange_ticks ORDER BY ts, 1, 2"),
  };
}
const indexTick = (indexType: string, indexId: string, time: string) =>
  JSON.stringify({ event: "INDEX_TICKER", ...tickRecord({ ts: at(time), indexId }), indexType });
const exchangeTick = (exchangeId: string, marketId: string, time: string) =>
  exchangeMessage(time, { exchangeId, marketId });

describe("live ticks", () => {
  it("extend the live span of their own subscription, except ticks from the future", () => {
    const live = createLiveCoverage({
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
    const live = createLiveCoverage({ exchanges: [{ exchangeId: "kraken", since: at("12:00:10") }] });
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
    const live = createLiveCoverage({ exchanges: [{ exchangeId: null, since: at("12:00:00") }] });
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
    const live = createLiveCoverage({ exchanges: [{ exchangeId: "kraken", since: at("12:00:00") }] });
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
    const live = createLiveCoverage({ exchanges: [{ exchangeId: "kraken", since: at("12:00:00") }] });
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
    const live = createLiveCoverage({ exchanges, markets: new Set(["btc"]) });
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
    const live = createLiveCoverage({
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
    const live = createLiveCoverage({ startedSpans: [{ indexType: "LX", from: at("12:00:00") }] });
    live.change({ isReset: true, startedSpans: [{ indexType: "GWA", from: at("12:01:00") }] });
    expect(live.spans()).toEqual([["GWA", "", at("12:01:00"), at("12:01:00")]]);
  });
});
