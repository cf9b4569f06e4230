import { describe, expect, it } from "vitest";
import {
  buildChain,
  forwardOf,
  impliedVolatility,
  optionPrice,
} from "../../src/dashboard/page/derivatives/derivative-figures.ts";

const DAY = 86_400e6;
const option = (strike: number, isCall: boolean, volatility: number, forward = 110) => ({
  option_type: isCall ? "CALL" : "PUT",
  strike,
  ts: 0,
  expiration: 36.5 * DAY,
  index_price: 100,
  mark_price: optionPrice({ isCall, forward, strike, years: 0.1, volatility }),
  price: null,
  open_interest: 1,
});

describe("the figures of options", () => {
  it("find the volatility that Black's formula needs for a price", () => {
    expect(optionPrice({ isCall: true, forward: 100, strike: 100, years: 1, volatility: 0.2 })).toBeCloseTo(
      7.9656,
      3,
    );
    for (const isCall of [true, false])
      for (const volatility of [0.2, 0.6, 1.5])
        expect(impliedVolatility(option(105, isCall, volatility), 110)).toBeCloseTo(volatility, 3);
    expect(impliedVolatility({ ...option(90, true, 0.5), mark_price: 1 }, 110)).toBeNull();
  });

  it("tell no volatility that a small error of the forward changes, as far in the money", () => {
    const strikes = [60, 70, 80, 90];
    const told = (isCall: boolean, forward: number) =>
      strikes.map((strike) => impliedVolatility(option(strike, isCall, 0.5), forward));
    expect(told(true, 110).map((one) => one === null)).toEqual([true, false, false, false]);
    for (const volatility of [...told(true, 110 * (1 - 1e-5)), ...told(false, 110 * (1 - 1e-5))])
      if (volatility !== null) expect(Math.abs(volatility - 0.5)).toBeLessThan(0.01);
    expect(told(false, 110)).not.toContain(null);
  });

  it("take the forward of a chain from the strike where call and put cost the same", () => {
    const options = [90, 110, 130].flatMap((strike) => [
      option(strike, true, 0.5),
      option(strike, false, 0.5),
    ]);
    const chain = buildChain(options, 36.5 * DAY);
    expect(chain.map(({ strike }) => strike)).toEqual([90, 110, 130]);
    expect(forwardOf(chain)).toBeCloseTo(110, 4);
    expect(forwardOf(buildChain([option(90, true, 0.5)], 36.5 * DAY))).toBe(100);
  });
});
