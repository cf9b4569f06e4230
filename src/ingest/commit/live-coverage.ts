import type { ExchangeTick, IndexTick } from "../../model/records.ts";
import { DEFAULT_CADENCE } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { retract } from "../../warehouse/coverage/ledger.ts";
import {
  beginLiveSpans,
  clearLiveSpans,
  endLiveSpans,
  extendLiveSpans,
  type LiveSpan,
} from "../../warehouse/coverage/live-spans.ts";
import { readSelectedIndices } from "../../warehouse/coverage/series-queries.ts";
import { settleSnapshot } from "../../warehouse/coverage/snapshot-coverage.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import { MAX_CLOCK_SKEW_MICROS } from "../decode/scanned-page.ts";

/** An exchange (a ledger key of `exchange_ticks`) whose subscriptions are all live. */
export interface LiveExchange {
  /** Null: every exchange. */
  readonly exchangeId: string | null;
  /** When the last of its subscriptions was confirmed. */
  readonly since: Micros;
}

/** A change of the live feed's state; absent properties have not changed. */
export interface LiveFeedChange {
  /** The feed starts: delete the live spans of an earlier run. */
  readonly isReset?: boolean;
  readonly startedSpans?: readonly LiveSpan[];
  readonly endedSpans?: readonly Omit<LiveSpan, "from">[];
  /** All exchanges whose subscriptions are complete. */
  readonly exchanges?: readonly LiveExchange[];
  /** Markets whose ticks to store; null: all. */
  readonly markets?: ReadonlySet<string> | null;
  /** Covered ranges in which ticks turned out to be missing. */
  readonly retractions?: readonly ({ readonly exchangeId: string | null } & TimeRange)[];
  /** How long one exchange tick is valid. */
  readonly cadence?: Micros;
}

const stream = "exchange_ticks";
/** The service's time is known to about a second. */
const CLOCK_UNCERTAINTY_MICROS = 2 * MICROS_PER_SECOND;

/** A cadence period with ticks of an exchange. */
interface OpenPeriod {
  readonly at: Micros;
  /** `empty`: none of its ticks so far is of a selected market. */
  proof: "empty" | "rows";
  settledAs: "empty" | "rows" | undefined;
  /** The markets that ticked in it. */
  readonly markets: Set<string>;
  /** Those of the period before that have not ticked in it; undefined: unknown. */
  readonly missing: Set<string> | undefined;
}

/** Tracks the live feed's state and turns received ticks into coverage. */
export class LiveCoverage {
  #exchanges = new Map<string | null, Micros>();
  #markets: ReadonlySet<string> | null = null;
  #cadence: Micros = DEFAULT_CADENCE;
  /** By exchange, ascending: the newest one that has begun, and those of ticks that are stamped ahead. */
  #openPeriods = new Map<string | null, readonly OpenPeriod[]>();
  readonly #skipDetector = new SkippedTickDetector();

  /** How long one tick is valid. */
  get cadence(): Micros {
    return this.#cadence;
  }

