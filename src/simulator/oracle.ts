import type {
  Contract,
  Contracts,
  DerivativeContractRecord,
  DerivativeType,
  Include,
} from "./market/contracts.ts";
import { DAY_MS } from "./market/format.ts";
import type { IndexSeries, IndexTable, IndexType } from "./market/indexes.ts";
import type { TickCalendar } from "./market/tick-calendar.ts";
import type { Universe } from "./market/universe.ts";
import type { BarHistory, DailyBarRecord } from "./rest/bar-history.ts";
import type { DerivativeTickers, DerivativeTickRecord } from "./rest/derivatives.ts";
import type { ExchangeTickers, ExchangeTickRecord } from "./rest/exchange-tickers.ts";
import type { MarketCapRecord, MarketCaps } from "./rest/market-caps.ts";
import type { IndexTickRecord, TickHistory } from "./rest/tick-history.ts";

export interface TruthParts {
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
export class Truth {
  readonly #parts: TruthParts;

  constructor(parts: TruthParts) {
    this.#parts = parts;
  }

  /** The index ticks of [fromMs, toMs) that REST serves at `nowMs`. */
  indexTicks(type: IndexType, id: string, fromMs: number, toMs: number, nowMs: number): IndexTickRecord[] {
    const series = this.#series(type, id);
    const { ticks, calendar } = this.#parts;
    const { oldest, newest } = ticks.span(series, nowMs);
    const first = Math.max(oldest, Math.ceil(fromMs / calendar.tickMs));
    const end = Math.min(newest + 1, Math.ceil(toMs / calendar.tickMs));
    const known: number[] = [];
    for (let tick = first; tick < end; tick++) if (ticks.known(series, tick, nowMs)) known.push(tick);
    return ticks.records(series, known, nowMs);
  }

  /** The bars of the days that begin in [fromMs, toMs) that REST serves at `nowMs`. */
  dailyBars(type: IndexType, id: string, fromMs: number, toMs: number, nowMs: number): DailyBarRecord[] {
    const series = this.#series(type, id);
    const { bars } = this.#parts;
    const { oldest, newest } = bars.span(series, nowMs);
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
    const { exchangeTickers, calendar } = this.#parts;
    return exchangeTickers.record(exchangeId, marketId, calendar.newest(nowMs));
  }

  /** All that /exchange-ticker serves at `nowMs`. */
  exchangeTicks(nowMs: number): ExchangeTickRecord[] {
    const { exchangeTickers, calendar } = this.#parts;
    return exchangeTickers.records(calendar.newest(nowMs));
  }

  /** The ranking that /market-cap serves at `nowMs`, first place first. */
  marketCaps(nowMs: number, percentChange = false): MarketCapRecord[] {
    return this.#parts.marketCaps.ranking(nowMs, percentChange);
  }

  contracts(
    type: DerivativeType,
    exchangeId: string,
    include: Include,
    nowMs: number,
  ): DerivativeContractRecord[] {
    return this.#contracts(type, exchangeId, include, nowMs).map(({ record }) => record);
  }

  derivativeTicks(type: DerivativeType, exchangeId: string, nowMs: number): DerivativeTickRecord[] {
    const { tickers, calendar } = this.#parts;
    const active = this.#contracts(type, exchangeId, "ACTIVE", nowMs);
    return active.map((contract) => tickers.record(contract, calendar.newest(nowMs)));
  }

  #contracts(type: DerivativeType, exchangeId: string, include: Include, nowMs: number): Contract[] {
    const exchange = this.#parts.universe.exchanges.find(({ id }) => id === exchangeId);
    if (!exchange) throw new RangeError(`no exchange ${exchangeId}`);
    return this.#parts.contracts.list(type, exchange, include, nowMs);
  }

  #series(type: IndexType, id: string): IndexSeries {
    const series = this.#parts.table.byId(id);
    if (!series || series.type !== type) throw new RangeError(`no index ${id} of type ${type}`);
    return series;
  }
}
