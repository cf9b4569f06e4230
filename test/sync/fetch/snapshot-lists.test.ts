import { describe, expect, it } from "vitest";
import { startEngine } from "../../support/sync/backfill-harness.ts";

const derivatives = "derivatives: { exchanges: [Deribit], types: [perpetuals] }";
const settings = `sync: { ohlcv: false, intraday: false, exchangeTickers: { exchanges: all, markets: all }, ${derivatives} }`;
const size = { assets: 12, markets: 20, exchanges: 9 };

describe("a list of a latest-only stream", () => {
  it("that cannot be all that the service has is told and not claimed", async () => {
    const engine = await startEngine({ settings, simulator: { size } });
    /** The proofs that a run with these faults adds to each stream, and what it complains about. */
    const run = async (...faults: string[]) => {
      await engine.clock.advance(3_600_000);
      const begun = engine.clock.now() * 1000 - 300_000_000;
      engine.simulator.setFaults(faults.join("\n"));
      const { exit, problems } = await engine.run();
      const added = engine.query(`SELECT stream, proof FROM coverage WHERE from_ts >= ${begun} ORDER BY 1`);
      return {
        exit,
        told: problems.map(({ stream, code }) => `${stream} ${code}`).sort(),
        added: added.map(({ stream, proof }) => `${stream} ${proof}`),
      };
    };
    const doubted = ["exchange_ticks doubtful_list", "market_caps doubtful_list"];
    const perpetuals = "GET /derivatives/ticker/perpetuals";
    // All exchanges together have tickers; a single one may have none, as long as it never had any.
    expect(
      await run(
        "GET /exchange-ticker shrink by=1",
        "GET /market-cap shrink by=1",
        `${perpetuals} shrink by=1`,
      ),
    ).toEqual({ exit: 4, told: doubted, added: ["derivative_ticks empty"] });

    expect(
      await run("GET /exchange-ticker drop field=marketId", "GET /market-cap timestamps as=2099"),
    ).toEqual({ exit: 4, told: doubted, added: ["derivative_ticks rows"] });

    // Few records that cannot be read do not spoil a list; and an empty one that is no longer empty when asked again.
    expect(
      await run(
        "GET /exchange-ticker drop field=marketId rows=first",
        "GET /market-cap drop field=assetId rows=first",
        `${perpetuals} shrink by=1 total=1`,
      ),
    ).toEqual({
      exit: 4,
      told: [],
      added: ["derivative_ticks rows", "exchange_ticks rows", "market_caps rows"],
    });

    // Said twice, the exchange has nothing any more.
    expect(await run(`${perpetuals} shrink by=1`)).toMatchObject({
      told: [],
      added: ["derivative_ticks empty", "exchange_ticks rows", "market_caps rows"],
    });
    engine.expectTruth();
  });
});