  applyChange(warehouse: WarehouseWriter, change: LiveFeedChange): void {
    const { exchanges, markets, cadence, startedSpans = [], endedSpans = [], retractions = [] } = change;
    const liveSince = exchanges && new Map(exchanges.map(({ exchangeId, since }) => [exchangeId, since]));
    if (markets !== undefined) this.#markets = markets;
    if (cadence !== undefined) this.#cadence = cadence;
    warehouse.transaction((transaction) => {
      if (change.isReset) clearLiveSpans(transaction);
      endLiveSpans(transaction, endedSpans);
      beginLiveSpans(transaction, startedSpans);
      for (const { exchangeId, from, to } of retractions) {
        const key = { stream, series: transaction.dictionary.getSubscriptionKey(exchangeId) } as const;
        retract(transaction, key, { from, to });
      }
    });
    if (!liveSince) return;
    // After an interruption or a new subscription the current period is incomplete.
    for (const exchangeId of this.#openPeriods.keys())
      if (liveSince.get(exchangeId) !== this.#exchanges.get(exchangeId)) this.#openPeriods.delete(exchangeId);
    this.#exchanges = liveSince;
  }

  /** Drops ticks of markets that are not selected: a subscription may include more. */
  filterSelected(ticks: readonly ExchangeTick[]): readonly ExchangeTick[] {
    return this.#markets === null ? ticks : ticks.filter((tick) => this.#isSelected(tick));
  }

  #isSelected({ marketId }: ExchangeTick): boolean {
    return this.#markets?.has(marketId) ?? true;
  }

  /** Extends the live spans; returns the ticks whose timestamp is plausible. */
  addIndexTicks(transaction: Transaction, ticks: readonly IndexTick[]): readonly IndexTick[] {
    const plausible = ticks.filter(({ ts }) => ts <= transaction.now + MAX_CLOCK_SKEW_MICROS);
    const newest = new Map<string, Micros>();
    for (const { indexType, ts } of plausible)
      if (ts > (newest.get(indexType) ?? 0)) newest.set(indexType, ts);
    for (const [indexType, ts] of newest) extendLiveSpans(transaction, indexType, ts);
    return plausible;
  }

  /** Where the feed seems to have skipped ticks. Call it after the batch is committed. */
  findSkippedTicks(ticks: readonly IndexTick[]): readonly SkippedTicks[] {
    return this.#skipDetector.detect(ticks, this.#cadence);
  }

  /** The selected indices without a tick at `since` or later. */
  listSilentIndices(warehouse: WarehouseWriter, since: Micros): readonly SilentIndex[] {
    return readSelectedIndices(warehouse.connection, "index_ticks").flatMap(({ indexType, indexId }) => {
      const lastTickTs = this.#skipDetector.newestOf(indexType, indexId);
      return lastTickTs !== undefined && lastTickTs >= since ? [] : [{ indexType, indexId, lastTickTs }];
    });
  }

  addExchangeTicks(transaction: Transaction, ticks: readonly ExchangeTick[]): void {
    if (this.#exchanges.size === 0) return;
    for (const tick of ticks) {
      if (tick.ts > transaction.now + MAX_CLOCK_SKEW_MICROS) continue;
      this.#addToPeriod(transaction, null, tick);
      this.#addToPeriod(transaction, tick.exchangeId, tick);
    }
  }

  /** Runs the commit of a batch. If it fails, the batch is committed again, and the open periods are as before it. */
  rollBackOnError<T>(batch: () => T): T {
    const before = new Map(this.#openPeriods);
    const states = [...before.values()].flat().map((open) => ({ open, ...open }));
    try {
      return batch();
    } catch (error) {
      // The markets of the batch tick again when it is committed again.
      for (const { open, proof, settledAs } of states) Object.assign(open, { proof, settledAs });
      this.#openPeriods = before;
      throw error;
    }
  }

  /**
   * A period is whole once every market of the period before has ticked in it: like a snapshot, one tick of each covers it.
   * A market may have left, so once it is over a tick of a later period settles it too. One that has not begun is not settled.
   */
  #addToPeriod(transaction: Transaction, exchangeId: string | null, tick: ExchangeTick): void {
    const since = this.#exchanges.get(exchangeId);
    if (since === undefined || tick.ts < since) return;
    const { now } = transaction;
    const present = now + CLOCK_UNCERTAINTY_MICROS;
    const at = Math.floor(tick.ts / this.#cadence) * this.#cadence;
    let periods = this.#openPeriods.get(exchangeId) ?? [];
    if (at < (periods.findLast((other) => other.at <= now)?.at ?? at)) return;
    let open = periods.find((other) => other.at === at);
    if (!open) {
      const previous = periods.findLast((other) => other.at < at);
      // The period of the subscription itself is incomplete.
      const missing = previous && previous.at >= since ? new Set(previous.markets) : undefined;
      open = { at, proof: "empty", settledAs: undefined, markets: new Set(), missing };
      periods = [...periods, open].sort((a, b) => a.at - b.at);
    }
    const market = exchangeId === null ? `${tick.exchangeId} ${tick.marketId}` : tick.marketId;
    open.markets.add(market);
    open.missing?.delete(market);
    if (this.#isSelected(tick)) open.proof = "rows";
    for (const period of periods) {
      const isOver = period !== periods.at(-1) && period.at + this.#cadence <= present;
      const isKnown = period.at >= since && period.at <= present && (isOver || period.missing?.size === 0);
      if (isKnown && period.settledAs !== period.proof) this.#settle(transaction, exchangeId, period);
    }
    const begun = periods.findLastIndex((other) => other.at <= now);
    this.#openPeriods.set(exchangeId, begun > 0 ? periods.slice(begun) : periods);
  }

  #settle(transaction: Transaction, exchangeId: string | null, open: OpenPeriod): void {
    const { at, proof } = open;
    open.settledAs = proof;
    settleSnapshot(transaction, {
      stream,
      exchangeId,
      at,
      cadence: this.#cadence,
      isEmpty: proof === "empty",
    });
  }
}

/**
 * Two consecutive live ticks of an index (at `after` and `at`) between which at least one tick is missing.
 */
export interface SkippedTicks {
  readonly indexType: string;
  readonly indexId: string;
  readonly after: Micros;
  readonly at: Micros;
}

/** A selected index that has not ticked lately. */
export interface SilentIndex {
  readonly indexType: string;
  readonly indexId: string;
  /** Undefined: no tick arrived since the start. */
  readonly lastTickTs: Micros | undefined;
}

interface TickProgress {
  newest: Micros;
  /** Set if the last step was too long; reported at the next tick, since skipped ticks may arrive late. */
  pendingSkip: SkippedTicks | undefined;
}

/** A longer step between two ticks means that one was skipped. */
export const MAX_STEP_PERIODS = 1.5;

/** Finds ticks that the feed skipped silently, by the time between consecutive ticks of each index. */
class SkippedTickDetector {
  /** By index type and index id. */
  readonly #progress = new Map<string, Map<string, TickProgress>>();

  newestOf(indexType: string, indexId: string): Micros | undefined {
    return this.#progress.get(indexType)?.get(indexId)?.newest;
  }

  /** Returns the skips that no late tick filled before the next tick. */
  detect(ticks: readonly IndexTick[], cadence: Micros): SkippedTicks[] {
    const skips: SkippedTicks[] = [];
    for (const { indexType, indexId, ts } of ticks) {
      let progressById = this.#progress.get(indexType);
      if (!progressById) {
        progressById = new Map();
        this.#progress.set(indexType, progressById);
      }
      const progress = progressById.get(indexId);
      if (!progress) progressById.set(indexId, { newest: ts, pendingSkip: undefined });
      else if (ts > progress.newest) {
        if (progress.pendingSkip) skips.push(progress.pendingSkip);
        const { newest: after } = progress;
        // Allocates nothing for the usual case, in which none was skipped.
        progress.pendingSkip = hasSkipped(after, ts, cadence)
          ? { indexType, indexId, after, at: ts }
          : undefined;
        progress.newest = ts;
      } else if (progress.pendingSkip && ts > progress.pendingSkip.after && ts < progress.pendingSkip.at) {
        const parts = [
          { ...progress.pendingSkip, at: ts },
          { ...progress.pendingSkip, after: ts },
        ];
        progress.pendingSkip = parts.find(({ after, at }) => hasSkipped(after, at, cadence));
      }
    }
    return skips;
  }
}

function hasSkipped(after: Micros, at: Micros, cadence: Micros): boolean {
  return at - after > MAX_STEP_PERIODS * cadence;
}
