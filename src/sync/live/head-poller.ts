import type { SkippedTicks } from "../../ingest/commit/live-coverage.ts";
import { historyStreams, streamTable } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Random } from "../../runtime/backoff.ts";
import { runLoop, WakeSignal } from "../../runtime/loop.ts";
import { ledgerKeyText } from "../../warehouse/coverage/ledger.ts";
import { wasNotFound } from "../../warehouse/coverage/not-found.ts";
import { readSeriesHeads, type SeriesHead } from "../../warehouse/coverage/series-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type SyncContext, serviceNow } from "../context/context.ts";
import { type Problem, toProblem } from "../context/error-policy.ts";
import { ProblemLog } from "../context/problem-log.ts";
import { retryDelayMs } from "../context/retry.ts";
import { fillSlice } from "../history/fill-gaps.ts";
import { type PlanTiming, planHeadWalks } from "../history/gap-planner.ts";
import { NotFoundAnswers } from "../history/not-found-answers.ts";
import { settleDelay } from "../selection/targets.ts";
import {
  confirmedTo,
  isHeadShort,
  lastPolledAt,
  nextHeadPoll,
  pollsPerSecond,
  SkipTracker,
} from "./head-schedule.ts";
import { SilenceMonitor } from "./silence-tracker.ts";
import type { SubscriptionCoverage } from "./subscription-coverage.ts";

interface HeadPollerOptions {
  readonly reader: Connection;
  readonly random: Random;
  readonly timing: PlanTiming;
  /** Of all requests. */
  readonly maxConcurrency: number;
  /** How often REST confirms what the live feed has covered. */
  readonly confirmEvery: Micros;
  readonly coverage: SubscriptionCoverage;
  readonly onProblems: (problems: readonly Problem[]) => void;
  /** A poll failed and will be retried. Must not throw. */
  readonly onError: (error: unknown) => void;
  /** The service has an index again: gaps below the head are open too. */
  readonly onReopened: () => void;
  /** Every head that was due has been polled once. */
  readonly onCaughtUp: () => void;
}

interface HeadEntry {
  head: SeriesHead;
  /** By the service's clock. */
  due: Micros;
  notBefore: Micros;
  failures: number;
  isInFlight: boolean;
  hasBeenPolled: boolean;
  readonly skips: SkipTracker;
}

