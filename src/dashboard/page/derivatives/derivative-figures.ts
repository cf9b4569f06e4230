// Figures of options. Pure functions without access to the page.

import type { OptionQuote } from "../../../model/answers/derivatives.ts";

const YEAR = 365.25 * 86_400e6;

/** What a contract is worth: its mark price, else its last price. */
export const worth = ({ mark_price, price }: Pick<OptionQuote, "mark_price" | "price">) =>
  mark_price ?? price;

/** What the figures need to know of a contract. */
type Option = Pick<
  OptionQuote,
  "option_type" | "strike" | "expiration" | "ts" | "price" | "mark_price" | "index_price" | "open_interest"
>;

/** A strike with its call and its put. */
export interface ChainLine<T = OptionQuote> {
  readonly strike: number;
  readonly call: T | undefined;
  readonly put: T | undefined;
}

/** The distribution function of the normal distribution (Abramowitz and Stegun 7.1.26, error below 1.5e-7). */
function normal(x: number): number {
  const t = 1 / (1 + (0.3275911 * Math.abs(x)) / Math.SQRT2);
  const tail =
    t *
    (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) *
    Math.exp((-x * x) / 2);
  return x >= 0 ? 1 - tail / 2 : tail / 2;
}

interface OptionPriceOptions {
  readonly isCall: boolean;
  readonly forward: number;
  readonly strike: number;
  readonly years: number;
  readonly volatility: number;
}

/** Black's formula without interest. */
export function optionPrice({ isCall, forward, strike, years, volatility }: OptionPriceOptions): number {
  const deviation = volatility * Math.sqrt(years);
  const d1 = Math.log(forward / strike) / deviation + deviation / 2;
  const call = forward * normal(d1) - strike * normal(d1 - deviation);
  return isCall ? call : call - forward + strike;
}

const MAX_VOLATILITY = 5;
const STEPS = 60;

/** The volatility at which the formula gives the observed price, by bisection; null if none does. */
export function impliedVolatility(contract: Option, forward: number | null): number | null {
  const { expiration, ts, option_type } = contract;
  const [value, strike] = [worth(contract) ?? 0, contract.strike ?? 0];
  const years = ((expiration ?? 0) - ts) / YEAR;
  if (forward === null || !(value > 0) || !(forward > 0) || !(strike > 0) || !(years > 0)) return null;
  const priceAt = (volatility: number) =>
    optionPrice({ isCall: option_type === "CALL", forward, strike, years, volatility });
  let [low, high] = [1e-4, MAX_VOLATILITY];
  if (value <= priceAt(low) || value >= priceAt(high)) return null;
  for (let i = 0; i < STEPS; i++) {
    const middle = (low + high) / 2;
    if (priceAt(middle) < value) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** The options of one expiry as lines of a chain: the call and the put of each strike, of the contract with the most interest. */
export function buildChain<T extends Option>(options: readonly T[], expiration: number): ChainLine<T>[] {
  const byStrike = Map.groupBy(
    options.filter((one) => one.expiration === expiration && one.strike !== null),
    ({ strike }) => strike ?? 0,
  );
  const best = (list: readonly T[], type: string) =>
    list
      .filter(({ option_type }) => option_type === type)
      .reduce<T | undefined>(
        (most, one) => ((one.open_interest ?? 0) > (most?.open_interest ?? -1) ? one : most),
        undefined,
      );
  return [...byStrike]
    .sort(([a], [b]) => a - b)
    .map(([strike, list]) => ({ strike, call: best(list, "CALL"), put: best(list, "PUT") }));
}

/** The forward of an expiry by put-call parity, at the strike where call and put cost nearly the same; else the index. */
export function forwardOf(chain: readonly ChainLine<Option>[]): number | null {
  const pairs = chain.flatMap(({ strike, call, put }) => {
    const [callWorth = 0, putWorth = 0] = [call, put].map((one) => (one && worth(one)) ?? 0);
    return callWorth > 0 && putWorth > 0 ? [{ strike, difference: callWorth - putWorth }] : [];
  });
  const [nearest] = pairs.sort((a, b) => Math.abs(a.difference) - Math.abs(b.difference));
  if (nearest) return nearest.strike + nearest.difference;
  const prices = chain.flatMap(({ call, put }) => [call?.index_price ?? 0, put?.index_price ?? 0]);
  return prices.find((price) => price > 0) ?? null;
}
