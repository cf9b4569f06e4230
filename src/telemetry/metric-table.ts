import { historyStreams, streams } from "../model/streams.ts";

/** Prefix of every metric name. */
export const METRIC_PREFIX = "mds_sync_";

export interface MetricDeclaration {
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly meaning: string;
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
  /** Label values that are known before the first event: their counters exist from the start, at 0. */
  readonly known?: readonly Readonly<Record<string, string>>[];
}

const REQUEST_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const LAG_BUCKETS = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1, 2.5, 5, 10, 30];

const rowResults = ["inserted", "changed", "unchanged", "outranked", "withdrawn", "rejected", "foreign"];
const alarms = [
  "disordered",
  "false_end",
  "foreign_rows",
  "mass_rejection",
  "mass_withdrawal",
  "newer_than_proven",
  "older_than_stored",
  "shrunken_list",
] as const;
export type Alarm = (typeof alarms)[number];

/** Every metric of the program. A test keeps `docs/metrics.md` equal to this table. */
export const metricTable = {
  up: { type: "gauge", labels: [], meaning: "1 while the process runs" },
  ready: {
    type: "gauge",
    labels: [],
    meaning: "1 once the warehouse is open and the service has answered (same as `/readyz`)",
  },
  healthy: { type: "gauge", labels: [], meaning: "1 while the daemon is healthy (same as `/healthz`)" },
  build_info: { type: "gauge", labels: ["version"], meaning: "Always 1; the label is the version that runs" },
  start_time_seconds: { type: "gauge", labels: [], meaning: "Start time of the daemon, Unix time" },
  resident_memory_bytes: { type: "gauge", labels: [], meaning: "Resident memory of the process" },
  cpu_seconds_total: { type: "counter", labels: [], meaning: "CPU time used by the process" },

  requests_total: {
    type: "counter",
    labels: ["endpoint", "outcome"],
    meaning: "Requests to the service; the outcome is `ok` or the code of the failure",
  },
  request_seconds: {
    type: "histogram",
    labels: ["endpoint"],
    buckets: REQUEST_BUCKETS,
    meaning: "Duration of requests, failed requests included",
  },
  response_bytes_total: {
    type: "counter",
    labels: ["endpoint"],
    meaning: "Body bytes received, before decompression",
  },
  request_retries_total: {
    type: "counter",
    labels: ["endpoint"],
    meaning: "Requests that repeat a failed attempt",
  },
  stale_answers_total: {
    type: "counter",
    labels: ["endpoint"],
    meaning: "Responses that came from a stale cache between the service and the client",
  },
  request_concurrency_limit: { type: "gauge", labels: [], meaning: "Maximum number of requests in flight" },
  request_rate_limit: {
    type: "gauge",
    labels: [],
    meaning: "Requests per second at most, configured or learned from the service's 429s; +Inf: no limit",
  },
  request_limit_state: {
    type: "gauge",
    labels: ["state"],
    meaning:
      "1 for what limits the requests (`settings`; the service: `rate_limited`, `overloaded`, `paused`), 0 for the others",
  },
  request_limit_info: {
    type: "gauge",
    labels: ["limit"],
    meaning: "1, with what limits the requests in words; `settings`: nothing else",
  },
  request_limit_since_timestamp_seconds: {
    type: "gauge",
    labels: [],
    meaning: "Since when; NaN: nothing but the settings limits the requests",
  },
  breaker_open: {
    type: "gauge",
    labels: ["endpoint"],
    meaning:
      "1 while the circuit breaker of the endpoint is open after repeated failures; `host`: the whole service fails",
  },
  auth_state: {
    type: "gauge",
    labels: ["audience", "state"],
    meaning: "1 for the current token state of the audience (`rest`, `live`), 0 for the other states",
  },
  walk_troubles_total: {
    type: "counter",
    labels: ["endpoint", "event"],
    meaning: "Anomalies that history walks met and recovered from: cycles, dead cursors, pages out of order",
  },
  last_answer_timestamp_seconds: {
    type: "gauge",
    labels: [],
    meaning: "Time of the last successful response, Unix time",
  },

  feed_connected: { type: "gauge", labels: [], meaning: "1 while the live feed is connected" },
  feed_events_total: {
    type: "counter",
    labels: ["event", "reason"],
    meaning:
      "Events of the live feed: connection attempts, connections, and disconnections with their reason",
  },
  feed_subscriptions: {
    type: "gauge",
    labels: ["state"],
    meaning:
      "Subscriptions by state: `following`, `doubt` (unconfirmed or silent, polled meanwhile), `parked` (not served for now)",
  },
  feed_dropped_ticks_total: {
    type: "counter",
    labels: [],
    meaning: "Live ticks dropped because the buffer was full; the gap is recorded and fetched",
  },
  live_lag_seconds: {
    type: "histogram",
    labels: [],
    buckets: LAG_BUCKETS,
    meaning: "Time from receiving a live batch to its commit",
  },

  rows_total: {
    type: "counter",
    labels: ["stream", "kind"],
    known: streams.flatMap((stream) => rowResults.map((kind) => ({ stream, kind }))),
    meaning:
      "Records by result: `inserted`, `changed`, `unchanged`, `outranked`, `withdrawn`, `rejected`, `foreign`",
  },
  commits_total: {
    type: "counter",
    labels: ["stream", "source"],
    known: [
      ...streams.map((stream) => ({ stream, source: "rest" })),
      { stream: "index_ticks", source: "live" },
      { stream: "exchange_ticks", source: "live" },
    ],
    meaning: "Transactions that stored records; the source is `rest` or `live`",
  },
  alarms_total: {
    type: "counter",
    labels: ["alarm"],
    known: alarms.map((alarm) => ({ alarm })),
    meaning: "Pages and snapshots that contradict the warehouse; they settle nothing and withdraw nothing",
  },
  unknown_events_total: {
    type: "counter",
    labels: [],
    meaning: "Live messages of an unknown type; samples are in `unknown_events`",
  },
  last_commit_timestamp_seconds: {
    type: "gauge",
    labels: ["stream"],
    meaning: "Time of the last commit of records of the stream, Unix time",
  },
  ingest_queued: { type: "gauge", labels: [], meaning: "Calls to the ingest thread, queued or running" },
  ingest_state: {
    type: "gauge",
    labels: ["state"],
    meaning:
      "1 for the current state of the ingest thread (`working`, `disk_full`, `db_locked`), 0 for the others",
  },

  warehouse_bytes: { type: "gauge", labels: [], meaning: "Size of the warehouse file without its WAL" },
  wal_bytes: {
    type: "gauge",
    labels: [],
    meaning: "Size of the write-ahead log; it grows while a long reader runs",
  },
  disk_free_bytes: { type: "gauge", labels: [], meaning: "Free space on the warehouse's disk" },
  disk_full_seconds: {
    type: "gauge",
    labels: [],
    meaning:
      "Time until the disk is full at the current growth; +Inf without growth, NaN during the first hour",
  },

  shared_lag_seconds: {
    type: "gauge",
    labels: [],
    meaning: "How far the shared warehouse is behind; 0 without one, NaN until everything was forwarded once",
  },
  shared_forwarding: {
    type: "gauge",
    labels: [],
    meaning:
      "1 while this daemon forwards to the shared warehouse; 0 without one, on standby or while it fails",
  },
  shared_rows_forwarded: {
    type: "gauge",
    labels: [],
    meaning: "Rows forwarded to the shared warehouse since the start",
  },
  shared_failing: {
    type: "gauge",
    labels: [],
    meaning: "1 while forwarding to the shared warehouse fails; `status` shows the error",
  },

  clock_skew_seconds: {
    type: "gauge",
    labels: [],
    meaning: "The service's clock minus this machine's clock, at the last comparison",
  },
  stream_rows: { type: "gauge", labels: ["stream"], meaning: "Rows stored" },
  open_ranges: { type: "gauge", labels: ["stream"], meaning: "Gaps that will be fetched" },
  open_seconds: {
    type: "gauge",
    labels: ["stream"],
    meaning: "Total length of the open gaps, over all series",
  },
  lost_ranges: {
    type: "gauge",
    labels: ["stream"],
    meaning: "Gaps that the service no longer has",
  },
  lost_seconds: {
    type: "gauge",
    labels: ["stream"],
    meaning: "Total length of the lost gaps, over all series",
  },
  newest_age_seconds: {
    type: "gauge",
    labels: ["stream"],
    meaning: "Age of the newest row, or of a lookup's last refresh; absent while there is no row",
  },
  stream_failing: {
    type: "gauge",
    labels: ["stream"],
    meaning: "1 while the stream's last attempt failed; `status` shows the error",
  },
  missing_scopes: {
    type: "gauge",
    labels: ["stream"],
    meaning: "Scopes that the token lacks for the stream",
  },

  serve_clients: { type: "gauge", labels: [], meaning: "Clients connected to the websocket of `serve`" },
  serve_requests_total: {
    type: "counter",
    labels: ["outcome"],
    known: [{ outcome: "answered" }, { outcome: "failed" }],
    meaning: "Requests to `serve` beside the daemon; the outcome is `answered` or `failed` (5xx)",
  },
  serve_messages_total: {
    type: "counter",
    labels: [],
    meaning: "Messages that `serve` sent on its websocket",
  },
  serve_dropped_clients_total: {
    type: "counter",
    labels: [],
    meaning: "Websocket clients that `serve` dropped because they read too slowly",
  },

  jobs_total: {
    type: "counter",
    labels: ["task", "outcome"],
    meaning: "Runs of scheduled jobs; the outcome is `ok` or the code of the failure",
  },
  job_last_success_timestamp_seconds: {
    type: "gauge",
    labels: ["task"],
    meaning: "Time of the job's last successful run, Unix time",
  },
  audit_differences_total: {
    type: "counter",
    labels: ["stream"],
    known: historyStreams.map((stream) => ({ stream })),
    meaning: "Settled ranges that a nightly audit found different from the service, and repaired",
  },
} as const satisfies Record<string, MetricDeclaration>;

export type MetricName = keyof typeof metricTable;
/** The labels of a metric, with their names checked by the compiler. */
export type LabelsOf<N extends MetricName> = Record<(typeof metricTable)[N]["labels"][number], string>;
