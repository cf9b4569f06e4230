import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { Stream } from "../model/streams.ts";
import type { Clock } from "../runtime/clock.ts";
import {
  type LabelsOf,
  METRIC_PREFIX,
  type MetricDeclaration,
  type MetricName,
  metricTable,
} from "./metric-table.ts";
import type {
  CommitCounts,
  FeedStanding,
  ServiceObservation,
  StorageFigures,
  StreamFigures,
} from "./observed-facts.ts";

const authStates = [
  "unknown",
  "ok",
  "auth_failed",
  "credentials_rejected",
  "auth_malformed",
  "auth_unreachable",
];
const ingestStates = ["working", "disk_full", "db_locked"];
const FRESH_MS = 500;

type Instrument = Counter | Gauge | Histogram;

/** Counts what the daemon tells and gives it out in Prometheus' text form. Costs nothing while nobody asks. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #instruments = new Map<string, Instrument>();
  readonly #labels = new Map<string, BoundedLabel>();
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #looks: (() => void)[] = [];
  #exposition: { readonly text: Promise<string>; readonly until: number } | undefined;

  constructor(clock: Pick<Clock, "now" | "monotonic">, version: string) {
    this.#clock = clock;
    for (const [name, declaration] of Object.entries(metricTable)) {
      this.#instruments.set(name, instrument(name, declaration, this.#registry));
    }
    this.#set("up", 1);
    this.#set("ready", 0);
    this.#set("healthy", 1);
    this.#set("build_info", 1, { version });
    this.#set("start_time_seconds", clock.now() / 1000);
    this.#set("disk_full_days", Number.NaN);
    this.ingest(0, "working");
  }

  /** What the service's client and the live feed observe. */
  observe(observation: ServiceObservation): void {
    switch (observation.kind) {
      case "request": {
        const endpoint = this.#bounded("endpoint", observation.endpoint);
        const outcome = this.#bounded("outcome", observation.outcome);
        this.#count("requests_total", 1, { endpoint, outcome });
        this.#histogram("request_seconds").observe({ endpoint }, observation.ms / 1000);
        this.#count("response_bytes_total", observation.bytes, { endpoint });
        if (observation.attempt > 1) this.#count("request_retries_total", 1, { endpoint });
        if (observation.stale) this.#count("stale_answers_total", 1, { endpoint });
        if (observation.outcome === "ok") this.#set("last_answer_timestamp_seconds", this.#now());
        break;
      }
      case "concurrency":
        this.#set("request_concurrency_limit", observation.limit);
        break;
      case "breaker":
        this.#set("breaker_open", observation.state === "open" ? 1 : 0, {
          host: this.#bounded("host", observation.host),
        });
        break;
      case "auth":
        this.#states("auth_state", authStates, observation.state, {
          // The audience is an address, which is nobody's business here; its scheme says which one it is.
          audience: /^wss?:/i.test(observation.audience) ? "live" : "rest",
        });
        break;
      case "walk":
        this.#count("walk_troubles_total", 1, {
          endpoint: this.#bounded("endpoint", observation.endpoint),
          event: this.#bounded("walk", observation.event),
        });
        break;
      case "feed":
        this.#count("feed_events_total", 1, {
          event: this.#bounded("feed", observation.event),
          reason: observation.reason === undefined ? "" : this.#bounded("reason", observation.reason),
        });
        break;
    }
  }

  /** The live feed as it stands after each of its messages. */
  feed({ connected, ...subscriptions }: FeedStanding): void {
    this.#set("feed_connected", connected ? 1 : 0);
    for (const [state, count] of Object.entries(subscriptions))
      this.#set("feed_subscriptions", count, { state });
  }

  droppedTicks(count: number): void {
    this.#count("feed_dropped_ticks_total", count);
  }

  /** One transaction that brought records of a stream. */
  commit(stream: Stream, source: "rest" | "live", counts: CommitCounts): void {
    this.#count("commits_total", 1, { stream, source });
    this.#set("last_commit_timestamp_seconds", this.#now(), { stream });
    for (const [kind, count] of Object.entries(counts)) {
      if (count) this.#count("rows_total", count, { stream, kind });
    }
  }

  /** From receiving a batch of the live feed to having it on disk. */
  liveLag(ms: number): void {
    this.#histogram("live_lag_seconds").observe(ms / 1000);
  }

  unknownEvents(count: number): void {
    this.#count("unknown_events_total", count);
  }

  /** A page that settled nothing since it contradicts what is known. */
  alarm(alarm: string): void {
    this.#count("alarms_total", 1, { alarm: this.#bounded("alarm", alarm) });
  }

  ingest(queued: number, state: string): void {
    this.#set("ingest_queued", queued);
    this.#states("ingest_state", ingestStates, state, {});
  }

  /** To be told each minute. */
  storage({ warehouseBytes, walBytes, freeBytes, daysUntilFull }: StorageFigures): void {
    this.#set("warehouse_bytes", warehouseBytes);
    this.#set("wal_bytes", walBytes);
    this.#set("disk_free_bytes", freeBytes);
    this.#set("disk_full_days", daysUntilFull ?? Number.NaN);
  }

  clockSkew(seconds: number): void {
    this.#set("clock_skew_seconds", seconds);
  }

  /** The warehouse's own figures, as `status` shows them. */
  streams(streams: readonly StreamFigures[]): void {
    for (const figures of streams) {
      const { stream } = figures;
      this.#set("stream_rows", figures.rows, { stream });
      this.#set("open_ranges", figures.open, { stream });
      this.#set("open_seconds", figures.open_seconds, { stream });
      this.#set("lost_ranges", figures.lost, { stream });
      this.#set("lost_seconds", figures.lost_seconds, { stream });
      this.#set("stream_failing", figures.last_error === null ? 0 : 1, { stream });
      this.#set("missing_scopes", figures.missing_scopes.length, { stream });
      if (figures.newest_age_s === null) this.#gauge("newest_age_seconds").remove({ stream });
      else this.#set("newest_age_seconds", figures.newest_age_s, { stream });
    }
  }

  /** A scheduled job has ended; the outcome is `ok` or the code of its failure. */
  job(job: string, outcome: string): void {
    this.#count("jobs_total", 1, {
      task: this.#bounded("task", job),
      outcome: this.#bounded("job outcome", outcome),
    });
    if (outcome === "ok") this.jobSucceeded(job, this.#now());
  }

  /** When a job last ended well, Unix time: known from the warehouse before the first run of this process. */
  jobSucceeded(job: string, at: number): void {
    this.#set("job_last_success_timestamp_seconds", at, { task: this.#bounded("task", job) });
  }

  /** A stretch that a nightly audit found different from the service's. */
  auditDifference(stream: string): void {
    this.#count("audit_differences_total", 1, { stream });
  }

  /** Called before each exposition, for what is worth knowing only as it stands then. */
  onLook(look: () => void): void {
    this.#looks.push(look);
  }

  health(ready: boolean, healthy: boolean): void {
    this.#set("ready", ready ? 1 : 0);
    this.#set("healthy", healthy ? 1 : 0);
  }

  /** The exposition. Kept for half a second, whoever asks how often. */
  text(): Promise<string> {
    const now = this.#clock.monotonic();
    if (!this.#exposition || now >= this.#exposition.until) {
      for (const look of this.#looks) look();
      this.#set("resident_memory_bytes", process.memoryUsage.rss());
      const { user, system } = process.cpuUsage();
      const cpu = this.#counter("cpu_seconds_total");
      cpu.reset();
      cpu.inc((user + system) / 1e6);
      this.#exposition = { text: this.#registry.metrics(), until: now + FRESH_MS };
    }
    return this.#exposition.text;
  }

  #now(): number {
    return this.#clock.now() / 1000;
  }

  #bounded(label: string, value: string): string {
    let bound = this.#labels.get(label);
    if (!bound) {
      bound = new BoundedLabel();
      this.#labels.set(label, bound);
    }
    return bound.of(value);
  }

  #states<N extends MetricName>(
    name: N,
    states: readonly string[],
    present: string,
    labels: Omit<LabelsOf<N>, "state">,
  ): void {
    for (const state of states) this.#gauge(name).set({ ...labels, state }, state === present ? 1 : 0);
  }

  #count<N extends MetricName>(name: N, by: number, labels?: LabelsOf<N>): void {
    if (labels) this.#counter(name).inc(labels, by);
    else this.#counter(name).inc(by);
  }

  #set<N extends MetricName>(name: N, value: number, labels?: LabelsOf<N>): void {
    if (labels) this.#gauge(name).set(labels, value);
    else this.#gauge(name).set(value);
  }

  #counter = (name: MetricName) => this.#instruments.get(name) as Counter;
  #gauge = (name: MetricName) => this.#instruments.get(name) as Gauge;
  #histogram = (name: MetricName) => this.#instruments.get(name) as Histogram;
}

