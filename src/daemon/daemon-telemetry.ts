import type { LiveCommitResult } from "../ingest/commit/live.ts";
import { Failure, failureCode } from "../model/failure.ts";
import type { LastCrash } from "../model/status/warehouse-status.ts";
import { hasHistory } from "../model/streams.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { ClientEvent, ClientEventListener } from "../service/http/client-events.ts";
import { type Problem, problemText } from "../sync/context/context.ts";
import { StreamErrors } from "../sync/context/problem-log.ts";
import { RunStats } from "../sync/context/run-stats.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { RecentErrors, RequestRate } from "../telemetry/recent-activity.ts";
import { isRecentCrash } from "../warehouse/sqlite/crash-marker.ts";
import type { readJobRuns } from "../warehouse/tables/warehouse-state.ts";

/** Collects metrics, recent errors and stream states while the daemon runs. It observes and makes no decisions. */
export class DaemonTelemetry {
  readonly metrics: Metrics;
  readonly requestRate: RequestRate;
  readonly recentErrors: RecentErrors;
  /** Last error and missing scopes of each stream, for `status`. */
  readonly streamErrors = new StreamErrors();
  readonly stats: RunStats;
  /** By part of the daemon: the problems of its last report, which are not logged again. */
  readonly #loggedProblems = new Map<string, ReadonlySet<string>>();
  readonly #runListeners = new Set<ClientEventListener>();
  readonly #clock: Clock;
  readonly #log: Log;

  constructor({ clock, version, log }: { clock: Clock; version: string; log: Log }) {
    this.#clock = clock;
    this.#log = log;
    this.metrics = new Metrics(clock, version);
    this.requestRate = new RequestRate(clock);
    this.recentErrors = new RecentErrors(clock);
    this.stats = this.#createStats();
  }

  #createStats(): RunStats {
    return new RunStats((stream, { alarm, ...counts }) => {
      this.streamErrors.clearFailure(stream);
      this.metrics.countCommit(stream, "rest", counts);
      if (alarm !== undefined) this.metrics.increment("alarms_total", 1, { alarm });
    });
  }

  /** Counts what happens until `end`, for a run of its own beside the rest. Its requests include all others of the daemon. */
  observeRun(onEvent: ClientEventListener): { readonly stats: RunStats; end(): void } {
    const stats = this.#createStats();
    const listener: ClientEventListener = (event) => {
      stats.onEvent(event);
      onEvent(event);
    };
    this.#runListeners.add(listener);
    return { stats, end: () => void this.#runListeners.delete(listener) };
  }

  onClientEvent(event: ClientEvent): void {
    this.stats.onEvent(event);
    this.metrics.observe(event);
    for (const listener of this.#runListeners) listener(event);
    if (event.kind !== "request") return;
    this.requestRate.count();
    if (retriedOutcomes.has(event.outcome)) {
      const what = event.status === undefined ? "no answer" : `HTTP ${event.status}`;
      this.recentErrors.record({
        where: event.endpoint,
        code: event.outcome,
        message: `${what}: the request is retried`,
      });
    }
  }

  onLiveCommit({ indexTicks, exchangeTicks, unknownEvents }: LiveCommitResult, lagMs: number): void {
    this.metrics.observeLiveLag(lagMs);
    this.metrics.countCommit("index_ticks", "live", indexTicks);
    this.metrics.countCommit("exchange_ticks", "live", exchangeTicks);
    this.metrics.increment("unknown_events_total", unknownEvents);
  }

  setProblems(part: string, problems: readonly Problem[]): void {
    this.streamErrors.setProblems(part, problems);
    const known = this.#loggedProblems.get(part);
    const keys = new Set<string>();
    for (const problem of problems) {
      const { stream, what: series, code, message } = problem;
      this.recentErrors.record({ where: stream, code, message: problemText(problem) });
      const key = `${stream} ${series} ${code}`;
      keys.add(key);
      if (series !== undefined && hasHistory(stream) && !known?.has(key))
        this.#log.warn({ stream, series, code, message }, "series could not be synced");
    }
    this.#loggedProblems.set(part, keys);
  }

  /** A part of the daemon failed, such as `gaps` or a scheduled job. */
  recordFailure(part: string, error: unknown): void {
    this.streamErrors.setFailure(part, error);
    const code = failureCode(error);
    const message = error instanceof Failure ? error.summary : String(error);
    this.recentErrors.record({ where: part, code, message });
    this.#log.error({ part, code, message }, "task failed, retrying");
  }

  /** Shows in the log and on the dashboard why the previous daemon crashed. */
  reportLastCrash(crash: LastCrash): void {
    if (!isRecentCrash(crash, this.#clock.now())) return;
    const { at, code, line } = crash;
    this.recentErrors.record(
      { where: "daemon", code, message: `ended unexpectedly: ${line}` },
      Date.parse(at),
    );
    this.#log.warn({ at, code, line }, "last run ended unexpectedly");
  }

  registerJobs(jobs: readonly { readonly name: string }[], runs: ReturnType<typeof readJobRuns>): void {
    for (const { name } of jobs)
      this.metrics.registerJob(name, runs.find(({ job }) => job === name)?.outcome);
    for (const { job, outcome, endedAt } of runs)
      if (outcome === "ok") this.metrics.setJobSuccess(job, Date.parse(endedAt) / 1000);
  }

  recordJobEnd(job: string, outcome: string, error: unknown): void {
    this.metrics.countJob(job, outcome);
    if (error !== undefined) this.recordFailure(job, error);
  }
}

/** The codes of requests that the client repeats by itself; their failures reach nobody else. */
const retriedOutcomes: ReadonlySet<string> = new Set([
  "too_many_requests",
  "malformed_body",
  "server_failure",
  "stale_response",
  "no_list",
  "conflict",
]);
