import type { SilentIndex } from "../../ingest/commit/live-coverage.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { runLoop } from "../../runtime/loop.ts";
import type { SeriesHead } from "../../warehouse/coverage/series-queries.ts";
import { countStoredRows } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type SyncContext, serviceNow } from "../context/context.ts";
import type { SubscriptionCoverage } from "./subscription-coverage.ts";

/** Tolerates one late and one lost tick; with a check every half period, silence is noticed within three periods. */
const MAX_SILENT_PERIODS = 2.5;
/** How long a silence counts that REST confirmed as quiet. */
const QUIET_MEMORY_MICROS = 3600 * MICROS_PER_SECOND;

/**
 * Whether one index of a subscription to a whole type has fallen silent while others speak. REST then decides: if it has
 * newer ticks, it polls the index until ticks arrive again; if not, the index is quiet by nature, and twice that silence is
 * allowed from now on.
 */
export class SilenceTracker {
  readonly #minAllowance: Micros;
  #state: "live" | "suspected" | "silent" = "live";
  #allowance: Micros;
  /** The last tick before the silence. */
  #silentSince: Micros = 0;
  #liveSince: Micros = 0;
  #longestQuiet: Micros = 0;
  #memoryEndsAt: Micros = 0;

  constructor(cadence: Micros) {
    this.#minAllowance = MAX_SILENT_PERIODS * cadence;
    this.#allowance = this.#minAllowance;
  }

  /** The live feed does not deliver the index at present, as far as is known. */
  get isSilent(): boolean {
    return this.#state !== "live";
  }

  /** Ticks before this time may be missing, whatever its subscription says. */
  get liveSince(): Micros {
    return this.#liveSince;
  }

  /** REST has to say since when ticks are missing; undefined: no need. */
  get suspectedSince(): Micros | undefined {
    return this.#state === "suspected" ? this.#silentSince : undefined;
  }

  /** `lastTickTs`: undefined if a tick arrived lately. Returns whether `isSilent` changed. */
  update(lastTickTs: Micros | undefined, now: Micros): boolean {
    if (now >= this.#memoryEndsAt) {
      this.#allowance = Math.max(this.#minAllowance, 2 * this.#longestQuiet);
      this.#longestQuiet = 0;
      this.#memoryEndsAt = now + QUIET_MEMORY_MICROS;
    }
    if (lastTickTs === undefined) return this.#hear(now);
    if (this.#state !== "live") return false;
    if (now - lastTickTs <= this.#allowance) {
      this.#longestQuiet = Math.max(this.#longestQuiet, now - lastTickTs);
      return false;
    }
    this.#state = "suspected";
    this.#silentSince = lastTickTs;
    return true;
  }

  /** Ticks arrive again. */
  #hear(now: Micros): boolean {
    if (this.#state === "live") return false;
    if (this.#state === "silent") this.#liveSince = now;
    // REST was not asked in time. If ticks are missing, the step to the next tick shows it: see `SkipTracker`.
    else this.#allowQuiet(now);
    this.#state = "live";
    return true;
  }

  #allowQuiet(now: Micros): void {
    this.#longestQuiet = Math.max(this.#longestQuiet, now - this.#silentSince);
    this.#allowance = Math.max(this.#allowance, 2 * this.#longestQuiet);
  }

  /** REST has answered since the suspicion arose. `hasNewerTicks`: newer ones than the last that arrived. */
  resolve(hasNewerTicks: boolean, now: Micros): void {
    if (this.#state !== "suspected") return;
    if (hasNewerTicks) {
      this.#state = "silent";
      this.#longestQuiet = 0;
      this.#allowance = this.#minAllowance;
      return;
    }
    this.#state = "live";
    this.#allowQuiet(now);
  }
}

interface SilenceMonitorOptions {
  readonly reader: Connection;
  readonly coverage: SubscriptionCoverage;
  readonly refreshSeconds: number;
  /** The live feed has stopped or started to deliver some index. */
  readonly onChange: () => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Finds indices that the live feed no longer delivers although their subscription, to all indices of a type, is live.
 * Asks the ingest thread twice per period which indices have not ticked; it has a tracker only for those.
 */
export class SilenceMonitor {
  readonly #context: SyncContext;
  readonly #options: SilenceMonitorOptions;
  readonly #cadence: Micros;
  readonly #trackers = new Map<string, SilenceTracker>();

  constructor(context: SyncContext, options: SilenceMonitorOptions) {
    this.#context = context;
    this.#options = options;
    this.#cadence = options.refreshSeconds * MICROS_PER_SECOND;
  }

  run(): Promise<void> {
    const { clock, signal } = this.#context;
    const { refreshSeconds, onError } = this.#options;
    return runLoop({
      clock,
      signal,
      delayMs: () => refreshSeconds * 500,
      runOnce: () => this.#check(),
      onError,
    });
  }

  /** Since when the live feed delivers every tick of the index; undefined: it does not. */
  liveSince({ indexType, indexId }: IndexName): Micros | undefined {
    const liveSince = this.#options.coverage.indexLiveSince(indexType, indexId);
    const tracker = this.#trackers.get(indexKey({ indexType, indexId }));
    if (liveSince === undefined || !tracker) return liveSince;
    return tracker.isSilent ? undefined : Math.max(liveSince, tracker.liveSince);
  }

  /** REST has polled the head, as of `now`. */
  recordPoll(head: SeriesHead, now: Micros): void {
    const tracker = this.#trackers.get(indexKey(head));
    const since = tracker?.suspectedSince;
    if (since === undefined || head.key.stream !== "index_ticks") return;
    const newer = countStoredRows(this.#options.reader, head.key, { from: since + 1, to: now });
    tracker?.resolve(newer > 0, now);
  }

  async #check(): Promise<void> {
    const { ingest, signal } = this.#context;
    const { coverage, onChange } = this.#options;
    if (!coverage.hasLiveTypes) return;
    const since = serviceNow(this.#context) - MAX_SILENT_PERIODS * this.#cadence;
    const silent = await ingest.call("listSilentIndices", since, [], signal);
    if (this.#update(silent, since)) onChange();
  }

  /** Returns whether the schedule of REST polls changes. */
  #update(silentIndices: readonly SilentIndex[], since: Micros): boolean {
    const { coverage } = this.#options;
    const now = serviceNow(this.#context);
    const heard = new Map(this.#trackers);
    let hasChanged = false;
    for (const index of silentIndices) {
      const key = indexKey(index);
      heard.delete(key);
      const liveSince = coverage.indexLiveSince(index.indexType, index.indexId);
      if (liveSince === undefined || !coverage.isLiveByType(index.indexType, index.indexId)) {
        this.#trackers.delete(key);
        continue;
      }
      const lastTickTs = Math.max(index.lastTickTs ?? 0, liveSince);
      // A younger subscription says nothing yet.
      if (lastTickTs >= since) continue;
      const tracker = this.#trackers.get(key) ?? new SilenceTracker(this.#cadence);
      this.#trackers.set(key, tracker);
      hasChanged = tracker.update(lastTickTs, now) || hasChanged;
    }
    for (const tracker of heard.values()) hasChanged = tracker.update(undefined, now) || hasChanged;
    return hasChanged;
  }
}

type IndexName = Pick<SeriesHead, "indexType" | "indexId">;

function indexKey({ indexType, indexId }: IndexName): string {
  return `${indexType} ${indexId}`;
}
