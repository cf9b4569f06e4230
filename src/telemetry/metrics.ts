import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { authStates, limitReasons, type ServiceCondition } from "../model/status/service-condition.ts";
import type { ServeStatus, ShareStatus } from "../model/status/share-status.ts";
import type { StreamStatus } from "../model/status/warehouse-status.ts";
import type { Stream } from "../model/streams.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ClientEvent } from "../service/http/client-events.ts";
import type { SubscriptionState, SubscriptionStates } from "../service/live/subscription-states.ts";
import {
  type LabelsOf,
  METRIC_PREFIX,
  type MetricDeclaration,
  type MetricName,
  metricTable,
  type rowResults,
} from "./metric-table.ts";

const INGEST_STATES = ["working", "disk_full", "db_locked"];
/** The label of each state; undefined: not counted. */
const subscriptionLabels: Readonly<Record<SubscriptionState, "following" | "doubt" | "parked" | undefined>> =
  {
    requested: undefined,
    live: "following",
    interrupted: "doubt",
    "no answer": "doubt",
    refused: "doubt",
    silent: "doubt",
    parked: "parked",
  };

/** The records of one commit by result. */
type CommitCounts = Readonly<Partial<Record<(typeof rowResults)[number], number>>>;

/** The part of a stream's status that has metrics. */
type StreamFigures = Pick<
  StreamStatus,
  | ("stream" | "rows" | "open" | "open_seconds" | "unconfirmed" | "lost" | "lost_seconds")
  | ("oldest_open_age_s" | "newest_age_s" | "is_followed" | "last_error" | "missing_scopes")
>;

type Instrument = Counter | Gauge | Histogram;

