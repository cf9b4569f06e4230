import type { SkippedTicks } from "../../ingest/commit/live.ts";
import { historyStreams, isDaily, settleDelay, streamTable } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { runLoop, WakeSignal } from "../../runtime/clock.ts";
import { MAX_SILENT_PERIODS, MINUTE_MS } from "../../service/limits.ts";
import type { Subscription } from "../../service/live/subscription-states.ts";
import { ledgerKeyText } from "../../warehouse/coverage/ledger.ts";
import { indexKey, readSeriesHeads, type SeriesHead } from "../../warehouse/coverage/series-queries.ts";
import { countStoredRows } from "../../warehouse/rows/row-queries.ts";
import { type Problem, retryDelayMs, type SyncContext, serviceNow, toProblem } from "../context/context.ts";
import { ProblemLog } from "../context/problem-log.ts";
import { NotFoundAnswers, runWalk } from "../history/run-walk.ts";
import { addPlanned, HEAD_BARS, planGaps } from "../history/walk-planner.ts";
import {
  dueAt,
  follow,
  type HeadState,
  type HeadTiming,
  isInDoubt,
  listen,
  liveSince,
  pollsPerSecond,
  readHead,
  resolve,
  skip,
} from "./head-state.ts";
import type { SubscriptionCoverage } from "./subscription-coverage.ts";

interface HeadPollerOptions {
  readonly coverage: SubscriptionCoverage;
  readonly onProblems: (problems: readonly Problem[]) => void;
  /** A poll failed and will be retried. Must not throw. */
  readonly onError: (error: unknown) => void;
  /** The service has an index again: gaps below the head are open too. */
  readonly onReopened: () => void;
  /** Every head that was due has been polled once. */
  readonly onCaughtUp: () => void;
  /** REST has ticks of an index that its subscription has not delivered since `since`. */
  readonly onSilent: (subscription: Subscription, since: Micros) => void;
}

interface HeadEntry {
  head: HeadState;
  /** By the service's clock. */
  due: Micros;
  notBefore: Micros;
  failures: number;
  isInFlight: boolean;
  hasBeenPolled: boolean;
}

/** Thousands of subscriptions may be confirmed in a row: do not reload all heads for each. */
const MIN_RELOAD_INTERVAL_MS = 250;
/** Skips can wait, since the settle delay is longer; rescheduling thousands of heads takes time. */
const RESCHEDULE_DELAY_MS = 5_000;

/**
 * Polls the head of each selected series over REST: at once what the live feed missed, at intervals what it
 * covered. Series are independent: one that fails or hangs does not delay the others.
 */
export class HeadPoller {
  readonly #context: SyncContext;
  readonly #options: HeadPollerOptions;
  readonly #entries = new Map<string, HeadEntry>();
  readonly #problemLog: ProblemLog;
  readonly #notFoundAnswers: NotFoundAnswers;
  readonly #wake = new WakeSignal();
  readonly #inFlight = new Set<Promise<void>>();
  /** Heads of `index_ticks`, by index type and id. */
  readonly #entriesByIndex = new Map<string, HeadEntry>();
  #timing: Omit<HeadTiming, "pollsPerSecond">;
  #needsReload = true;
  /** On the monotonic clock; undefined: no new skips. */
  #rescheduleAt: number | undefined;
  /** On the monotonic clock. */
  #reloadAt = 0;
  #hasCaughtUp = false;
  /** The last call of `hurryDailyPolls`, by the service's clock. */
  #hurriedAt: Micros = 0;

  constructor(context: SyncContext, options: HeadPollerOptions) {
    this.#context = context;
    this.#options = options;
    this.#problemLog = new ProblemLog(options.onProblems);
    this.#notFoundAnswers = new NotFoundAnswers(context);
    this.#timing = this.#measure();
  }

  /** The ledger, the selection or the live coverage changed. */
  requestReload(): void {
    this.#needsReload = true;
    this.#wake.notify();
  }

