import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { commitLiveMessages } from "../../../src/ingest/commit/live.ts";
import { LiveCoverage, type LiveFeedChange } from "../../../src/ingest/commit/live-coverage.ts";
import { formatTimestamp, MICROS_PER_SECOND, parseTimestamp } from "../../../src/model/time.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const at = (time: string) => parseTimestamp(`2026-03-01T${time}Z`) ?? 0;
const cadence = 30 * MICROS_PER_SECOND;

function listen(change: LiveFeedChange) {
  const clock = { now: () => at("12:10:00") / 1000 };
  const path = join(temporaryFolder(), "mds.sqlite");
  const warehouse = openWriter(path, { clock });
  onTestFinished(() => warehouse.close());
  const listening = new LiveCoverage();
  listening.applyChange(warehouse, { isReset: true, cadence, markets: null, ...change });
  const rows = (sql: string) => warehouse.connection.database.prepare(sql).raw().all() as unknown[][];
  return {
    hear: (...messages: object[]) =>
      commitLiveMessages(
        warehouse,
        messages.map((message) => JSON.stringify(message)),
        listening,
      ),
    /** Another writer holds the file until it is closed. */
    lockOut: () => {
      warehouse.connection.database.pragma("busy_timeout = 0");
      const other = new Database(path);
      other.exec("BEGIN IMMEDIATE");
      return other;
    },
    change: (next: LiveFeedChange) => listening.applyChange(warehouse, next),
    spans: () => rows("SELECT index_type, index_id, from_ts, to_ts FROM live_spans ORDER BY 1, 2"),
    covered: () =>
      rows("SELECT index_id, substr(from_time, 12, 8), substr(to_time, 12, 8) FROM coverage ORDER BY 1, 2"),
    proofs: () => rows("SELECT substr(from_time, 12, 8), proof, reason FROM coverage ORDER BY 1"),
    ticks: () => rows("SELECT exchange_id, market_id FROM exchange_ticks ORDER BY ts, 1, 2"),
  };
}
const indexTick = (indexType: string, indexId: string, time: string) => ({
  event: "INDEX_TICKER",
  ...{
    id: `${indexId} ${time}`,
    indexType,
    indexId,
    price: "1",
    volume: "2",
    timestamp: formatTimestamp(at(time)),
  },
});
const exchangeTick = (exchangeId: string, marketId: string, time: string) => ({
  event: "EXCHANGE_TICKER",
  ...{
    id: time,
    exchangeId,
    marketId,
    last: "1",
    volume: "2",
    bid: "1",
    ask: "2",
    timestamp: formatTimestamp(at(time)),
  },
});

describe("live ticks", () => {
  it("move the spans of their own family, but not by a tick from the future", () => {
    const live = listen({
      startedSpans: [
        { indexType: "GWA", indexId: "btc", from: at("12:00:00") },
        { indexType: "GWA", indexId: "eth", from: at("12:01:00") },
        { indexType: "LX", from: at("12:00:00") },
      ],
    });
    live.hear(indexTick("GWA", "btc", "12:05:00"), indexTick("GWA", "btc", "12:04:30"));
    live.hear(indexTick("LX", "blx", "12:30:00"));
    expect(live.spans()).toEqual([
      ["GWA", "btc", at("12:00:00"), at("12:05:00")],
      ["GWA", "eth", at("12:01:00"), at("12:05:00")],
      ["LX", "", at("12:00:00"), at("12:00:00")],
    ]);
    live.change({
      endedSpans: [{ indexType: "GWA", indexId: "btc" }],
      startedSpans: [{ indexType: "LX", from: at("12:06:00") }],
    });
    expect(live.spans().map(([, id, from]) => [id, from])).toEqual([
      ["eth", at("12:01:00")],
      ["", at("12:06:00")],
    ]);
  });

  it("of an exchange are observations of their period once the next one speaks, where all of its subscriptions flow", () => {
    const live = listen({ exchanges: [{ exchangeId: "kraken", since: at("12:00:10") }] });
    live.hear(exchangeTick("kraken", "btc", "12:00:00"), exchangeTick("kraken", "btc", "12:00:31"));
    live.hear(exchangeTick("kraken", "eth", "12:00:32"), exchangeTick("deaf", "btc", "12:00:30"));
    live.hear(exchangeTick("kraken", "btc", "12:01:00"), exchangeTick("kraken", "btc", "12:40:00"));
    // Of the last one, more may be under way.
    expect(live.covered()).toEqual([["kraken", "12:00:30", "12:01:00"]]);
    live.hear(exchangeTick("kraken", "btc", "12:01:30"));
    expect(live.covered()).toEqual([["kraken", "12:00:30", "12:01:30"]]);
    // Something was missed: the period in which it is heard again is heard in part only.
    live.change({
      exchanges: [{ exchangeId: "kraken", since: at("12:01:40") }],
      retractions: [{ exchangeId: "kraken", from: at("12:01:00"), to: at("12:02:00") }],
    });
    live.hear(exchangeTick("kraken", "btc", "12:01:45"), exchangeTick("kraken", "btc", "12:02:00"));
    expect(live.covered()).toEqual([["kraken", "12:00:30", "12:01:00"]]);
    // A disconnect in the midst of a period: it is never claimed.
    live.change({ exchanges: [] });
    live.change({ exchanges: [{ exchangeId: "kraken", since: at("12:02:20") }] });
    live.hear(exchangeTick("kraken", "btc", "12:02:29"), exchangeTick("kraken", "btc", "12:02:30"));
    expect(live.covered()).toEqual([["kraken", "12:00:30", "12:01:00"]]);
  });

  it("that cannot be stored are heard again as if they had never come, whatever stood in their way", () => {
    const live = listen({ exchanges: [{ exchangeId: "kraken", since: at("12:00:00") }] });
    live.hear(exchangeTick("kraken", "btc", "12:00:00"));
    live.hear(exchangeTick("kraken", "btc", "12:00:30"));
    const other = live.lockOut();
    expect(() => live.hear(exchangeTick("kraken", "btc", "12:01:00"))).toThrow("write lock");
    other.close();
    live.hear(exchangeTick("kraken", "btc", "12:01:00"), exchangeTick("kraken", "btc", "12:01:30"));
    expect(live.covered()).toEqual([["kraken", "12:00:00", "12:01:30"]]);
  });

  it("of markets that are not selected are left out, and observe all the same", () => {
    const exchanges = [{ exchangeId: null, since: at("12:00:00") }];
    const live = listen({ exchanges, markets: new Set(["btc"]) });
    live.hear(exchangeTick("kraken", "btc", "12:00:30"), exchangeTick("kraken", "eth", "12:00:30"));
    live.hear(exchangeTick("okx", "eth", "12:01:00"));
    expect(live.ticks()).toEqual([["kraken", "btc"]]);
    expect(live.covered()).toEqual([[null, "12:00:30", "12:01:00"]]);
    // A period with nothing but those is covered, and has no rows to claim.
    live.hear(exchangeTick("okx", "btc", "12:01:30"), exchangeTick("okx", "eth", "12:01:30"));
    live.hear(exchangeTick("okx", "eth", "12:02:00"));
    expect(live.proofs()).toEqual([
      ["12:00:30", "rows", null],
      ["12:01:00", "empty", "nothing listed"],
      ["12:01:30", "rows", null],
    ]);
  });
});
