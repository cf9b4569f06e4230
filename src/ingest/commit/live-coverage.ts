import type { ExchangeTick, IndexTick } from "../../model/records.ts";
import { DEFAULT_CADENCE } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { retract } from "../../warehouse/coverage/ledger.ts";
import {
  beginLiveSpans,
  endLiveSpans,
  extendLiveSpans,
  forgetLiveSpans,
  type LiveSpan,
} from "../../warehouse/coverage/live-spans.ts";
import { observe } from "../../warehouse/coverage/snapshot-coverage.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { Warehouse } from "../../warehouse/writer.ts";

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
/** The service's clock is known to about a second. */
const CLOCK_KNOWN_TO = 2 * MICROS_PER_SECOND;
/** A tick from further ahead says nothing about what was heard until then. */
const SKEW_BORNE = 10 * MICROS_PER_SECOND;

/** So soon after its cause a disconnect is noticed when it is told, and not found out by a missing answer. */
const NOTICED_WITHIN = 10 * MICROS_PER_SECOND;

/** The period that a line is in. */
interface HeardPeriod {
  readonly at: Micros;
  /** None of its ticks so far was of a market that is kept. */
  readonly isEmpty: boolean;
}

/** What the ingest thread knows of the live feed: it decides what a tick means for the ledger. */
export class Listening {
  #exchanges = new Map<string | null, Micros>();
  #markets: ReadonlySet<string> | null = null;
  #cadence: Micros = DEFAULT_CADENCE;
  /** The period that each line is in: heard as far as it has come, and entered once the next one speaks. */
  #current = new Map<string | null, HeardPeriod>();
  readonly #steps = new LiveSteps();