  /** Runs daily polls now instead of spreading them over the hour. */
  hurryDailyPolls(): void {
    this.#hurriedAt = serviceNow(this.#context);
    this.requestReload();
  }

  /** The live feed may have skipped ticks. */
  recordSkips(skips: readonly SkippedTicks[]): void {
    for (const { indexType, indexId, after, at } of skips) {
      const entry = this.#entriesByIndex.get(indexKey(indexType, indexId));
      if (entry) entry.head = skip(entry.head, after, at);
    }
    if (skips.length === 0 || this.#rescheduleAt !== undefined) return;
    this.#rescheduleAt = this.#context.clock.monotonic() + RESCHEDULE_DELAY_MS;
    this.#wake.notify();
  }

  async run(): Promise<void> {
    const { clock, signal, settings } = this.#context;
    const loop = { clock, signal, onError: this.#options.onError };
    const polling = runLoop({
      ...loop,
      delayMs: () => this.#idleMs(),
      runOnce: async () => this.#dispatch(),
      wakeUp: this.#wake,
    });
    const delayMs = () => settings.refreshSeconds * 500;
    const listening = runLoop({ ...loop, delayMs, runOnce: () => this.#listen() });
    await Promise.all([polling, listening]);
    await Promise.allSettled(this.#inFlight);
  }

  #dispatch(): void {
    const { clock } = this.#context;
    if (this.#needsReload && clock.monotonic() >= this.#reloadAt) {
      this.#reload();
      this.#reloadAt = clock.monotonic() + MIN_RELOAD_INTERVAL_MS;
    } else if (clock.monotonic() >= (this.#rescheduleAt ?? Number.POSITIVE_INFINITY)) this.#scheduleAll();
    const now = serviceNow(this.#context);
    while (!this.#isAtLimit) {
      const next = this.#findNext();
      if (!next || next.due > now) break;
      this.#startPoll(next);
    }
    if (this.#hasCaughtUp || this.#needsReload) return;
    // One poll per head is enough: if polls became due faster than REST answers, history would never start.
    for (const { due, hasBeenPolled } of this.#entries.values()) if (!hasBeenPolled && due <= now) return;
    this.#hasCaughtUp = true;
    this.#options.onCaughtUp();
  }

  get #isAtLimit(): boolean {
    return this.#inFlight.size >= Math.ceil(this.#context.settings.concurrency * 1.5);
  }

  /**
   * Until the next head is due; at the limit in flight, until a finished poll wakes the loop. A head that became due
   * since `#dispatch` looked is due now: nothing else would wake the loop for it.
   */
  #idleMs(): number {
    const due = this.#isAtLimit ? undefined : this.#findNext()?.due;
    const wait = ((due ?? Number.POSITIVE_INFINITY) - serviceNow(this.#context)) / MICROS_PER_MS;
    const reload = this.#needsReload ? this.#reloadAt : Number.POSITIVE_INFINITY;
    const schedule =
      Math.min(reload, this.#rescheduleAt ?? Number.POSITIVE_INFINITY) - this.#context.clock.monotonic();
    return Math.max(0, Math.min(MINUTE_MS, wait, schedule));
  }

  /**
   * The head that is due first and not in flight. Linear, because a poll takes far longer than the search.
   */
  #findNext(): HeadEntry | undefined {
    let next: HeadEntry | undefined;
    for (const entry of this.#entries.values())
      if (!entry.isInFlight && (!next || entry.due < next.due)) next = entry;
    return next;
  }

  #startPoll(entry: HeadEntry): void {
    entry.isInFlight = true;
    entry.hasBeenPolled = true;
    const work = this.#poll(entry)
      .then(() => this.#reschedule(entry))
      .catch((error: unknown) => {
        if (this.#context.signal.aborted) return;
        this.#backOff(entry);
        // Else it would be due at once, again and again.
        entry.due = entry.notBefore;
        this.#options.onError(error);
      })
      .finally(() => {
        this.#inFlight.delete(work);
        entry.isInFlight = false;
        this.#wake.notify();
      });
    this.#inFlight.add(work);
  }

  /** Asks the ingest thread which indices have not ticked lately. */
  async #listen(): Promise<void> {
    const { ingest, signal } = this.#context;
    if (![...this.#entriesByIndex.values()].some(({ head }) => head.span !== undefined)) return;
    const since = serviceNow(this.#context) - MAX_SILENT_PERIODS * this.#timing.cadence;
    const newest = await ingest.call("listNewestTicks", undefined, signal);
    const lastTicks = new Map(newest.map(({ indexType, indexId, ts }) => [indexKey(indexType, indexId), ts]));
    const now = serviceNow(this.#context);
    let hasChanged = false;
    for (const [key, entry] of this.#entriesByIndex) {
      const before = entry.head;
      const lastTick = lastTicks.get(key) ?? 0;
      entry.head = listen(before, lastTick < since ? lastTick : undefined, now);
      hasChanged ||= entry.head !== before;
    }
    if (!hasChanged) return;
    this.#scheduleAll();
    this.#wake.notify();
  }

  async #poll(entry: HeadEntry): Promise<void> {
    const { reader, settings, ingest, stats, signal } = this.#context;
    const { onReopened } = this.#options;
    const now = serviceNow(this.#context);
    const { key, indexType, name } = entry.head.series;
    const heads = { key, includesRecent: entry.failures === 0 };
    const { walks, rechecks, day } = planGaps(reader, now, settings, { heads });
    for (const walk of walks) {
      addPlanned(stats, walk);
      const { blockedReason } = walk.series;
      const outcome = await runWalk(this.#context, walk, { notFound: this.#notFoundAnswers });
      if (!("error" in outcome)) {
        // The gap filler confirms withdrawals, so that they do not delay the head.
        if (outcome.kind === "filled" && (outcome.result.hasReopened || outcome.unconfirmed)) onReopened();
        if (blockedReason !== null)
          await ingest.call("commitBlockedReason", { keys: [key], reason: null }, signal);
        continue;
      }
      // The client itself sends a forbidden request every ten minutes only: poll soon after it was accepted.
      this.#backOff(entry, outcome.kind === "forbidden" ? 2 * MINUTE_MS * MICROS_PER_MS : undefined);
      this.#problemLog.report(
        ledgerKeyText(key),
        toProblem(key.stream, `${indexType} ${name}`, outcome.error),
      );
      if (outcome.kind === "forbidden" && blockedReason !== "forbidden")
        await ingest.call("commitBlockedReason", { keys: [key], reason: "forbidden" }, signal);
      return;
    }
    entry.failures = 0;
    const { publishedTo } = entry.head;
    this.#resolve(entry, now);
    // If REST lags, do not poll more often than it can have new records.
    entry.notBefore = entry.head.publishedTo > publishedTo ? 0 : now + this.#timing.cadence;
    this.#problemLog.clear(ledgerKeyText(key));
    if (rechecks.size > 0) await ingest.call("commitRecheck", { key, day }, signal);
  }

  #backOff(entry: HeadEntry, fixedDelay?: Micros): void {
    const delay = retryDelayMs(entry.failures++, this.#context.random) * MICROS_PER_MS;
    entry.notBefore = serviceNow(this.#context) + (fixedDelay ?? delay);
  }

  /** Compares what REST has shown with what the live feed has delivered. */
  #resolve(entry: HeadEntry, now: Micros): void {
    const { reader } = this.#context;
    const { coverage, onSilent } = this.#options;
    const { key, indexType, indexId } = entry.head.series;
    const [series] = readSeriesHeads(reader, key.stream, key.series);
    if (!series) return;
    const wasMissing = entry.head.missingTo === Number.POSITIVE_INFINITY;
    const hasTicks = (range: TimeRange) => countStoredRows(reader, key, range) > 0;
    entry.head = resolve(entry.head, series, now, this.#timing, hasTicks);
    const { missingTo, lastLive } = entry.head;
    const subscription = coverage.indexSubscription(indexType, indexId);
    if (wasMissing || missingTo !== Number.POSITIVE_INFINITY || !subscription) return;
    onSilent(subscription, lastLive ?? now);
  }

  /** Reads all heads again: the selection may have changed, and the gap filler may have filled gaps. */
  #reload(): void {
    this.#needsReload = false;
    const { reader } = this.#context;
    const { coverage } = this.#options;
    const settledUntil = serviceNow(this.#context) - this.#timing.settleDelay;
    const lastDay = Math.floor(settledUntil / MICROS_PER_DAY) * MICROS_PER_DAY;
    const before = new Map(this.#entries);
    this.#entries.clear();
    this.#entriesByIndex.clear();
    for (const series of historyStreams.flatMap((stream) => readSeriesHeads(reader, stream))) {
      if (!isHeadShort(series, lastDay)) continue;
      const { key, indexType, indexId } = series;
      const known = before.get(ledgerKeyText(key));
      const head = readHead(series, this.#timing, known?.head);
      const entry = known ?? { ...newEntry, head };
      this.#entries.set(ledgerKeyText(key), entry);
      if (streamTable[key.stream].event === null) entry.head = head;
      else {
        entry.head = follow(head, coverage.indexLiveSince(indexType, indexId));
        this.#entriesByIndex.set(indexKey(indexType, indexId), entry);
      }
    }
    this.#scheduleAll();
  }

  #scheduleAll(): void {
    this.#rescheduleAt = undefined;
    this.#timing = this.#measure();
    for (const entry of this.#entries.values()) if (!entry.isInFlight) this.#schedule(entry);
  }

  #measure(): Omit<HeadTiming, "pollsPerSecond"> {
    const { refreshSeconds, confirmEvery } = this.#context.settings;
    const now = serviceNow(this.#context);
    const ticks = [...this.#entriesByIndex.values()].map(({ head }) => head);
    const isPolled = (head: HeadState) => liveSince(head) === undefined && !head.series.isNotFound;
    return {
      cadence: refreshSeconds * MICROS_PER_SECOND,
      settleDelay: settleDelay(refreshSeconds),
      confirmEvery: confirmEvery * MICROS_PER_SECOND,
      seriesCount: this.#entries.size,
      tickSeriesCount: ticks.length,
      polledCount: ticks.filter(isPolled).length,
      doubtCount: ticks.filter((head) => isInDoubt(head, now)).length,
    };
  }

  /** After a poll: reads how far it got. */
  #reschedule(entry: HeadEntry): void {
    const { key } = entry.head.series;
    if (this.#context.signal.aborted || this.#entries.get(ledgerKeyText(key)) !== entry) return;
    const [series] = readSeriesHeads(this.#context.reader, key.stream, key.series);
    if (series) {
      entry.head = readHead(series, this.#timing, entry.head);
      this.#schedule(entry);
    } else this.#entries.delete(ledgerKeyText(key));
  }

  #schedule(entry: HeadEntry): void {
    const { per_second } = this.#context.client.health().condition;
    const timing = { ...this.#timing, pollsPerSecond: pollsPerSecond(per_second) };
    const hurriedDue = dueAt(entry.head, { ...timing, isHurried: true });
    const due = hurriedDue <= this.#hurriedAt ? hurriedDue : dueAt(entry.head, timing);
    entry.due = Math.max(due, entry.notBefore);
  }
}

const newEntry = { due: 0, notBefore: 0, failures: 0, isInFlight: false, hasBeenPolled: false };

/** Whether one page fills the gap of the head up to `until`. */
function isHeadShort({ key, isNew, from }: SeriesHead, until: Micros): boolean {
  return !isDaily(key.stream) || (!isNew && until - from <= HEAD_BARS * MICROS_PER_DAY);
}
