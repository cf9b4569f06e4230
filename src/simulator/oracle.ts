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

export interface OracleOptions {
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
 * What the service would answer, without asking it: the oracle of tests. All ranges are half-open, records come oldest
 * first, and every switch of the quirks is obeyed, but for how records are written (decimals are text here).
 */
export class Oracle {
  readonly #options: OracleOptions;

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
    const series = this.#series(type, id);
    const { ticks, calendar } = this.#options;
    const { oldest, newest } = ticks.stepRange(series, nowMs);
    const first = Math.max(oldest, Math.ceil(fromMs / calendar.tickMs));
    const end = Math.min(newest + 1, Math.ceil(toMs / calendar.tickMs));
    const known: number[] = [];
    for (let tick = first; tick < end; tick++) if (ticks.isPublished(series, tick, nowMs)) known.push(tick);
    return ticks.records(series, known, nowMs);
  }

  /** The bars of the days that begin in [fromMs, toMs) that REST serves at `nowMs`. */
  dailyBars(
    type: SimulatedIndexType,
    id: string,
    fromMs: number,
    toMs: number,
    nowMs: number,
  ): DailyBarRecord[] {
    const series = this.#series(type, id);
    const { bars } = this.#options;
    const { oldest, newest } = bars.stepRange(series, nowMs);
    const first = Math.max(oldest, Math.ceil(fromMs / DAY_MS));
    const end = Math.min(newest + 1, Math.ceil(toMs / DAY_MS));
    const found: DailyBarRecord[] = [];
    for (let day = first; day < end; day++) {
      const record = bars.record(series, day, nowMs);
      if (record) found.push(record);
    }
    return found;
  }

  /** The tick of one market on one exchange that /exchange-ticker serves at `nowMs`. */
  exchangeTick(exchangeId: string, marketId: string, nowMs: number): ExchangeTickRecord | undefined {
    const { exchangeTickers, calendar } = this.#options;
    return exchangeTickers.record(exchangeId, marketId, calendar.newestTick(nowMs));
  }

  /** All that /exchange-ticker serves at `nowMs`. */
  exchangeTicks(nowMs: number): ExchangeTickRecord[] {
    const { exchangeTickers, calendar } = this.#options;
    return exchangeTickers.records(calendar.newestTick(nowMs));
  }

  /** The ranking that /market-cap serves at `nowMs`, first place first. */
  marketCaps(nowMs: number, percentChange = false): MarketCapRecord[] {
    return this.#options.marketCaps.ranking(nowMs, percentChange);
  }

  contracts(
    type: SimulatedDerivativeType,
    exchangeId: string,
    include: ContractFilter,
    nowMs: number,
  ): DerivativeContractRecord[] {
    return this.#contracts(type, exchangeId, include, nowMs).map(({ record }) => record);
  }

  derivativeTicks(type: SimulatedDerivativeType, exchangeId: string, nowMs: number): DerivativeTickRecord[] {
    const { tickers, calendar } = this.#options;
    const active = this.#contracts(type, exchangeId, "ACTIVE", nowMs);
    return active.map((contract) => tickers.record(contract, calendar.newestTick(nowMs)));
  }

  #contracts(
    type: SimulatedDerivativeType,
    exchangeId: string,
    include: ContractFilter,
    nowMs: number,
  ): Contract[] {
    const exchange = this.#options.universe.exchanges.find(({ id }) => id === exchangeId);
    if (!exchange) throw new RangeError(`no exchange ${exchangeId}`);
    return this.#options.contracts.list(type, exchange, include, nowMs);
  }

  #series(type: SimulatedIndexType, id: string): IndexSeries {
    const series = this.#options.table.byId(id);
    if (!series || series.type !== type) throw new RangeError(`no index ${id} of type ${type}`);
    return series;
  }
}
