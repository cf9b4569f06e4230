import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { commitLiveFeedChange, commitLiveMessages, LiveState } from "../../../src/ingest/commit/live.ts";
import { formatTimestamp, MICROS_PER_SECOND, parseTimestamp } from "../../../src/model/time.ts";
import { DEFAULT_QUEUE_LIMITS, MessageQueue } from "../../../src/service/live/message-queue.ts";
import { SubscriptionCoverage } from "../../../src/sync/live/subscription-coverage.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const at = (time: string) => parseTimestamp(`2026-03-01T${time}Z`) ?? 0;
const kraken = { source: "exchange", exchangeId: "kraken" } as const;
const liquid = { source: "index", indexType: "LX" } as const;

/** The path of a tick from the queue into the ledger, without socket and threads. */
function startPipeline() {
  let now = at("12:00:00");
  const warehouse = openWriter(join(temporaryFolder(), "mds.sqlite"), { clock: { now: () => now / 1000 } });
  onTestFinished(() => warehouse.close());
  const queue = new MessageQueue({ ...DEFAULT_QUEUE_LIMITS, ticks: 1 }, () => now);
  const live = new LiveState();
  const coverage = new SubscriptionCoverage(30 * MICROS_PER_SECOND, async (change) =>
    commitLiveFeedChange(warehouse, live, change),
  );
  const selection = { exchangeIds: ["kraken"], markets: undefined, isResolved: true };
  coverage.setDesired({
    indices: [liquid],
    exchanges: [{ exchangeId: "kraken", subscriptions: [kraken] }],
    selection,
  });
  for (const subscription of [kraken, liquid]) queue.push({ kind: "subscribed", subscription, at: now });
  const rows = (sql: string) => warehouse.connection.database.prepare(sql).raw().all();
  return {
    /** Queues a tick. */
    arrive(time: string, marketId = "btc") {
      now = at(time);
      const figures = { last: "1", volume: "2", bid: "1", ask: "2" };
      const tick = { event: "EXCHANGE_TICKER", id: time, exchangeId: "kraken", marketId, ...figures };
      queue.pushTick(JSON.stringify({ ...tick, timestamp: formatTimestamp(now) }));
    },
    /** Reads so many messages from the queue. */
    async read(messages = Number.POSITIVE_INFINITY) {
      for (let remaining = messages; remaining > 0; remaining--) {
        const message = queue.take();
        if (!message) return;
        if (message.kind === "update") commitLiveMessages(warehouse, live, message.texts);
        else coverage.apply(message, now);
        await coverage.commit();
      }
    },
    covered: () => rows("SELECT substr(from_time, 12, 8), substr(to_time, 12, 8) FROM coverage ORDER BY 1"),
    spans: () => rows("SELECT index_type, from_ts FROM live_spans"),
  };
}

it("E12: dropped ticks end the live span, and the gap is not covered", async () => {
  const pipeline = startPipeline();
  for (const time of ["12:00:00", "12:00:30", "12:01:00"]) {
    pipeline.arrive(time);
    await pipeline.read();
  }
  expect(pipeline.covered()).toEqual([["12:00:00", "12:01:30"]]);
  expect(pipeline.spans()).toEqual([["LX", at("12:00:00")]]);

  // The queue takes two and drops the third: the period is incomplete.
  pipeline.arrive("12:01:30", "btc");
  pipeline.arrive("12:01:31", "eth");
  pipeline.arrive("12:01:32", "sol");
  pipeline.arrive("12:02:00", "btc");
  // The reader makes room: from here on no tick is dropped.
  await pipeline.read(1);
  pipeline.arrive("12:02:05", "btc");
  await pipeline.read();
  for (const time of ["12:02:30", "12:03:00", "12:03:30"]) {
    pipeline.arrive(time);
    await pipeline.read();
  }
  expect(pipeline.covered()).toEqual([
    ["12:00:00", "12:01:30"],
    ["12:02:30", "12:04:00"],
  ]);
  expect(pipeline.spans()).toEqual([["LX", at("12:02:05")]]);
});
