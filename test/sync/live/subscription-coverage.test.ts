import { expect, it } from "vitest";
import { MICROS_PER_SECOND, parseTimestamp } from "../../../src/model/time.ts";
import { SubscriptionCoverage } from "../../../src/sync/live/subscription-coverage.ts";
import { startIngest } from "../../support/ingest/ingest-harness.ts";

const at = (time: string) => parseTimestamp(`2026-03-01T${time}Z`) ?? 0;
const [btc, eth] = ["btc", "eth"].map(
  (marketId) => ({ source: "exchange", exchangeId: "kraken", marketId }) as const,
);
const tick = (marketId: string, time: string) =>
  JSON.stringify({
    ...{ event: "EXCHANGE_TICKER", id: time, exchangeId: "kraken", marketId },
    ...{ last: "1", volume: "2", bid: "1", ask: "2", timestamp: `2026-03-01T${time}Z` },
  });

async function startCoverage() {
  const { ingest, query } = await startIngest();
  const coverage = new SubscriptionCoverage(30 * MICROS_PER_SECOND, (change) =>
    ingest.call("commitLiveFeedChange", change),
  );
  const subscriptions = btc && eth ? [btc, eth] : [];
  coverage.setDesired({
    indices: [],
    exchanges: [{ exchangeId: "kraken", subscriptions }],
    selection: { exchangeIds: ["kraken"], markets: undefined, isResolved: true },
  });
  const confirm = () => {
    for (const subscription of subscriptions)
      coverage.apply({ kind: "subscribed", subscription, at: at("17:50:00") }, at("17:50:00"));
  };
  return {
    coverage,
    confirm,
    receive: (...messages: string[]) => ingest.call("commitLiveMessages", messages),
    covered: () =>
      query("SELECT substr(from_time, 12, 8), substr(to_time, 12, 8) FROM coverage ORDER BY 1").map((row) =>
        Object.values(row).join(" "),
      ),
    /** A batch of ticks that could not be committed. */
    failedBatch: () => Promise.reject(new Error("out of order")),
  };
}

it("a change that could not be committed is committed with the next one", async () => {
  const { coverage, confirm, receive, covered, failedBatch } = await startCoverage();
  confirm();
  await expect(coverage.commit(failedBatch)).rejects.toThrow("out of order");
  // The exchange is live all the same.
  expect(await coverage.commit()).toBe(true);
  await receive(tick("btc", "17:50:00"), tick("btc", "17:50:30"), tick("btc", "17:51:00"));
  expect(covered()).toEqual(["17:50:00 17:51:30"]);
  // The ticks of the other market are missing: what was covered without them is not.
  const silent = { kind: "unconfirmed", reason: "silent", missingSince: at("17:50:31") } as const;
  if (eth) coverage.apply({ ...silent, subscription: eth }, at("17:51:10"));
  await expect(coverage.commit(failedBatch)).rejects.toThrow("out of order");
  expect(await coverage.commit()).toBe(true);
  expect(covered()).toEqual(["17:50:00 17:50:30"]);
  expect(await coverage.commit()).toBe(false);
});
