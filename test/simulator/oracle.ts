import type { ContractFilter } from "../../src/api-server/source.ts";
import type { IndexType } from "../../src/model/stream-columns.ts";
import type { DerivativeType, HistoryStream } from "../../src/model/streams.ts";
import { listContracts } from "../../src/simulator/market/contracts.ts";
import type { IndexSeries } from "../../src/simulator/market/indexes.ts";
import { createDerivativeTick } from "../../src/simulator/records/derivatives.ts";
import type { createExchangeTickers } from "../../src/simulator/records/exchange-tickers.ts";
import type { BarHistory, History, TickHistory } from "../../src/simulator/records/history.ts";
import { rankMarketCaps } from "../../src/simulator/records/market-caps.ts";
import type { QuirkyWorld } from "./quirky-world.ts";

type RecordOf<H extends History> = NonNullable<ReturnType<H["record"]>>;
type IndexTickRecord = RecordOf<TickHistory>;
type DailyBarRecord = RecordOf<BarHistory>;
export type ExchangeTickRecord = ReturnType<ReturnType<typeof createExchangeTickers>>[number];
export type MarketCapRecord = ReturnType<typeof rankMarketCaps>[number];
export type DerivativeTickRecord = ReturnType<typeof createDerivativeTick>;

/**
 * Tells tests what the service serves, without requests. All ranges are half-open; records are sorted oldest first. All
 * quirks apply.
 */
export class Oracle {
  readonly #world: QuirkyWorld;
  /** Bars that no longer change, by series and day: tests read the same days again and again. */
  readonly #settledBars = new Map<IndexSeries, Map<number, DailyBarRecord | undefined>>();

  constructor(world: QuirkyWorld) {
    this.#world = world;
  }

  /** The index ticks of [fromMs, toMs) that REST serves at `nowMs`. */
  indexTicks(type: IndexType, id: string, fromMs: number, toMs: number, nowMs: number): IndexTickRecord[] {
    const { ticks } = this.#world;
    const series = this.#findSeries(type, id);
    const published = listSteps(ticks, series, fromMs, toMs, nowMs);
    return published.flatMap((tick) => ticks.record(series, tick, nowMs) ?? []);
  }

  /** The same ticks without ids and texts of times. */
  indexTickFigures(type: IndexType, id: string, fromMs: number, toMs: number, nowMs: number) {
    const { ticks } = this.#world;
    const series = this.#findSeries(type, id);
    const published = listSteps(ticks, series, fromMs, toMs, nowMs);
    return published.map((tick) => ({
      ...ticks.content(series, tick, nowMs),
      ts: tick * ticks.stepMs * 1000,
    }));
  }

  /** Whether REST serves any record of [fromMs, toMs) at `nowMs`. */
  hasRecords(
    stream: HistoryStream,
    type: IndexType,
    id: string,
    fromMs: number,
    toMs: number,
    nowMs: number,
  ): boolean {
    const { ticks, bars } = this.#world;
    const series = this.#findSeries(type, id);
    if (stream === "index_ticks") return listSteps(ticks, series, fromMs, toMs, nowMs).length > 0;
    return listSteps(bars, series, fromMs, toMs, nowMs).some((day) => this.#dailyBar(series, day, nowMs));
  }

  /** The bars that REST serves at `nowMs` for the days that begin in [fromMs, toMs). */
  dailyBars(type: IndexType, id: string, fromMs: number, toMs: number, nowMs: number): DailyBarRecord[] {
    const series = this.#findSeries(type, id);
    const days = listSteps(this.#world.bars, series, fromMs, toMs, nowMs);
    return days.flatMap((day) => this.#dailyBar(series, day, nowMs) ?? []);
  }

  #dailyBar(series: IndexSeries, day: number, nowMs: number): DailyBarRecord | undefined {
    const { bars } = this.#world;
    if (!bars.isSettled(day, nowMs)) return bars.record(series, day, nowMs);
    const settled = this.#settledBars.get(series) ?? new Map();
    this.#settledBars.set(series, settled);
    if (!settled.has(day)) settled.set(day, bars.record(series, day, nowMs));
    return settled.get(day);
  }

  /** The tick of one market on one exchange that /exchange-ticker serves at `nowMs`. */
  exchangeTick(exchangeId: string, marketId: string, nowMs: number): ExchangeTickRecord | undefined {
    const [record] = this.#world.exchangeTickers(
      this.#newestTick(nowMs),
      ({ exchange, market }) => exchange.id === exchangeId && market.id === marketId,
    );
    return record;
  }

  /** All ticks that /exchange-ticker serves at `nowMs`. */
  exchangeTicks(nowMs: number): ExchangeTickRecord[] {
    return this.#world.exchangeTickers(this.#newestTick(nowMs));
  }

  /** The ranking that /market-cap serves at `nowMs`, largest first. */
  marketCaps(nowMs: number, percentChange = false): MarketCapRecord[] {
    return rankMarketCaps(this.#world, nowMs, percentChange);
  }

  contracts(type: DerivativeType, exchangeId: string, include: ContractFilter, nowMs: number) {
    return this.#listContracts(type, exchangeId, include, nowMs).map(({ record }) => record);
  }

  derivativeTicks(type: DerivativeType, exchangeId: string, nowMs: number): DerivativeTickRecord[] {
    const active = this.#listContracts(type, exchangeId, "ACTIVE", nowMs);
    return active.map((contract) => createDerivativeTick(this.#world, contract, this.#newestTick(nowMs)));
  }

  #listContracts(type: DerivativeType, exchangeId: string, include: ContractFilter, nowMs: number) {
    return this.#world.universe.exchanges
      .filter(({ id }) => id === exchangeId)
      .flatMap((exchange) => listContracts(this.#world, type, exchange, include, nowMs));
  }

  #newestTick(nowMs: number): number {
    return this.#world.calendar.newestTick(nowMs);
  }

  #findSeries(type: IndexType, id: string): IndexSeries {
    const series = this.#world.table.byId.get(id);
    if (!series || series.type !== type) throw new RangeError(`no index ${id} of type ${type}`);
    return series;
  }
}

/** The published steps of a history that begin in [fromMs, toMs). */
function listSteps(
  history: History,
  series: IndexSeries,
  fromMs: number,
  toMs: number,
  nowMs: number,
): number[] {
  const { oldest, newest } = history.stepRange(series, nowMs);
  const first = Math.max(oldest, Math.ceil(fromMs / history.stepMs));
  const end = Math.min(newest + 1, Math.ceil(toMs / history.stepMs));
  const steps = Array.from({ length: Math.max(0, end - first) }, (_, at) => first + at);
  return steps.filter((step) => history.isPublished(series, step, nowMs));
}
