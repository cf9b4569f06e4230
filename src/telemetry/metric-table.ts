import { historyStreams, streams } from "../model/streams.ts";

export const METRIC_PREFIX = "mds_sync_";

export interface MetricDeclaration {
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly meaning: string;
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
  /** Label values known before the first event: their counters start at 0. */
  readonly known?: readonly Readonly<Record<string, string>>[];
}

const REQUEST_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const LAG_BUCKETS = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1, 2.5, 5, 10, 30];

export const rowResults = [
  "inserted",
  "changed",
  "unchanged",
  "outranked",
  "withdrawn",
  "rejected",
  "foreign",
] as const;
const alarms = [
  "disordered",
  "false_end",
  "foreign_rows",
  "mass_rejection",
  "mass_withdrawal",
  "newer_than_proven",
  "older_than_stored",
  "shrunken_list",
];

const declare =
  <Type extends MetricDeclaration["type"]>(type: Type) =>
  <const Labels extends readonly string[]>(meaning: string, ...labels: Labels) => ({ type, labels, meaning });
const [gauge, counter, histogram] = [declare("gauge"), declare("counter"), declare("histogram")];

/** Every metric of the program. A test keeps `docs/metrics.md` equal to this table. */
export const metricTable = {
  up: gauge("1 while the process runs"),
  ready: gauge("1 once `/readyz` answers 200: the warehouse is open and the service has answered"),
  healthy: gauge("1 while `/healthz` answers 200"),
  build_info: gauge("Always 1", "version"),
  start_time_seconds: gauge("Start time of the daemon"),
  resident_memory_bytes: gauge("Resident memory of the process"),
  cpu_seconds_total: counter("CPU time used by the process"),

  requests_total: counter("Requests; the outcome is `ok` or the code of the failure", "endpoint", "outcome"),
  request_seconds: {
    ...histogram("Duration of requests, also failed ones", "endpoint"),
    buckets: REQUEST_BUCKETS,
  },
  response_bytes_total: counter("Body bytes received, before decompression", "endpoint"),
  request_retries_total: counter("Requests that repeat a failed attempt", "endpoint"),
  stale_answers_total: counter("Responses from a stale cache on the way", "endpoint"),
  request_concurrency_limit: gauge("Maximum number of requests in flight"),
  request_rate_limit: gauge("Maximum requests per second, configured or learned from 429s; +Inf: no limit"),
  request_limit_state: gauge(
    "1 for what limits the requests (`settings`; the service: `rate_limited`, `overloaded`, `paused`)",
    "state",
  ),
  request_limit_info: gauge(
    "Always 1, with what limits the requests in words; `settings`: nothing else",
    "limit",
  ),
  request_limit_since_timestamp_seconds: gauge("Since when the service limits requests; NaN: it does not"),
  breaker_open: gauge("1 while the circuit breaker of the endpoint (`host`: of all) is open", "endpoint"),
  auth_state: gauge("1 for the token state of the audience (`rest`, `live`)", "audience", "state"),
  walk_troubles_total: counter(
    "Anomalies that walks recovered from: cycles, dead cursors, unordered pages",
    "endpoint",
    "event",
  ),
  last_answer_timestamp_seconds: gauge("Time of the last successful response"),

  feed_connected: gauge("1 while the live feed is connected; absent if nothing selected needs it"),
  feed_events_total: counter(
    "Connection attempts, connections, and disconnections with their reason",
    "event",
    "reason",
  ),
  feed_subscriptions: gauge(
    "Subscriptions by state: `following`, `doubt` (unconfirmed or silent, polled meanwhile), `parked` (not served for now)",
    "state",
  ),
  feed_dropped_ticks_total: counter("Live ticks dropped because the buffer was full"),
  live_lag_seconds: { ...histogram("Time from receiving a live batch to its commit"), buckets: LAG_BUCKETS },

  rows_total: {
    ...counter(
      "Records by result: `inserted`, `changed`, `unchanged`, `outranked`, `withdrawn`, `rejected`, `foreign`",
      "stream",
      "kind",
    ),
    known: streams.flatMap((stream) => rowResults.map((kind) => ({ stream, kind }))),
  },
  commits_total: {
    ...counter("Transactions that stored records; the source is `rest` or `live`", "stream", "source"),
    known: [
      ...streams.map((stream) => ({ stream, source: "rest" })),
      { stream: "index_ticks", source: "live" },
      { stream: "exchange_ticks", source: "live" },
    ],
  },
  alarms_total: {
    ...counter(
      "Pages and snapshots that contradict the warehouse; they settle and withdraw nothing",
      "alarm",
    ),
    known: alarms.map((alarm) => ({ alarm })),
  },
  unknown_events_total: counter("Live messages of an unknown type; samples are in `unknown_events`"),
  last_commit_timestamp_seconds: gauge("Time of the last commit of records", "stream"),
  ingest_queued: gauge("Calls to the ingest thread, queued or running"),
  ingest_state: gauge("1 for the state of the ingest thread (`working`, `disk_full`, `db_locked`)", "state"),

  warehouse_bytes: gauge("Size of the warehouse file without its WAL"),
  wal_bytes: gauge("Size of the write-ahead log; it grows while a long reader runs"),
  written_bytes: gauge("What the process has written to disks since its start"),
  disk_free_bytes: gauge("Free space on the warehouse's disk"),
  disk_full_seconds: gauge("Time until the disk is full; +Inf without growth, NaN during the first hour"),

  shared_lag_seconds: gauge(
    "How far the shared warehouse is behind; 0 without one, NaN until all was forwarded once",
  ),
  shared_forwarding: gauge("1 while this daemon forwards to the shared warehouse"),
  shared_rows_forwarded: gauge("Rows forwarded since the start"),
  shared_warning: gauge("1 while a second server of the shared warehouse accepts writes; `status` names it"),
  shared_failing: gauge("1 while forwarding fails; `status` shows the error"),

  clock_skew_seconds: gauge("The service's clock minus this machine's clock, at the last comparison"),
  stream_rows: gauge("Rows stored", "stream"),
  open_ranges: gauge("Gaps that will be fetched", "stream"),
  open_seconds: gauge("Total length of the open gaps, over all series", "stream"),
  unconfirmed_ranges: gauge("Gaps that the service must only confirm", "stream"),
  oldest_open_age_seconds: gauge("Age of the oldest open gap; 0: nothing is open", "stream"),
  lost_ranges: gauge("Gaps that the service no longer has", "stream"),
  lost_seconds: gauge("Total length of the lost gaps, over all series", "stream"),
  newest_age_seconds: gauge(
    "Age of the newest row, or of a lookup's last refresh; absent without a row, and if deselected",
    "stream",
  ),
  stream_failing: gauge("1 while the stream's last attempt failed; `status` shows the error", "stream"),
  missing_scopes: gauge("Scopes that the token lacks for the stream", "stream"),

  serve_clients: gauge("Clients connected to the websocket of `serve`"),
  serve_requests_total: {
    ...counter(
      "Requests to `serve` beside the daemon; the outcome is `answered` or `failed` (5xx)",
      "outcome",
    ),
    known: [{ outcome: "answered" }, { outcome: "failed" }],
  },
  serve_messages_total: counter("Messages that `serve` sent on its websocket"),
  serve_dropped_clients_total: counter("Websocket clients that read too slowly for `serve`"),

  jobs_total: counter("Runs of scheduled jobs, by `ok` or the code of the failure", "task", "outcome"),
  job_failing: gauge("1 while the job's last run failed; `status` shows its outcome", "task"),
  job_last_success_timestamp_seconds: gauge("Time of the job's last successful run", "task"),
  audit_differences_total: {
    ...counter("Settled ranges that the nightly comparison repaired", "stream"),
    known: historyStreams.map((stream) => ({ stream })),
  },
} satisfies Record<string, MetricDeclaration>;

export type MetricName = keyof typeof metricTable;
/** The labels of a metric, with their names checked by the compiler. */
export type LabelsOf<N extends MetricName> = Record<(typeof metricTable)[N]["labels"][number], string>;
