import { expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const derivatives = "derivatives: { exchanges: [Deribit], types: [perpetuals] }";
const settings = `sync: { ohlcv: false, intraday: false, exchangeTickers: { exchanges: all, markets: all }, ${derivatives} }`;
const size = { assets: 12, markets: 20, exchanges: 9 };

it("a list of a snapshot stream that looks incomplete is reported and not covered", async () => {
  const engine = await startBackfillHarness({ settings, simulator: { size } });
  /** Runs with these faults; returns the coverage that it adds and the problems that it reports. */
  const run = async (...faults: Fault[]) => {
    await engine.clock.advance(3_600_000);
    const addedSince = engine.clock.now() * 1000 - 300_000_000;
    engine.simulator.setFaults(...faults);
    const { exit, problems } = await engine.run();
    const added = engine.query(
      `SELECT stream, proof FROM coverage WHERE from_ts >= ${addedSince} ORDER BY 1`,
    );
    return {
      exit,
      reported: problems.map(({ stream, code }) => `${stream} ${code}`).sort(),
      added: added.map(({ stream, proof }) => `${stream} ${proof}`),
    };
  };
  const incomplete = ["exchange_ticks doubtful_list", "market_caps doubtful_list"];
  const perpetuals = "/derivatives/ticker/perpetuals";
  // All exchanges together always have tickers; a single one may have none if it never had any.
  expect(
    await run(
      Fault.shrink(1, { on: "/exchange-ticker" }),
      Fault.shrink(1, { on: "/market-cap" }),
      Fault.shrink(1, { on: perpetuals }),
    ),
  ).toEqual({ exit: 4, reported: incomplete, added: ["derivative_ticks empty"] });

  expect(
    await run(
      Fault.drop("marketId", { on: "/exchange-ticker" }),
      Fault.timestamps(2099, { on: "/market-cap" }),
    ),
  ).toEqual({ exit: 4, reported: incomplete, added: ["derivative_ticks rows"] });

  // A few unreadable records are tolerated, and so is one empty response that is not repeated.
  expect(
    await run(
      Fault.drop("marketId", { on: "/exchange-ticker", rows: "first" }),
      Fault.drop("assetId", { on: "/market-cap", rows: "first" }),
      Fault.shrink(1, { on: perpetuals, total: 1 }),
    ),
  ).toEqual({
    exit: 4,
    reported: [],
    added: ["derivative_ticks rows", "exchange_ticks rows", "market_caps rows"],
  });

  // After two empty responses the exchange counts as empty.
  expect(await run(Fault.shrink(1, { on: perpetuals }))).toMatchObject({
    reported: [],
    added: ["derivative_ticks empty", "exchange_ticks rows", "market_caps rows"],
  });
  engine.expectMatchesService();
});