  change(warehouse: Warehouse, change: ListeningChange): void {
    const { exchanges, markets, cadence, begun = [], ended = [], unobserved = [] } = change;
    const heard = exchanges && new Map(exchanges.map(({ exchangeId, since }) => [exchangeId, since]));
    if (markets !== undefined) this.#markets = markets;
    if (cadence !== undefined) this.#cadence = cadence;
    warehouse.transaction((transaction) => {
      if (heard) this.#closePeriods(transaction, heard);
      if (change.anew) forgetLiveSpans(transaction);
      endLiveSpans(transaction, ended);
      beginLiveSpans(transaction, begun);
      for (const { exchangeId, from, to } of unobserved) {
        const line = { stream, series: transaction.dictionary.subscription(exchangeId) } as const;
        retract(transaction, line, { from, to });
      }
    });
    if (!heard) return;
    // Whoever was not heard for a while, or is heard anew, hears its period in part only.
    for (const line of this.#current.keys())
      if (heard.get(line) !== this.#exchanges.get(line)) this.#current.delete(line);
    this.#exchanges = heard;
  }

  /** A line that breaks off just after its period was over has heard that one whole; later, who knows since when it was deaf. */
  #closePeriods(transaction: Transaction, heard: ReadonlyMap<string | null, Micros>): void {
    for (const [exchangeId, { at, isEmpty }] of this.#current) {
      const since = this.#exchanges.get(exchangeId);
      if (since === undefined || heard.get(exchangeId) === since || at < since) continue;
      const over = transaction.now - (at + this.#cadence);
      if (over > -CLOCK_KNOWN_TO && over < NOTICED_WITHIN)
        observe(transaction, { stream, exchangeId, at, cadence: this.#cadence, isEmpty });
    }
  }

  /** Ticks of markets that the settings do not select come with subscriptions to more. */
  wanted(ticks: readonly ExchangeTick[]): readonly ExchangeTick[] {
    return this.#markets === null ? ticks : ticks.filter((tick) => this.#isWanted(tick));
  }

  #isWanted({ marketId }: ExchangeTick): boolean {
    return this.#markets?.has(marketId) ?? true;
  }

  /** Returns those of them that can be of this time. */
  heardIndices(transaction: Transaction, ticks: readonly IndexTick[]): readonly IndexTick[] {
    const credible = ticks.filter(({ ts }) => ts <= transaction.now + SKEW_BORNE);
    const newest = new Map<string, Micros>();
    for (const { indexType, ts } of credible)
      if (ts > (newest.get(indexType) ?? 0)) newest.set(indexType, ts);
    for (const [indexType, ts] of newest) extendLiveSpans(transaction, indexType, ts);
    return credible;
  }

  /** Where the feed seems to have left ticks out; to be asked once the batch is on disk. */
  skipsAmong(ticks: readonly IndexTick[]): readonly Skip[] {
    return this.#steps.take(ticks, this.#cadence);
  }

  heardExchanges(transaction: Transaction, ticks: readonly ExchangeTick[]): void {
    if (this.#exchanges.size === 0) return;
    for (const tick of ticks) {
      if (tick.ts > transaction.now + SKEW_BORNE) continue;
      this.#observe(transaction, null, tick);
      this.#observe(transaction, tick.exchangeId, tick);
    }
  }

  /**
   * Does what stores a batch. If that fails, at whatever point, nothing of the batch was heard: what was to be entered with it
   * is to be entered again.
   */
  during<T>(batch: () => T): T {
    const before = new Map(this.#current);
    try {
      return batch();
    } catch (error) {
      this.#current = before;
      throw error;
    }
  }

  /**
   * A period counts as observed when the next one begins to speak, not at its own first tick: a disconnect, an overflow or
   * the end of the process in the midst of it leaves the rest unheard, and nobody could fetch it later.
   */
  #observe(transaction: Transaction, exchangeId: string | null, tick: ExchangeTick): void {
    const since = this.#exchanges.get(exchangeId);
    if (since === undefined || tick.ts < since) return;
    const cadence = this.#cadence;
    const at = Math.floor(tick.ts / cadence) * cadence;
    const heard = this.#current.get(exchangeId);
    if (heard !== undefined && (at < heard.at || (at === heard.at && !heard.isEmpty))) return;
    this.#current.set(exchangeId, { at, isEmpty: !this.#isWanted(tick) });
    if (heard !== undefined && heard.at >= since && heard.at < at)
      observe(transaction, { stream, exchangeId, at: heard.at, cadence, isEmpty: heard.isEmpty });
  }
}

/** Two ticks of an index that followed each other on the live feed, with room for another between them. */
export interface Skip {
  readonly indexType: string;
  readonly indexId: string;
  readonly after: Micros;
  readonly at: Micros;
}

interface Steps {
  newest: Micros;
  /** The last step, if it was too long: what was left out may still come late. */
  long: Skip | undefined;
}

/** A step longer than so many cadences leaves room for a tick. */
const ROOM = 1.5;

/** How the live ticks of each index follow each other: shows what the feed has left out in silence. */
export class LiveSteps {
  /** By type and index. */
  readonly #steps = new Map<string, Map<string, Steps>>();

  /** Returns the steps that were too long and stayed so until the tick after them. */
  take(ticks: readonly IndexTick[], cadence: Micros): Skip[] {
    const skips: Skip[] = [];
    for (const { indexType, indexId, ts } of ticks) {
      let ofType = this.#steps.get(indexType);
      if (!ofType) {
        ofType = new Map();
        this.#steps.set(indexType, ofType);
      }
      const steps = ofType.get(indexId);
      if (!steps) ofType.set(indexId, { newest: ts, long: undefined });
      else if (ts > steps.newest) {
        if (steps.long) skips.push(steps.long);
        const { newest: after } = steps;
        // Nearly none has room: nothing is made for the others.
        steps.long = hasRoom(after, ts, cadence) ? { indexType, indexId, after, at: ts } : undefined;
        steps.newest = ts;
      } else if (steps.long && ts > steps.long.after && ts < steps.long.at) {
        const parts = [
          { ...steps.long, at: ts },
          { ...steps.long, after: ts },
        ];
        steps.long = parts.find(({ after, at }) => hasRoom(after, at, cadence));
      }
    }
    return skips;
  }
}

function hasRoom(after: Micros, at: Micros, cadence: Micros): boolean {
  return at - after > ROOM * cadence;
}
