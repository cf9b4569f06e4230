import { describe, expect, it } from "vitest";
import { startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const derivatives = "derivatives: { exchanges: [Deribit], types: [perpetuals] }";
const settings = `sync: { ohlcv: false, intraday: false, exchangeTickers: { exchanges: all, markets: all }, ${derivatives} }`;
const size = { assets: 12, markets: 20, exchanges: 9 };

describe("a list of a snapshot stream", () => {
  it("that looks incomplete is reported and not covered", async () => {
    const engine = await startBackfillHarness({ settings, simulator: { size } });
    /** Runs with these faults; returns the coverage that it adds and the problems that it reports. */
    const run = async (...faults: string[]) => {
      await engine.clock.advance(3_600_000);
      const addedSince = engine.clock.now() * 1000 - 300_000_000;
      engine.simulator.setFaults(faults.join("\n"));
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
    const perpetuals = "GET /derivatives/ticker/perpetuals";
    // All exchanges together always have tickers; a single one may have none if it never had any.
    expect(
      await run(
        "GET /exchange-ticker shrink by=1",
        "GET /market-cap shrink by=1",
        `${perpetuals} shrink by=1`,
      ),
    ).toEqual({ exit: 4, reported: incomplete, added: ["derivative_ticks empty"] });

    expect(
      await run("GET /exchange-ticker drop field=marketId", "GET /market-cap timestamps as=2099"),
    ).toEqual({ exit: 4, reported: incomplete, added: ["derivative_ticks rows"] });

    // A few unreadable records are tolerated, and so is one empty response that is not repeated.
    expect(
      await run(
        "GET /exchange-ticker drop field=marketId rows=first",
        "GET /market-cap drop field=assetId rows=first",
        `${perpetuals} shrink by=1 total=1`,
      ),
    ).toEqual({
      exit: 4,
      reported: [],
      added: ["derivative_ticks rows", "exchange_ticks rows", "market_caps rows"],
    });

    // After two empty responses the exchange counts as empty.
    expect(await run(`${perpetuals} shrink by=1`)).toMatchObject({
      reported: [],
      added: ["derivative_ticks empty", "exchange_ticks rows", "market_caps rows"],
    });
    engine.expectMatchesService();
  });
});