/** The service client itself sends a forbidden request only every ten minutes: poll soon after it was accepted. */
const FORBIDDEN_RETRY_INTERVAL_MICROS = 120 * MICROS_PER_SECOND;
const MAX_SLEEP_MS = 60_000;
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
  readonly #silence: SilenceMonitor;
  readonly #wake = new WakeSignal();
  readonly #inFlight = new Set<Promise<void>>();
  /** Heads of `index_ticks` that the live feed does not cover. */
  #polledCount = 0;
  #needsReload = true;
  /** Heads of `index_ticks`, by index type and id. */
  readonly #entriesByIndex = new Map<string, HeadEntry>();
  /** On the monotonic clock; undefined: no new skips. */
  #rescheduleAt: number | undefined;
  /** Heads with possibly skipped ticks. */
  #recheckCount = 0;
  /** On the monotonic clock. */
  #reloadAt = 0;
  #hasCaughtUp = false;
  /** The last call of `hurryDailyPolls`, by the service's clock. */
  #hurriedAt: Micros = 0;

  constructor(context: SyncContext, options: HeadPollerOptions) {
    this.#context = context;
    this.#options = options;
    this.#problemLog = new ProblemLog(options.onProblems);
    this.#notFoundAnswers = new NotFoundAnswers(options.reader);
    const { reader, coverage, timing, onError } = options;
    const { refreshSeconds } = timing;
    const onChange = () => this.requestReload();
    this.#silence = new SilenceMonitor(context, { reader, coverage, refreshSeconds, onChange, onError });
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
    for (const skip of skips) this.#entriesByIndex.get(indexKey(skip))?.skips.add(skip);
    if (skips.length === 0 || this.#rescheduleAt !== undefined) return;
    this.#rescheduleAt = this.#context.clock.monotonic() + RESCHEDULE_DELAY_MS;
    this.#wake.notify();
  }

  async run(): Promise<void> {
    const { clock, signal } = this.#context;
    const polling = runLoop({
      clock,
      signal,
      delayMs: () => this.#idleMs(),
      runOnce: async () => this.#dispatch(),
      onError: (error) => this.#options.onError(error),
      waitForWakeUp: (until) => this.#wake.wait(until),
    });
    await Promise.all([polling, this.#silence.run()]);
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
    return this.#inFlight.size >= Math.ceil(this.#options.maxConcurrency * 1.5);
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
    return Math.max(0, Math.min(MAX_SLEEP_MS, wait, schedule));
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
      .catch((error: unknown) => {
        if (this.#context.signal.aborted) return;
        this.#backOff(entry);
        this.#options.onError(error);
      })
      .finally(() => {
        this.#inFlight.delete(work);
        entry.isInFlight = false;
        this.#reschedule(entry);
        this.#wake.notify();
      });
    this.#inFlight.add(work);
  }

  async #poll(entry: HeadEntry): Promise<void> {
    const { ingest, stats, signal } = this.#context;
    const { reader, timing, onReopened } = this.#options;
    const delay = settleDelay(timing.refreshSeconds);
    const now = serviceNow(this.#context);
    const { key, indexType, name } = entry.head;
    const { walks, rechecks, day } = planHeadWalks(reader, now, timing, key, entry.failures === 0);
    const onFoundAgain = async () => {
      if (!wasNotFound(reader, key)) return;
      await ingest.call("commitIndexFoundAgain", key, [], signal);
      onReopened();
    };
    for (const walk of walks) {
      stats.forStream(key.stream).plannedMicros += walk.range.to - walk.range.from;
      const outcome = await fillSlice(this.#context, walk, this.#notFoundAnswers, onFoundAgain);
      if (outcome.kind === "filled" || outcome.kind === "not_found" || outcome.kind === "empty") {
        // The gap filler confirms withdrawals, so that they do not delay the head.
        if (outcome.kind === "filled" && (outcome.hasReopened || outcome.unconfirmed)) onReopened();
        if (walk.blockedReason !== null)
          await ingest.call("commitBlockedReason", { keys: [key], reason: null }, [], signal);
        continue;
      }
      this.#backOff(entry, outcome.kind === "forbidden" ? FORBIDDEN_RETRY_INTERVAL_MICROS : undefined);
      this.#problemLog.report(
        ledgerKeyText(key),
        toProblem(key.stream, `${indexType} ${name}`, outcome.error),
      );
      if (outcome.kind === "forbidden" && walk.blockedReason !== "forbidden")
        await ingest.call("commitBlockedReason", { keys: [key], reason: "forbidden" }, [], signal);
      return;
    }
    entry.failures = 0;
    // If REST lags, do not poll more often than it can have new records.
    const [head] = readSeriesHeads(reader, key.stream, key.series);
    const reached = head ? confirmedTo(head, delay) : 0;
    if (head) entry.skips.resolve(reader, head, reached);
    this.#silence.recordPoll(entry.head, now);
    const hasAdvanced = reached > confirmedTo(entry.head, delay);
    entry.notBefore = hasAdvanced ? 0 : now + timing.refreshSeconds * MICROS_PER_SECOND;
    this.#problemLog.clear(ledgerKeyText(key));
    if (rechecks.size > 0) await ingest.call("commitRecheck", { key, day }, [], signal);
  }

  #backOff(entry: HeadEntry, fixedDelay?: Micros): void {
    const delay = retryDelayMs(entry.failures++, this.#options.random) * MICROS_PER_MS;
    entry.notBefore = serviceNow(this.#context) + (fixedDelay ?? delay);
  }

  /** Reads all heads again: the selection may have changed, and the gap filler may have filled gaps. */
  #reload(): void {
    this.#needsReload = false;
    const { reader, timing } = this.#options;
    const settledUntil = serviceNow(this.#context) - settleDelay(timing.refreshSeconds);
    const heads = historyStreams.flatMap((stream) => readSeriesHeads(reader, stream));
    const shortHeads = heads.filter((head) =>
      isHeadShort(head, Math.floor(settledUntil / MICROS_PER_DAY) * MICROS_PER_DAY),
    );
    const before = new Map(this.#entries);
    this.#entries.clear();
    this.#entriesByIndex.clear();
    this.#polledCount = 0;
    for (const head of shortHeads) {
      const { key } = head;
      const entry = before.get(ledgerKeyText(key)) ?? createEntry(head);
      entry.head = head;
      this.#entries.set(ledgerKeyText(key), entry);
      if (streamTable[key.stream].event === null) continue;
      this.#entriesByIndex.set(indexKey(head), entry);
      const isLive = this.#silence.liveSince(head) !== undefined;
      if (!isLive && !head.isNotFound) this.#polledCount++;
    }
    this.#scheduleAll();
  }

  #scheduleAll(): void {
    this.#rescheduleAt = undefined;
    this.#recheckCount = 0;
    for (const { skips } of this.#entriesByIndex.values()) if (skips.hasSkips) this.#recheckCount++;
    for (const entry of this.#entries.values()) if (!entry.isInFlight) this.#schedule(entry);
  }

  /** After a poll: reads how far it got. */
  #reschedule(entry: HeadEntry): void {
    const { key } = entry.head;
    if (this.#context.signal.aborted || this.#entries.get(ledgerKeyText(key)) !== entry) return;
    const [head] = readSeriesHeads(this.#options.reader, key.stream, key.series);
    if (head) {
      entry.head = head;
      this.#schedule(entry);
    } else this.#entries.delete(ledgerKeyText(key));
  }

  #schedule(entry: HeadEntry): void {
    const { timing, confirmEvery } = this.#options;
    const { refreshSeconds } = timing;
    const { head, skips } = entry;
    const liveSince = this.#silence.liveSince(head);
    const delay = settleDelay(refreshSeconds);
    const rules = {
      cadence: refreshSeconds * MICROS_PER_SECOND,
      settleDelay: delay,
      confirmEvery,
      liveSince,
      seriesCount: this.#entries.size,
      polledCount: this.#polledCount,
      recheckCount: this.#recheckCount,
      tickSeriesCount: this.#entriesByIndex.size,
      pollsPerSecond: pollsPerSecond(this.#context.client.health().condition.per_second),
      recheckFrom: skips.recheckFrom(
        confirmedTo(head, delay),
        lastPolledAt(head, delay),
        liveSince ?? Number.POSITIVE_INFINITY,
      ),
    };
    const hurriedDue = nextHeadPoll(head, { ...rules, isHurried: true });
    const due = hurriedDue <= this.#hurriedAt ? hurriedDue : nextHeadPoll(head, rules);
    entry.due = Math.max(due, entry.notBefore);
  }
}

function createEntry(head: SeriesHead): HeadEntry {
  const skips = new SkipTracker();
  return { head, due: 0, notBefore: 0, failures: 0, isInFlight: false, hasBeenPolled: false, skips };
}

function indexKey({ indexType, indexId }: { readonly indexType: string; readonly indexId: string }): string {
  return `${indexType} ${indexId}`;
}