function instrument(name: string, declaration: MetricDeclaration, registry: Registry): Instrument {
  const { type, labels, meaning, buckets } = declaration;
  const common = {
    name: METRIC_PREFIX + name,
    help: meaning,
    labelNames: [...labels],
    registers: [registry],
  };
  if (type === "counter") return new Counter(common);
  if (type === "gauge") return new Gauge(common);
  return new Histogram({ ...common, buckets: [...(buckets ?? [])] });
}

/** What a label may look like: a template, a code or a name of ours. Opaque ids and tokens are longer or odder. */
const wellFormed = /^[A-Za-z][\w.:/{}-]{0,47}$|^\/[\w./{}-]{0,63}$/;
/** Eight hexadecimal digits and more in a row are an identifier's, not a word's. */
const identifier = /[0-9a-f]{8}|[A-Za-z0-9_-]{40}/i;
const MOST_VALUES = 64;

/**
 * Lets a label take few values only. Each value is a time series of its own for ever: what comes from outside and varies
 * without end would fill the memory of whoever collects, and could show what must stay hidden.
 */
export class BoundedLabel {
  readonly #values = new Set<string>();

  of(value: string): string {
    if (this.#values.has(value)) return value;
    if (this.#values.size >= MOST_VALUES || !wellFormed.test(value) || identifier.test(value)) return "other";
    this.#values.add(value);
    return value;
  }
}
