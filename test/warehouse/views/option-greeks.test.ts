import { expect, it } from "vitest";
import {
  buildChain,
  forwardOf,
  impliedVolatility,
  optionPrice,
  worth,
} from "../../../src/dashboard/page/derivatives/derivative-figures.ts";
import type { OptionQuote } from "../../../src/model/answers/derivatives.ts";
import { withReader } from "../../../src/warehouse/reader.ts";
import { fillDemoWarehouse } from "../../docs/demo-warehouse.ts";
import { makeTempFolder } from "../../support/warehouse/open-warehouse.ts";

type Quote = OptionQuote & { readonly market_id: string; readonly expiration: number };
type Greeks = Record<
  "contract_id" | "forward" | "implied_volatility" | "delta" | "gamma" | "vega" | "theta",
  number
>;

it("has the implied volatility of the page, and greeks that are the slopes of its prices", async () => {
  const { path } = await fillDemoWarehouse(makeTempFolder());
  const { quotes, greeks } = withReader(path, ({ database }) => ({
    quotes: database
      .prepare<[], Quote>(
        `SELECT o.*, o.contract_id AS id, o.contract AS name, c.expiration FROM latest_option_chain o JOIN contracts c ON c.id = o.contract_id
        WHERE c.derivative_type = 'options' ORDER BY c.expiration, o.strike, o.option_type, o.exchange`,
      )
      .all(),
    greeks: new Map(
      database
        .prepare<[], Greeks>("SELECT * FROM latest_option_greeks")
        .all()
        .map((row) => [row.contract_id, row] as const),
    ),
  }));
  const chains = Map.groupBy(quotes, ({ market_id, expiration }) => `${market_id} ${expiration}`);
  let solved = 0;
  for (const own of chains.values()) {
    const forward = forwardOf(buildChain(own, own[0]?.expiration ?? 0)) ?? Number.NaN;
    for (const quote of own) {
      const found = greeks.get(quote.id as unknown as number);
      const volatility = impliedVolatility(quote, forward);
      expect(found?.forward).toBeCloseTo(forward, 6);
      if (volatility === null) {
        expect(found?.implied_volatility).toBeNull();
        continue;
      }
      solved++;
      expect(found?.implied_volatility).toBeCloseTo(volatility, 9);
      const years = (quote.expiration - quote.ts) / (365 * 86_400e6);
      const strike = quote.strike ?? Number.NaN;
      const isCall = quote.option_type === "CALL";
      const price = (moved: { forward?: number; volatility?: number; years?: number }) =>
        optionPrice({ isCall, forward, strike, years, volatility, ...moved });
      // In a year of another length the same volatility gives another price.
      expect(price({})).toBeCloseTo(worth(quote) ?? Number.NaN, 5);
      const slope = (a: number, b: number, by: number) => (b - a) / (2 * by);
      const [step, point, day] = [forward / 100, 0.01, 1 / 365];
      const [below, above] = [price({ forward: forward - step }), price({ forward: forward + step })];
      const near = (value: number | undefined, expected: number, scale: number) =>
        expect(Math.abs((value ?? Number.NaN) - expected)).toBeLessThan(scale);
      near(found?.delta, slope(below, above, step), 0.02);
      near(found?.gamma, (above - 2 * price({}) + below) / step ** 2, 0.1 * (found?.gamma ?? 0) + 1e-7);
      near(
        found?.vega,
        slope(price({ volatility: volatility - point }), price({ volatility: volatility + point }), 1),
        0.02 * (found?.vega ?? 0) + 0.02,
      );
      near(
        found?.theta,
        slope(price({ years: years + day / 10 }), price({ years: years - day / 10 }), 0.1),
        -0.05 * (found?.theta ?? 0) + 0.05,
      );
    }
  }
  expect(greeks.size).toBe(quotes.length);
  expect(solved).toBeGreaterThan(10);
});
