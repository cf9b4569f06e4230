import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { type BackfillHarness, startBackfillHarness } from "../../support/sync/backfill-harness.ts";

/** LIBRA never had a price; Bitfinex has no options, and Coinbase no derivatives at all. */
const settings = `service: { refreshSeconds: 600 }
sync: { ohlcv: { GWA: [LUNA, LIBRA], MWA: none, LX: none }, intraday: { GWA: [BTC, ETH, LIBRA], MWA: none, LX: none, days: 1 },
  exchangeTickers: { exchanges: [Kraken, Binance], markets: all }, derivatives: { exchanges: [Kraken, Coinbase, Deribit] } }`;

const endpoints: [path: string, stream: string][] = [
  ["/ohlcv", "ohlcv"],
  ["/index-ticker", "index_ticks"],
  ["/exchange-ticker", "exchange_ticks"],
  ["/market-cap", "market_caps"],
];

/** The streams with problems, and how long the run took in seconds. */
async function run(engine: BackfillHarness) {
  const startedAt = engine.clock.now();
  const { exit, problems } = await engine.run();
  const seconds = (engine.clock.now() - startedAt) / 1000;
  return { exit, seconds, streams: [...new Set(problems.map(({ stream }) => stream))] };
}

const countRows = (engine: BackfillHarness) =>
  ["ohlcv", "index_ticks", "exchange_ticks", "market_caps"].filter(
    (stream) => engine.query(`SELECT 1 FROM ${stream} LIMIT 1`).length > 0,
  );

it.each([
  [Fault.envelope("no-content", { on: "/exchange-ticker" }), "exchange_ticks"],
  [Fault.envelope("no-content", { on: "/market-cap" }), "market_caps"],
  [Fault.envelope("content-null", { on: "/index-ticker" }), "index_ticks"],
  [Fault.noContent({ on: "/ohlcv" }), "ohlcv"],
] as const)(
  "H8: an endpoint that answers every request with $0.name ($1) fails alone, within seconds",
  async (fault, stream) => {
    const engine = await startBackfillHarness({
      settings: settings.replace(/derivatives: \{.*?\}/, "derivatives: false"),
      simulator: { refreshSeconds: 600, faults: [fault] },
    });
    const { exit, seconds, streams } = await run(engine);
    expect({ exit, streams }).toEqual({ exit: 4, streams: [stream] });
    expect(seconds).toBeLessThan(15);
    expect(countRows(engine)).toEqual(endpoints.map(([, each]) => each).filter((each) => each !== stream));
    expect(engine.query(`SELECT * FROM coverage WHERE stream = '${stream}'`)).toEqual([]);
    expect(engine.logged.filter(({ message }) => message.includes("circuit breaker"))).toEqual([]);
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
  },
);

describe("a service that sends for an empty list", () => {
  const start = (form: "null" | "204" | "absent") =>
    startBackfillHarness({
      settings,
      simulator: { refreshSeconds: 600, quirks: { noData: "empty" }, faults: [Fault.emptyList(form)] },
    });

  it.each(["null", "204"] as const)("H8: %s is copied completely", async (form) => {
    const engine = await start(form);
    const { exit, seconds, streams } = await run(engine);
    expect({ exit, streams }).toEqual({ exit: 0, streams: [] });
    expect(seconds).toBeLessThan(30);
    engine.expectMatchesService();
  });

  it("H8: an object without a list leaves that index open: it is never taken for the end", async () => {
    const engine = await start("absent");
    const { exit, seconds, streams } = await run(engine);
    expect(exit).toBe(4);
    expect(streams).toEqual(expect.arrayContaining(["index_ticks", "ohlcv"]));
    expect(seconds).toBeLessThan(10);
    const open = engine.query(
      "SELECT DISTINCT stream FROM gaps WHERE state = 'open' AND name = 'LIBRA' ORDER BY 1",
    );
    expect(open).toEqual([{ stream: "index_ticks" }, { stream: "ohlcv" }]);
    expect(engine.query("SELECT * FROM coverage WHERE name = 'LIBRA'")).toEqual([]);
  });
});
