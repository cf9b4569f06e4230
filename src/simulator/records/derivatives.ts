import type { Contract } from "../market/contracts.ts";
import { formatDecimal, formatUtc } from "../market/format.ts";
import { hashFraction, hashNumbers } from "../market/hash.ts";
import type { MarketModel } from "../market/market-model.ts";

const YEAR_MS = 365 * 86_400_000;
const FUNDING_INTERVAL_MS = 8 * 3_600_000;

/** Prices a contract near the index of its market. */
export function createDerivativeTick(market: MarketModel, contract: Contract, tick: number) {
  const { seed, indexValues, calendar, ids } = market;
  const { series, ordinal, step, strike, expirationMs, record } = contract;
  const atMs = tick * calendar.tickMs;
  const index = Math.exp(indexValues.logPriceAt(series, tick));
  const years = expirationMs === undefined ? 0 : Math.max(0, expirationMs - atMs) / YEAR_MS;
  const noise = (hashFraction(seed, 91, ordinal, step, tick) - 0.5) * 0.0004;
  const forward = index * Math.exp(0.06 * years);
  const mark =
    strike === undefined
      ? forward
      : priceOption(
          forward,
          strike,
          series.base.priceParameters.yearlyVolatility * Math.sqrt(years),
          record.optionType,
        );
  const digits = series.priceDigits;
  const price = Math.max(mark * (1 + noise), 10 ** (1 - digits));
  const halfSpread = Math.max(price * 0.0003, 2 * 10 ** -digits);
  const volume =
    series.dailyVolume * 0.02 * (0.5 + hashFraction(seed, 92, ordinal, step, Math.floor(tick / 10)));
  const quoteUsd = series.quote ? Math.exp(indexValues.usdLogPriceAt(series.quote, tick)) : 1;
  const baseUsd = index * quoteUsd;
  const contractUsd =
    Number(record.contractValue) * (record.valueCurrency === series.base.symbol ? baseUsd : quoteUsd);
  const heldUsd =
    series.dailyVolume *
    0.05 *
    (0.5 + hashFraction(seed, 93, ordinal, step, Math.floor(tick / 100))) *
    baseUsd;
  const openInterest = formatDecimal(heldUsd / contractUsd, 4);
  const fundingPeriod = Math.floor(atMs / FUNDING_INTERVAL_MS);
  const idStep = hashNumbers(step, tick) * 2 ** 16 + (hashNumbers(tick, step) & 0xffff);
  return {
    id: ids.encode("derivative tick", ordinal, idStep),
    contractId: record.id,
    exchangeId: record.exchangeId,
    marketId: record.marketId,
    timestamp: formatUtc(atMs),
    price: formatDecimal(price, digits),
    volume: formatDecimal(volume, 4),
    volumeUsd: formatDecimal(volume * baseUsd, 2),
    bid: formatDecimal(Math.max(price - halfSpread, 10 ** -digits), digits),
    ask: formatDecimal(price + halfSpread, digits),
    openInterest,
    openInterestUsd: formatDecimal(Number(openInterest) * contractUsd, 2),
    indexPrice: formatDecimal(index, digits),
    markPrice: formatDecimal(mark, digits),
    ...(expirationMs === undefined
      ? {
          fundingRate: formatDecimal(
            0.0001 + (hashFraction(seed, 94, ordinal, fundingPeriod) - 0.5) * 0.0004,
            8,
          ),
        }
      : {}),
  };
}

/** Black's formula with zero interest. */
function priceOption(
  forward: number,
  strike: number,
  deviation: number,
  type: "CALL" | "PUT" | undefined,
): number {
  const sign = type === "PUT" ? -1 : 1;
  if (deviation < 1e-9) return Math.max(0, sign * (forward - strike));
  const d1 = Math.log(forward / strike) / deviation + deviation / 2;
  return (
    sign * (forward * normalDistribution(sign * d1) - strike * normalDistribution(sign * (d1 - deviation)))
  );
}

/** The cumulative normal distribution, approximated by a logistic curve with an error below 1/7000. */
function normalDistribution(x: number): number {
  return 1 / (1 + Math.exp(-1.5976 * x - 0.070566 * x ** 3));
}
