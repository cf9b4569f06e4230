import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { commitLive } from "../../../src/ingest/commit/live.ts";
import { Listening } from "../../../src/ingest/commit/live-coverage.ts";
import { formatInstant, MICROS_PER_SECOND, parseInstant } from "../../../src/model/time.ts";
import { FeedQueue, usualLimits } from "../../../src/service/live/message-queue.ts";
import { LiveStanding } from "../../../src/sync/live/subscription-coverage.ts";
import { openWarehouse } from "../../../src/warehouse/writer.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const at = (time: string) => parseInstant(`2026-03-01T${time}Z`) ?? 0;
const kraken = { source: "exchange", exchangeId: "kraken" } as const;
const liquid = { source: "index", indexType: "LX" } as const;

/** The way of a tick from the socket into the ledger, without socket and threads. */
function startWay() {
  let now = at("12:00:00");
  const warehouse = openWarehouse(join(temporaryFolder(), "mds.sqlite"), {
    clock: { now: () => now / 1000 },
  });
  onTestFinished(() => warehouse.close());
  const queue = new FeedQueue({ ...usualLimits, mostCount: 2 }, () => now);
  const standing = new LiveStanding(30 * MICROS_PER_SECOND);
  const listening = new Listening();
  const selection = { lines: ["kraken"], markets: undefined, isResolved: true, selections: [] };
  standing.wish({
    indices: [liquid],
    exchanges: [{ exchangeId: "kraken", subscriptions: [kraken] }],
    selection,
  });
  for (const subscription of [kraken, liquid]) queue.push({ kind: "subscribed", subscription, at: now });
  const rows = (sql: string) => warehouse.connection.database.prepare(sql).raw().all();
  return {
    /** A tick arrives; nobody reads it yet. */
    arrive(time: string, marketId = "btc") {
      now = at(time);
      const figures = { last: "1", volume: "2", bid: "1", ask: "2" };
      const tick = { event: "EXCHANGE_TICKER", id: time, exchangeId: "kraken", marketId, ...figures };
      queue.tick(JSON.stringify({ ...tick, timestamp: formatInstant(now) }));
    },
    /** The reader gets on with so many messages. */
    read(messages = Number.POSITIVE_INFINITY) {
      for (let left = messages; left > 0; left--) {
        const message = queue.take();
        if (!message) return;
        if (message.kind === "update") commitLive(warehouse, message.texts, listening);
        else standing.hear(message, now);
        const news = standing.news();
        if (news) listening.change(warehouse, news);
      }
    },
    covered: () => rows("SELECT substr(from_time, 12, 8), substr(to_time, 12, 8) FROM coverage ORDER BY 1"),
    spans: () => rows("SELECT index_type, from_ts FROM live_spans"),
  };
}

it("E12: ticks that could not be held leave a gap in what was heard, and nothing of it is claimed", () => {
  const way = startWay();
  for (const time of ["12:00:00", "12:00:30", "12:01:00"]) {
    way.arrive(time);
    way.read();
  }
  expect(way.covered()).toEqual([["12:00:00", "12:01:00"]]);
  expect(way.spans()).toEqual([["LX", at("12:00:00")]]);

  // Two are held, the third is not: the period that they are of is heard in part only.
  way.arrive("12:01:30", "btc");
  way.arrive("12:01:31", "eth");
  way.arrive("12:01:32", "sol");
  way.arrive("12:02:00", "btc");
  // The reader makes room: from here on everything is heard again.
  way.read(1);
  way.arrive("12:02:05", "btc");
  way.read();
  for (const time of ["12:02:30", "12:03:00", "12:03:30"]) {
    way.arrive(time);
    way.read();
  }
  expect(way.covered()).toEqual([
    ["12:00:00", "12:01:30"],
    ["12:02:30", "12:03:30"],
  ]);
  expect(way.spans()).toEqual([["LX", at("12:02:05")]]);
});
