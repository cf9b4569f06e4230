import { MICROS_PER_SECOND, type Micros } from "../model/instant.ts";
import type { ExchangeTick, IndexTick } from "../model/records.ts";
import type { TimeRange } from "../model/time-range.ts";
import { retract } from "../warehouse/ledger.ts";
import {
  beginLiveSpans,
  endLiveSpans,
  extendLiveSpans,
  forgetLiveSpans,
  type LiveSpan,
} from "../warehouse/live-spans.ts";
import { observe } from "../warehouse/observations.ts";
import type { Transaction } from "../warehouse/transaction.ts";
import type { Warehouse } from "../warehouse/warehouse.ts";

/** A ledger line of the exchange tickers whose subscriptions all flow. */
export interface LiveExchange {
  /** Null: every exchange. */
  readonly exchangeId: string | null;
  /** When the last of its subscriptions was confirmed. */
  readonly since: Micros;
}

/** How the live feed stands; what is left out has not changed. */
export interface ListeningChange {
  /** The feed begins: whatever stands there is of another time. */
  readonly anew?: boolean;
  readonly begun?: readonly LiveSpan[];
  readonly ended?: readonly Omit<LiveSpan, "from">[];
  /** All lines of the exchange tickers that are heard whole. */
  readonly exchanges?: readonly LiveExchange[];
  /** Markets whose ticks are kept; null: all. */
  readonly markets?: ReadonlySet<string> | null;
  /** Observations that turn out to have missed something. */
  readonly unobserved?: readonly ({ readonly exchangeId: string | null } & TimeRange)[];
  /** How long one exchange tick speaks for. */
  readonly cadence?: Micros;
}

const stream = "exchange_ticks";
/** The service's clock is known to about a second. A tick from further ahead says nothing about what was heard until then. */
const SKEW_BORNE = 10 * MICROS_PER_SECOND;

/** What the ingest thread knows of the live feed: it decides what a tick means for the ledger. */
export class Listening {
  #exchanges = new Map<string | null, Micros>();
  #markets: ReadonlySet<string> | null = null;
  #cadence: Micros = 30_000_000;
  /** The last period that was entered for a line: thousands of ticks share one. */
  readonly #entered = new Map<string | null, Micros>();

  change(warehouse: Warehouse, change: ListeningChange): void {
    this.#entered.clear();
    const { exchanges, markets, cadence, begun = [], ended = [], unobserved = [] } = change;
    if (exchanges) this.#exchanges = new Map(exchanges.map(({ exchangeId, since }) => [exchangeId, since]));
    if (markets !== undefined) this.#markets = markets;
    if (cadence !== undefined) this.#cadence = cadence;
    warehouse.transaction((transaction) => {
      if (change.anew) forgetLiveSpans(transaction);
      endLiveSpans(transaction, ended);
      beginLiveSpans(transaction, begun);
      for (const { exchangeId, from, to } of unobserved) {
        const line = { stream, series: transaction.dictionary.subscription(exchangeId) } as const;
        retract(transaction, line, { from, to });
      }
    });
  }

  /** Ticks of markets that the settings do not select come with subscriptions to more. */
  wanted(ticks: readonly ExchangeTick[]): readonly ExchangeTick[] {
    const markets = this.#markets;
    return markets === null ? ticks : ticks.filter(({ marketId }) => markets.has(marketId));
  }

  heardIndices(transaction: Transaction, ticks: readonly IndexTick[]): void {
    const newest = new Map<string, Micros>();
    for (const { indexType, ts } of ticks) {
      if (ts <= transaction.now + SKEW_BORNE && ts > (newest.get(indexType) ?? 0)) newest.set(indexType, ts);
    }
    for (const [indexType, ts] of newest) extendLiveSpans(transaction, indexType, ts);
  }

  heardExchanges(transaction: Transaction, ticks: readonly ExchangeTick[]): void {
    if (this.#exchanges.size === 0) return;
    for (const { exchangeId, ts } of ticks) {
      if (ts > transaction.now + SKEW_BORNE) continue;
      this.#observe(transaction, null, ts);
      this.#observe(transaction, exchangeId, ts);
    }
  }

  /** A transaction was rolled back: what was entered in it is to be entered again. */
  forget(): void {
    this.#entered.clear();
  }

  #observe(transaction: Transaction, exchangeId: string | null, ts: Micros): void {
    const since = this.#exchanges.get(exchangeId);
    if (since === undefined || ts < since) return;
    const cadence = this.#cadence;
    const at = Math.floor(ts / cadence) * cadence;
    if (this.#entered.get(exchangeId) === at) return;
    observe(transaction, { stream, exchangeId, at, cadence });
    this.#entered.set(exchangeId, at);
  }
}
