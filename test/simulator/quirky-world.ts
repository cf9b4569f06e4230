import { DAY_MS, formatDecimal, formatUtc } from "../../src/simulator/market/format.ts";
import { hashFraction } from "../../src/simulator/market/hash.ts";
import type { DaySummary, IndexSeries } from "../../src/simulator/market/indexes.ts";
import {
  createMarketModel,
  createTickCalendar,
  type MarketModel,
  type MarketModelOptions,
} from "../../src/simulator/market/market-model.ts";
import { createExchangeTickers } from "../../src/simulator/records/exchange-tickers.ts";
import {
  type BarContent,
  BarHistory,
  type TickContent,
  TickHistory,
} from "../../src/simulator/records/history.ts";
import type { Quirks } from "./quirks.ts";

export type QuirkyWorld = ReturnType<typeof createQuirkyWorld>;

/** Whether a quirk affects this position: true for `perMille` of every thousand positions. */
const isAffected = (perMille: number, ...parts: readonly number[]): boolean =>
  perMille > 0 && hashFraction(...parts) * 1000 < perMille;

/** The data of the simulated service, with what the specification leaves open to it. */
export function createQuirkyWorld(
  { seed, size, tickMs }: Pick<MarketModelOptions, "seed" | "size" | "tickMs">,
  quirks: Quirks,
) {
  const { ids, optionStrikes, listed } = quirks;
  const formatId = (uuid: string) => (ids === "uuid" ? uuid : `idé/${uuid}%2F+${"long".repeat(40)}∆`);
  const calendar = createQuirkyCalendar(seed, tickMs, quirks);
  const market = {
    ...createMarketModel({ seed, size, tickMs, formatId, optionStrikes }),
    ...{ quirks, calendar },
  };
  const listedDay = Math.floor(Date.parse(listed.on) / DAY_MS);
  for (const series of market.table.all)
    if (isAffected(listed.perMille, seed, 64, series.rank))
      Object.assign(series, {
        firstDay: Math.min(series.endDay, Math.max(series.firstDay, listedDay)),
      });
  return {
    ...market,
    ticks: new QuirkyTicks(market),
    bars: new QuirkyBars(market),
    exchangeTickers: createExchangeTickers(market),
  };
}

interface QuirkyMarket extends MarketModel {
  readonly quirks: Quirks;
  readonly calendar: ReturnType<typeof createQuirkyCalendar>;
}

/** Also decides when each tick becomes final. */
function createQuirkyCalendar(seed: number, tickMs: number, quirks: Quirks) {
  const usual = createTickCalendar(tickMs);
  const { late, corrections, missingPerMille, closedDays } = quirks;
  const lateMs = late.perMille > 0 ? late.seconds * 1000 : 0;
  const correctedMs = corrections.perMille > 0 ? corrections.minutes * 60_000 : 0;
  const settleDelayMs = Math.max(lateMs, correctedMs);
  const hasChangingTicks = settleDelayMs > 0 || missingPerMille > 0 || closedDays > 0;
  return {
    ...usual,
    /** How long after its timestamp a tick may still appear or change. */
    settleDelayMs,
    /** True when some ticks are late, missing, corrected, or not on every day. */
    hasChangingTicks,
    isPublished(series: IndexSeries, tick: number, nowMs: number): boolean {
      if (!hasChangingTicks) return usual.isPublished(series, tick, nowMs);
      if (isAffected(missingPerMille, seed, 61, series.rank, tick)) return false;
      if (Math.floor((tick * tickMs) / DAY_MS) % 7 < closedDays) return false;
      const delay = isAffected(late.perMille, seed, 62, series.rank, tick) ? late.seconds * 1000 : 0;
      return tick * tickMs + delay <= nowMs;
    },
    /** The error in the logarithm of the price, until the tick is corrected. */
    priceError(series: IndexSeries, tick: number, nowMs: number): number {
      const { perMille, minutes } = corrections;
      if (perMille === 0 || tick * tickMs + minutes * 60_000 <= nowMs) return 0;
      return isAffected(perMille, seed, 63, series.rank, tick) ? 0.0123 : 0;
    },
  };
}

class QuirkyTicks extends TickHistory {
  readonly #market: QuirkyMarket;

  constructor(market: QuirkyMarket) {
    super(market);
    this.#market = market;
  }

  override content(series: IndexSeries, tick: number, nowMs: number): TickContent {
    const { calendar, indexValues } = this.#market;
    const content = super.content(series, tick, nowMs);
    const error = calendar.priceError(series, tick, nowMs);
    if (error === 0) return content;
    const price = Math.exp(indexValues.logPriceAt(series, tick) + error);
    return { ...content, price: formatDecimal(price, series.priceDigits) };
  }
}

class QuirkyBars extends BarHistory {
  readonly #market: QuirkyMarket;
  override readonly boundMs: number;
  readonly #endMs: number;

  constructor(market: QuirkyMarket) {
    super(market);
    this.#market = market;
    this.#endMs = market.quirks.barEnd === "midnight" ? DAY_MS : DAY_MS - 1;
    this.boundMs = market.quirks.ohlcvTimestamp === "start" ? 0 : this.#endMs;
  }

  /** Whether this day and all older ones are final, except for leaving the window. */
  isSettled(day: number, nowMs: number): boolean {
    return (day + 1) * DAY_MS + this.#market.calendar.settleDelayMs <= nowMs;
  }

  override stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number } {
    return super.stepRange(series, this.#market.quirks.partialBar ? nowMs : nowMs - DAY_MS);
  }

  override content(series: IndexSeries, day: number, nowMs: number): BarContent | undefined {
    const content = super.content(series, day, nowMs);
    const start = day * DAY_MS;
    const timestamp = this.#market.quirks.barTimestamp ? { timestamp: formatUtc(start) } : {};
    return content && { ...content, endTimestamp: formatUtc(start + this.#endMs), ...timestamp };
  }

  protected override summarize(series: IndexSeries, day: number, nowMs: number): DaySummary | undefined {
    const { calendar } = this.#market;
    return calendar.hasChangingTicks
      ? this.#summarizePublished(series, day, nowMs)
      : super.summarize(series, day, nowMs);
  }

  /** Reads every tick that is published by `nowMs`, with its uncorrected error. */
  #summarizePublished(series: IndexSeries, day: number, nowMs: number): DaySummary | undefined {
    const { calendar, indexValues } = this.#market;
    const end = Math.min(calendar.firstTickOfDay(day + 1), calendar.newestTick(nowMs) + 1);
    let summary: DaySummary | undefined;
    for (let tick = calendar.firstTickOfDay(day); tick < end; tick++) {
      if (!calendar.isPublished(series, tick, nowMs)) continue;
      const log = indexValues.logPriceAt(series, tick) + calendar.priceError(series, tick, nowMs);
      const { open, high, low } = summary ?? { open: log, high: log, low: log };
      summary = { open, high: Math.max(high, log), low: Math.min(low, log), close: log, lastTick: tick };
    }
    return summary;
  }
}
