import type {
  Contract,
  ContractFilter,
  Contracts,
  DerivativeContractRecord,
  SimulatedDerivativeType,
} from "./market/contracts.ts";
import { DAY_MS } from "./market/format.ts";
import type { IndexSeries, IndexTable, SimulatedIndexType } from "./market/indexes.ts";
import type { TickCalendar } from "./market/tick-calendar.ts";
import type { Universe } from "./market/universe.ts";
import type { BarHistory, DailyBarRecord } from "./rest/bar-history.ts";
import type { DerivativeTickers, DerivativeTickRecord } from "./rest/derivatives.ts";
import type { ExchangeTickers, ExchangeTickRecord } from "./rest/exchange-tickers.ts";
import type { MarketCapRecord, MarketCaps } from "./rest/market-caps.ts";
import type { IndexTickRecord, TickHistory } from "./rest/tick-history.ts";

interface OracleOptions {
  readonly universe: Universe;
  readonly table: IndexTable;
  readonly calendar: TickCalendar;
  readonly ticks: TickHistory;
  readonly bars: BarHistory;
  readonly exchangeTickers: ExchangeTickers;
  readonly marketCaps: MarketCaps;
  readonly contracts: Contracts;
  readonly tickers: DerivativeTickers;
}

/**
 * Tells tests what the service serves, without requests. All ranges are half-open; records are sorted oldest first. All
 * quirks apply, except for the format of records (decimals are strings here).
 */
export class Oracle {
  readonly #options: OracleOptions;
  /** Bars that no longer change, by series and day: tests read the same days again and again. */
  readonly #settledBars = new Map<IndexSeries, Map<number, DailyBarRecord | undefined>>();

  constructor(options: OracleOptions) {
    this.#options = options;
  }

  /** The index ticks of [fromMs, toMs) that REST serves at `nowMs`. */
  indexTicks(
    type: SimulatedIndexType,
    id: string,
    fromMs: number,
    toMs: number,
    nowMs: number,
  ): IndexTickRecord[] {
    const series = this.#findSeries(type, id);
    const { ticks, calendar } = this.#options;
    const { oldest, newest } = ticks.stepRange(series, nowMs);
    const first = Math.max(oldest, Math.ceil(fromMs / calendar.tickMs));
    const end = Math.min(newest + 1, Math.ceil(toMs / calendar.tickMs));
    const published: number[] = [];
    for (let tick = first; tick < end; tick++)
      if (ticks.isPublished(series, tick, nowMs)) published.push(tick);
    return ticks.records(series, published, nowMs);
  }

  /** The bars that REST serves at `nowMs` for the days that begin in [fromMs, toMs). */
  dailyBars(
    type: SimulatedIndexType,
    id: string,
    fromMs: number,
    toMs: number,
    nowMs: number,
  ): DailyBarRecord[] {
    const series = this.#findSeries(type, id);
    const { bars } = this.#options;
    const { oldest, newest } = bars.stepRange(series, nowMs);
    const first = Math.max(oldest, Math.ceil(fromMs / DAY_MS));
    const end = Math.min(newest + 1, Math.ceil(toMs / DAY_MS));
    const records: DailyBarRecord[] = [];
    for (let day = first; day < end; day++) {
      const record = this.#dailyBar(series, day, nowMs);
      if (record) records.push(record);
    }
    return records;
  }

  #dailyBar(series: IndexSeries, day: number, nowMs: number): DailyBarRecord | undefined {
    const { bars } = this.#options;
    if (!bars.isSettled(day, nowMs)) return bars.record(series, day, nowMs);
    const settled = this.#settledBars.get(series) ?? new Map();
    this.#settledBars.set(series, settled);
    if (!settled.has(day)) settled.set(day, bars.record(series, day, nowMs));
    return settled.get(day);
  }

  /** The tick of one market on one exchange that /exchange-ticker serves at `nowMs`. */
  exchangeTick(exchangeId: string, marketId: string, nowMs: number): ExchangeTickRecord | undefined {
    const { exchangeTickers, calendar } = this.#options;
    return exchangeTickers.record(exchangeId, marketId, calendar.newestTick(nowMs));
  }

  /** All ticks that /exchange-ticker serves at `nowMs`. */
  exchangeTicks(nowMs: number): ExchangeTickRecord[] {
    const { exchangeTickers, calendar } = this.#options;
    return exchangeTickers.records(calendar.newestTick(nowMs));
  }

  /** The ranking that /market-cap serves at `nowMs`, largest first. */
  marketCaps(nowMs: number, percentChange = false): MarketCapRecord[] {
    return this.#options.marketCaps.ranking(nowMs, percentChange);
  }

  contracts(
    type: SimulatedDerivativeType,
    exchangeId: string,
    include: ContractFilter,
    nowMs: number,
  ): DerivativeContractRecord[] {
    return this.#listContracts(type, exchangeId, include, nowMs).map(({ record }) => record);
  }

  derivativeTicks(type: SimulatedDerivativeType, exchangeId: string, nowMs: number): DerivativeTickRecord[] {
    const { tickers, calendar } = this.#options;
    const active = this.#listContracts(type, exchangeId, "ACTIVE", nowMs);
    return active.map((contract) => tickers.record(contract, calendar.newestTick(nowMs)));
  }

  #listContracts(
    type: SimulatedDerivativeType,
    exchangeId: string,
    include: ContractFilter,
    nowMs: number,
  ): Contract[] {
    const exchange = this.#options.universe.exchanges.find(({ id }) => id === exchangeId);
    if (!exchange) throw new RangeError(`no exchange ${exchangeId}`);
    return this.#options.contracts.list(type, exchange, include, nowMs);
  }

  #findSeries(type: SimulatedIndexType, id: string): IndexSeries {
    const series = this.#options.table.byId(id);
    if (!series || series.type !== type) throw new RangeError(`no index ${id} of type ${type}`);
    return series;
  }
}
