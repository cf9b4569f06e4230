import { afterEach, describe, expect, it } from "vitest";
import { type HistoryWalkOptions, walkHistoryPages } from "../../../src/service/pagination/history-walk.ts";
import { walkListPages } from "../../../src/service/pagination/list-walk.ts";
import { Fault } from "../../simulator/faults.ts";
import type { Quirks } from "../../simulator/quirks.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient, readPage } from "../../support/service/client-harness.ts";
import { readTicks } from "../../support/service/read-ticks.ts";

const hour = 3_600_000;
const day = 24 * hour;
const clock = new ManualClock("2026-03-01T12:00:07Z");
let simulator: Simulator | undefined;
afterEach(async () => simulator?.stop());

async function start(quirks: Partial<Quirks>) {
  simulator = await startSimulator({ clock, size: { assets: 6, markets: 6, exchanges: 2 }, quirks });
  const { baseUrl, clientId, clientSecret, universe, oracle } = simulator;
  const { client } = createTestClient(baseUrl, clock, { clientId, readSecret: async () => clientSecret });
  const indexId = universe.assets.find(({ firstDay }) => firstDay < 18_000)?.id ?? "";
  return { client, indexId, oracle, simulator };
}

/** Walks the index and returns the received timestamps, in milliseconds, and the end of each page. */
async function walkAll(
  { client, indexId }: Awaited<ReturnType<typeof start>>,
  endpoint: HistoryWalkOptions["endpoint"],
  range: { readonly from: number; readonly until: number; readonly size?: number },
) {
  const received = new Set<number>();
  const read = readTicks(indexId, (ts) => void received.add(ts / 1000));
  const [from, until] = [range.from * 1000, range.until * 1000];
  const walk = { endpoint, filters: { indexType: "GWA", indexId }, ...range, from, until };
  const ends: unknown[] = [];
  const run = async () => {
    for await (const { position } of walkHistoryPages(client, walk, read)) ends.push(position.end);
  };
  await clock.runUntil(run());
  return { received, ends };
}

const lastPages = ["null", "empty", "absent", "own-id"] as const;
const cases = lastPages.flatMap((lastPage) =>
  (["exclusive", "inclusive"] as const).map((cursor, at) => ({
    lastPage,
    cursor,
    upperBound: at === 0 ? ("exclusive" as const) : ("inclusive" as const),
    ids: at === 0 ? ("opaque" as const) : ("uuid" as const),
  })),
);

describe("a walk receives the same rows with every quirk", () => {
  it.each(cases)("C6, C8: last page $lastPage, cursor $cursor", async (quirks) => {
    const service = await start(quirks);
    const to = Math.floor(clock.now() / 30_000) * 30_000;
    const from = to - 4 * hour;
    const { received, ends } = await walkAll(service, "/index-ticker", { from, until: to, size: 60 });
    const missing = service.oracle
      .indexTicks("GWA", service.indexId, from, to, clock.now())
      .filter(({ timestamp }) => !received.has(Date.parse(timestamp)));
    expect(missing).toEqual([]);
    expect(ends.at(-1)).toBe("reached");
    expect(ends).toHaveLength(9);
  });

  it.each(lastPages)("the walk ends at the end of the window: last page %s", async (lastPage) => {
    const service = await start({ lastPage });
    const edge = clock.now() - 200 * day;
    const range = { from: edge - 30 * day, until: edge + hour, size: 50 };
    const { received, ends } = await walkAll(service, "/index-ticker", range);
    expect(ends.at(-1)).toBe("exhausted");
    const served = service.oracle.indexTicks("GWA", service.indexId, 0, edge + hour + 1, clock.now());
    expect(received.size).toBe(served.length);
  });

  it.each(["start", "end"] as const)(
    "daily bars are complete if timestamp means a bar's %s",
    async (ohlcvTimestamp) => {
      const service = await start({ ohlcvTimestamp, barTimestamp: true, lastPage: "own-id" });
      const midnight = Math.floor(clock.now() / day) * day;
      const from = midnight - 300 * day;
      // One day past the gap, since the specification does not say which of the two it is.
      const { received } = await walkAll(service, "/ohlcv", { from, until: midnight + day, size: 100 });
      const expected = service.oracle.dailyBars("GWA", service.indexId, from, midnight, clock.now());
      expect(expected).toHaveLength(300);
      const missing = expected.filter(({ startTimestamp }) => !received.has(Date.parse(startTimestamp)));
      expect(missing).toEqual([]);
    },
  );

  it("C7: the end of daily bars is confirmed with one bar a page", async () => {
    const service = await start({ ohlcvTimestamp: "start", barTimestamp: true });
    const on = "/ohlcv";
    service.simulator.setFaults(Fault.sizeCap(1, { on }), Fault.retention(8 * day, { on }));
    const range = { from: clock.now() - 30 * day, until: clock.now() };
    const { received, ends } = await walkAll(service, "/ohlcv", range);
    expect(ends.at(-1)).toBe("exhausted");
    expect(received.size).toBe(8);
  });

  it("exchange tickers are complete across pages", async () => {
    const { client, oracle } = await start({ exchangeTickerPage: 4, lastPage: "own-id" });
    const ids: string[] = [];
    const run = async () => {
      for await (const page of walkListPages(client, { endpoint: "/exchange-ticker" }, readPage)) {
        ids.push(...page.content.map(({ id }) => id));
      }
    };
    await clock.runUntil(run());
    expect(new Set(ids)).toEqual(new Set(oracle.exchangeTicks(clock.now()).map(({ id }) => id)));
  });
});