/** Collects the daemon's metrics and renders them in the text format of Prometheus. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #instruments = new Map<string, Instrument>();
  readonly #labels = new Map<string, Set<string>>();
  readonly #clock: Pick<Clock, "now">;
  readonly #collectors: (() => void)[] = [];

  constructor(clock: Pick<Clock, "now">, version: string) {
    this.#clock = clock;
    for (const [name, declaration] of Object.entries(metricTable)) {
      this.#instruments.set(name, createInstrument(name, declaration, this.#registry));
    }
    this.set("up", 1);
    this.set("ready", 0);
    this.set("healthy", 1);
    this.set("build_info", 1, { version });
    this.set("start_time_seconds", clock.now() / 1000);
    this.set("disk_full_seconds", Number.NaN);
    this.setIngest(0, "working");
  }

  increment<N extends MetricName>(name: N, by: number, labels?: LabelsOf<N>): void {
    this.#counter(name).inc(labels ?? {}, by);
  }

  set<N extends MetricName>(name: N, value: number, labels?: LabelsOf<N>): void {
    this.#gauge(name).set(labels ?? {}, value);
  }

  observe(event: ClientEvent): void {
    const endpoint = "endpoint" in event ? this.#boundLabel("endpoint", event.endpoint) : "";
    switch (event.kind) {
      case "request":
        this.increment("requests_total", 1, {
          endpoint,
          outcome: this.#boundLabel("outcome", event.outcome),
        });
        this.#histogram("request_seconds").observe({ endpoint }, event.ms / 1000);
        this.increment("response_bytes_total", event.bytes, { endpoint });
        if (event.attempt > 1) this.increment("request_retries_total", 1, { endpoint });
        if (event.stale) this.increment("stale_answers_total", 1, { endpoint });
        if (event.outcome === "ok") this.set("last_answer_timestamp_seconds", this.#now());
        break;
      case "breaker":
        this.set("breaker_open", event.state === "open" ? 1 : 0, { endpoint });
        break;
      case "auth":
        this.#setStates("auth_state", authStates, event.state, {
          // The audience is an address and must not become a label; its scheme shows which API it belongs to.
          audience: /^wss?:/i.test(event.audience) ? "live" : "rest",
        });
        break;
      case "walk":
        this.increment("walk_troubles_total", 1, { endpoint, event: this.#boundLabel("walk", event.event) });
        break;
      case "feed":
        this.increment("feed_events_total", 1, {
          event: this.#boundLabel("feed", event.event),
          reason: event.reason === undefined ? "" : this.#boundLabel("reason", event.reason),
        });
        break;
      case "unknown_event":
        this.increment("unknown_events_total", 1);
        break;
    }
  }

  setRequestLimits({ concurrency, per_second, reason, limit, limit_since }: ServiceCondition): void {
    this.set("request_concurrency_limit", concurrency);
    this.set("request_rate_limit", per_second ?? Number.POSITIVE_INFINITY);
    this.#setStates("request_limit_state", limitReasons, reason, {});
    // Only the current sentence has the value 1.
    this.#gauge("request_limit_info").reset();
    this.set("request_limit_info", 1, { limit: limit ?? "settings" });
    this.set("request_limit_since_timestamp_seconds", Date.parse(limit_since ?? "") / 1000);
  }

  setFeed({ isConnected, current }: Pick<SubscriptionStates, "isConnected" | "current">): void {
    if (current.length === 0) this.#gauge("feed_connected").remove();
    else this.set("feed_connected", isConnected ? 1 : 0);
    const counts = { following: 0, doubt: 0, parked: 0 };
    for (const { state } of current) {
      const label = subscriptionLabels[state];
      if (label) counts[label]++;
    }
    for (const [state, count] of Object.entries(counts)) this.set("feed_subscriptions", count, { state });
  }

  /** The thread of `serve` counts since its own start. Undefined: it is not running. */
  setServe(status: ServeStatus | undefined): void {
    this.set("serve_clients", status?.clients.length ?? 0);
    if (!status) return;
    const { requests, failures, messages, dropped } = status;
    for (const name of [
      "serve_requests_total",
      "serve_messages_total",
      "serve_dropped_clients_total",
    ] as const)
      this.#counter(name).reset();
    this.increment("serve_requests_total", failures, { outcome: "failed" });
    this.increment("serve_requests_total", Math.max(0, requests - failures), { outcome: "answered" });
    this.increment("serve_messages_total", messages);
    this.increment("serve_dropped_clients_total", dropped);
  }

  countCommit(stream: Stream, source: "rest" | "live", counts: CommitCounts): void {
    this.increment("commits_total", 1, { stream, source });
    this.set("last_commit_timestamp_seconds", this.#now(), { stream });
    for (const [kind, count] of Object.entries(counts)) {
      if (count) this.increment("rows_total", count, { stream, kind });
    }
  }

  /** The time from receiving a live batch to its commit. */
  observeLiveLag(ms: number): void {
    this.#histogram("live_lag_seconds").observe(ms / 1000);
  }

  setIngest(queued: number, state: string): void {
    this.set("ingest_queued", queued);
    this.#setStates("ingest_state", INGEST_STATES, state, {});
  }

  setShared({ state, lag_seconds, rows_forwarded, last_error }: ShareStatus): void {
    this.set("shared_forwarding", state === "forwarding" || state === "current" ? 1 : 0);
    this.set("shared_lag_seconds", lag_seconds ?? Number.NaN);
    this.set("shared_rows_forwarded", rows_forwarded);
    this.set("shared_warning", state === "current" && last_error !== null ? 1 : 0);
    this.set("shared_failing", state === "failing" ? 1 : 0);
  }

  setStreams(streams: readonly StreamFigures[]): void {
    for (const figures of streams) {
      const { stream } = figures;
      this.set("stream_rows", figures.rows, { stream });
      this.set("open_ranges", figures.open, { stream });
      this.set("open_seconds", figures.open_seconds, { stream });
      this.set("unconfirmed_ranges", figures.unconfirmed, { stream });
      this.set("oldest_open_age_seconds", figures.oldest_open_age_s ?? 0, { stream });
      this.set("lost_ranges", figures.lost, { stream });
      this.set("lost_seconds", figures.lost_seconds, { stream });
      this.set("stream_failing", figures.last_error === null ? 0 : 1, { stream });
      this.set("missing_scopes", figures.missing_scopes.length, { stream });
      if (figures.newest_age_s === null || !figures.is_followed)
        this.#gauge("newest_age_seconds").remove({ stream });
      else this.set("newest_age_seconds", figures.newest_age_s, { stream });
    }
  }

  /** A job is scheduled: its runs count from 0. `outcome`: of its last run before this start. */
  registerJob(job: string, outcome = "new"): void {
    const task = this.#boundLabel("task", job);
    this.increment("jobs_total", 0, { task, outcome: "ok" });
    this.set("job_failing", outcome === "ok" || outcome === "new" ? 0 : 1, { task });
  }

  /** A scheduled job has ended; the outcome is `ok` or the code of its failure. */
  countJob(job: string, outcome: string): void {
    const task = this.#boundLabel("task", job);
    this.increment("jobs_total", 1, { task, outcome: this.#boundLabel("job outcome", outcome) });
    this.set("job_failing", outcome === "ok" ? 0 : 1, { task });
    if (outcome === "ok") this.setJobSuccess(job, this.#now());
  }

  /** The Unix time of a job's last success; at start the daemon reads it from the warehouse. */
  setJobSuccess(job: string, at: number): void {
    this.set("job_last_success_timestamp_seconds", at, { task: this.#boundLabel("task", job) });
  }

  /** Registers a callback that sets gauges right before each exposition. */
  onCollect(collector: () => void): void {
    this.#collectors.push(collector);
  }

  exposition(): Promise<string> {
    for (const collect of this.#collectors) collect();
    this.set("resident_memory_bytes", process.memoryUsage.rss());
    const { user, system } = process.cpuUsage();
    const cpu = this.#counter("cpu_seconds_total");
    cpu.reset();
    cpu.inc((user + system) / 1e6);
    return this.#registry.metrics();
  }

  #now(): number {
    return this.#clock.now() / 1000;
  }

  /**
   * Limits the number of values of a label. Prometheus stores one time series per value: unbounded values from
   * outside would exhaust its memory, and could expose secrets.
   */
  #boundLabel(label: string, value: string): string {
    const known = this.#labels.get(label) ?? new Set();
    this.#labels.set(label, known);
    if (known.has(value)) return value;
    if (known.size >= MAX_LABEL_VALUES || !labelPattern.test(value) || identifierPattern.test(value))
      return "other";
    known.add(value);
    return value;
  }

  #setStates<N extends MetricName>(
    name: N,
    states: readonly string[],
    current: string,
    labels: Omit<LabelsOf<N>, "state">,
  ): void {
    for (const state of states) this.#gauge(name).set({ ...labels, state }, state === current ? 1 : 0);
  }

  #counter = (name: MetricName) => this.#instruments.get(name) as Counter;
  #gauge = (name: MetricName) => this.#instruments.get(name) as Gauge;
  #histogram = (name: MetricName) => this.#instruments.get(name) as Histogram;
}

function createInstrument(name: string, declaration: MetricDeclaration, registry: Registry): Instrument {
  const { type, labels, meaning: help, buckets, known = [] } = declaration;
  const common = { name: METRIC_PREFIX + name, help, labelNames: [...labels], registers: [registry] };
  if (type === "counter") {
    const counter = new Counter(common);
    // Prometheus computes no increase from a counter that appears with its first event.
    for (const values of known) counter.inc(values, 0);
    return counter;
  }
  if (type === "gauge") return new Gauge(common);
  return new Histogram({ ...common, buckets: [...(buckets ?? [])] });
}

/** An endpoint template, a code or a name. Opaque ids and tokens are longer or contain other characters. */
const labelPattern = /^[A-Za-z][\w.:/{}-]{0,47}$|^\/[\w./{}-]{0,63}$/;
/** Eight hexadecimal digits in a row belong to an identifier, not to a word. */
const identifierPattern = /[0-9a-f]{8}|[A-Za-z0-9_-]{40}/i;
const MAX_LABEL_VALUES = 64;
