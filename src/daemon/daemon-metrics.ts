import type { LiveCommit } from "../ingest/commit/live.ts";
import { Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { Observation } from "../service/http/events.ts";
import type { FeedMessage } from "../service/live/messages.ts";
import type { Problem } from "../sync/context/error-policy.ts";
import { StreamNotes } from "../sync/context/problem-log.ts";
import { Tally } from "../sync/context/run-stats.ts";
import type { Difference } from "../sync/history/verify.ts";
import { FeedSubscriptions } from "../telemetry/feed-standing.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { RecentErrors, RequestRate } from "../telemetry/recent-activity.ts";
import { isNews, type LastCrash } from "../warehouse/sqlite/crash-marker.ts";

/** Looks on while the daemon works, and keeps what it sees for those who ask. It decides nothing. */
export class DaemonWitness {
  readonly metrics: Metrics;
  readonly requests: RequestRate;
  readonly errors: RecentErrors;
  /** How the streams fare, for `status`. */
  readonly notes = new StreamNotes();
  readonly tally: Tally;
  readonly #subscriptions = new FeedSubscriptions();
  readonly #clock: Clock;
  readonly #log: Log;

  constructor({ clock, version, log }: { clock: Clock; version: string; log: Log }) {
    this.#clock = clock;
    this.#log = log;
    this.metrics = new Metrics(clock, version);
    this.requests = new RequestRate(clock);
    this.errors = new RecentErrors(clock);
    this.tally = new Tally((stream, { alarm, ...counts }) => {
      this.notes.worked(stream);
      this.metrics.commit(stream, "rest", counts);
      if (alarm !== undefined) this.metrics.alarm(alarm);
    });
  }

  observe(observation: Observation): void {
    this.tally.observe(observation);
    this.metrics.observe(observation);
    if (observation.kind === "request") this.requests.count();
  }

  heard(message: FeedMessage): void {
    this.metrics.feed(this.#subscriptions.hear(message));
    if (message.kind === "gap") this.metrics.droppedTicks(message.dropped);
    if (message.kind === "unknown") this.metrics.unknownEvents(message.count);
  }

  live({ indexTicks, exchangeTicks, unknown }: LiveCommit, lagMs: number): void {
    this.metrics.liveLag(lagMs);
    this.metrics.commit("index_ticks", "live", indexTicks);
    this.metrics.commit("exchange_ticks", "live", exchangeTicks);
    this.metrics.unknownEvents(unknown);
  }

  problems(part: string, problems: readonly Problem[]): void {
    this.notes.report(part, problems);
    for (const { stream, code, message } of problems) this.errors.note({ where: stream, code, message });
  }

  /** A part of the work failed as a whole. */
  failed(part: string, error: unknown): void {
    this.notes.failed(part, error);
    const code = error instanceof Failure ? error.code : "unexpected";
    const message = error instanceof Failure ? error.line : String(error);
    this.errors.note({ where: part, code, message });
    this.#log.error({ part, code, message }, "a part of the work failed and is tried again");
  }

  /** The daemon before this one ended without being told to: whoever looks on now should see why. */
  remembers(crash: LastCrash): void {
    if (!isNews(crash, this.#clock.now())) return;
    const { at, code, line } = crash;
    this.errors.note({ where: "daemon", code, message: `ended unexpectedly: ${line}` }, Date.parse(at));
    this.#log.warn({ at, code, line }, "the last run ended unexpectedly");
  }

  audited(differences: readonly Difference[]): void {
    for (const { stream } of differences) this.metrics.auditDifference(stream);
  }

  jobEnded(job: string, outcome: string, error: unknown): void {
    this.metrics.job(job, outcome);
    if (error !== undefined) this.failed(job, error);
  }
}
