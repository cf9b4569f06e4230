// Figures of options. Pure functions without access to the page.

import type { OptionQuote } from "../../../model/answers/derivatives.ts";
import { DAYS_PER_YEAR, MICROS_PER_DAY } from "../../../model/time.ts";

const YEAR = DAYS_PER_YEAR * MICROS_PER_DAY;

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

/** The arguments of the normal distribution in Black's formula. */
function distances({ forward, strike, years, volatility }: OptionPriceOptions) {
  const deviation = volatility * Math.sqrt(years);
  const d1 = Math.log(forward / strike) / deviation + deviation / 2;
  return { d1, d2: d1 - deviation };
}

/** Black's formula without interest. */
export function optionPrice(option: OptionPriceOptions): number {
  const { isCall, forward, strike } = option;
  const { d1, d2 } = distances(option);
  const call = forward * normal(d1) - strike * normal(d2);
  return isCall ? call : call - forward + strike;
}

const MAX_VOLATILITY = 5;
const STEPS = 60;
/** The forward is known about as exactly as this. */
const FORWARD_ERROR = 1e-5;

/** Whether the volatility changes by no more than a percentage point within the error of the forward: far in the money it does. */
function isCertain(option: OptionPriceOptions): boolean {
  const { d1 } = distances(option);
  const delta = normal(d1) - (option.isCall ? 0 : 1);
  // Both as a fraction of the forward.
  const vega = Math.exp((-d1 * d1) / 2) * Math.sqrt(option.years / (2 * Math.PI));
  return Math.abs(delta) * FORWARD_ERROR <= vega / 100;
}

/** The volatility at which the formula gives the observed price, by bisection; null if none does, or many nearly do. */
export function impliedVolatility(contract: Option, forward: number | null): number | null {
  const { expiration, ts, option_type } = contract;
  const [value, strike] = [worth(contract) ?? 0, contract.strike ?? 0];
  const years = ((expiration ?? 0) - ts) / YEAR;
  if (forward === null || !(value > 0) || !(forward > 0) || !(strike > 0) || !(years > 0)) return null;
  const given = { isCall: option_type === "CALL", forward, strike, years };
  const priceAt = (volatility: number) => optionPrice({ ...given, volatility });
  let [low, high] = [1e-4, MAX_VOLATILITY];
  if (value <= priceAt(low) || value >= priceAt(high)) return null;
  for (let i = 0; i < STEPS; i++) {
    const middle = (low + high) / 2;
    if (priceAt(middle) < value) low = middle;
    else high = middle;
  }
  const volatility = (low + high) / 2;
  return isCertain({ ...given, volatility }) ? volatility : null;
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
