import { fractionOf, hashOf } from "./chance.ts";
import type { Contract } from "./contracts.ts";
import { plain } from "./decimal-text.ts";
import type { IndexFigures } from "./index-figures.ts";
import type { RecordIds } from "./record-ids.ts";
import type { TickCalendar } from "./tick-calendar.ts";
import { UtcWriter } from "./utc-text.ts";

export interface DerivativeTickRecord {
  readonly id: string;
  readonly contractId: string;
  readonly exchangeId: string;
  readonly marketId: string;
  readonly timestamp: string;
  readonly price: string;
  readonly volume: string;
  readonly volumeUsd: string;
  readonly bid: string;
  readonly ask: string;
  readonly openInterest: string;
  readonly openInterestUsd: string;
  readonly indexPrice: string;
  readonly markPrice: string;
  /** Perpetuals only. */
  readonly fundingRate?: string;
}

const YEAR_MS = 31_557_600_000;
const FUNDING_MS = 8 * 3_600_000;

export interface DerivativeTickerParts {
  readonly seed: number;
  readonly figures: IndexFigures;
  readonly calendar: TickCalendar;
  readonly ids: RecordIds;
  readonly fractionDigits: 0 | 3 | 6;
}

/** Prices of contracts, near the index of their market. */
export class DerivativeTickers {
  readonly #parts: DerivativeTickerParts;
  readonly #utc: UtcWriter;

  constructor(parts: DerivativeTickerParts) {
    this.#parts = parts;
    this.#utc = new UtcWriter(parts.fractionDigits);
  }

  record(contract: Contract, tick: number): DerivativeTickRecord {
    const { seed, figures, calendar, ids } = this.#parts;
    const { series, ordinal, step, strike, expirationMs } = contract;
    const atMs = tick * calendar.tickMs;
    const index = Math.exp(figures.logAt(series, tick));
    const years = expirationMs === undefined ? 0 : Math.max(0, expirationMs - atMs) / YEAR_MS;
    const wobble = (fractionOf(seed, 91, ordinal, step, tick) - 0.5) * 0.0004;
    const forward = index * Math.exp(0.06 * years);
    const mark =
      strike === undefined
        ? forward
        : optionValue(
            forward,
            strike,
            series.base.path.yearlyVolatility * Math.sqrt(years),
            contract.record.optionType,
          );
    const digits = series.priceDigits;
    const price = Math.max(mark * (1 + wobble), 10 ** (1 - digits));
    const half = Math.max(price * 0.0003, 2 * 10 ** -digits);
    const volume =
      series.dailyVolume * 0.02 * (0.5 + fractionOf(seed, 92, ordinal, step, Math.floor(tick / 10)));
    const open =
      series.dailyVolume * 0.05 * (0.5 + fractionOf(seed, 93, ordinal, step, Math.floor(tick / 100)));
    const slot = Math.floor(atMs / FUNDING_MS);
    const unique = hashOf(step, tick) * 2 ** 16 + (hashOf(tick, step) & 0xffff);
    return {
      id: ids.id("derivative tick", ordinal, unique),
      contractId: contract.record.id,
      exchangeId: contract.record.exchangeId,
      marketId: contract.record.marketId,
      timestamp: this.#utc.write(atMs),
      price: plain(price, digits),
      volume: plain(volume, 4),
      volumeUsd: plain(volume * index, 2),
      bid: plain(Math.max(price - half, 10 ** -digits), digits),
      ask: plain(price + half, digits),
      openInterest: plain(open, 4),
      openInterestUsd: plain(open * index, 2),
      indexPrice: plain(index, digits),
      markPrice: plain(mark, digits),
      ...(expirationMs === undefined
        ? { fundingRate: plain(0.0001 + (fractionOf(seed, 94, ordinal, slot) - 0.5) * 0.0004, 8) }
        : {}),
    };
  }
}

/** Black's formula without interest. */
function optionValue(
  forward: number,
  strike: number,
  deviation: number,
  type: "CALL" | "PUT" | undefined,
): number {
  const sign = type === "PUT" ? -1 : 1;
  if (deviation < 1e-9) return Math.max(0, sign * (forward - strike));
  const d1 = Math.log(forward / strike) / deviation + deviation / 2;
  return sign * (forward * normal(sign * d1) - strike * normal(sign * (d1 - deviation)));
}

/** The normal distribution, by a logistic curve that is within one part in seven thousand of it. */
function normal(x: number): number {
  return 1 / (1 + Math.exp(-1.5976 * x - 0.070566 * x ** 3));
}
