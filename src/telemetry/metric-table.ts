/** Goes before every name, so that one look tells whose series it is. */
export const METRIC_PREFIX = "mds_sync_";

export interface MetricDeclaration {
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly meaning: string;
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
}

const requestBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const lagBuckets = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1, 2.5, 5, 10, 30];

/** Every series there is: what is not declared here cannot be counted. `docs/metrics.md` is made from it. */
export const metricTable = {
  up: { type: "gauge", labels: [], meaning: "1 while the process runs" },
  ready: {
    type: "gauge",
    labels: [],
    meaning: "1 once the warehouse is open and the service has answered, as `/readyz`",
  },
  healthy: { type: "gauge", labels: [], meaning: "1 while the daemon does its work, as `/healthz`" },
  build_info: { type: "gauge", labels: ["version"], meaning: "Always 1; the label says which version runs" },
  start_time_seconds: { type: "gauge", labels: [], meaning: "When the daemon started, Unix time" },
  resident_memory_bytes: { type: "gauge", labels: [], meaning: "Memory that the process holds" },
  cpu_seconds_total: { type: "counter", labels: [], meaning: "CPU time that the process has used" },

  requests_total: {
    type: "counter",
    labels: ["endpoint", "outcome"],
    meaning: "Requests to the service; the outcome is `ok` or the code of the failure",
  },
  request_seconds: {
    type: "histogram",
    labels: ["endpoint"],
    buckets: requestBuckets,
    meaning: "How long requests took, failed ones included",
  },
  response_bytes_total: {
    type: "counter",
    labels: ["endpoint"],
    meaning: "Body bytes as they came over the wire, compressed where the service does so",
  },
  request_retries_total: {
    type: "counter",
    labels: ["endpoint"],
    meaning: "Requests that were a second or later attempt",
  },
  stale_answers_total: {
    type: "counter",
    labels: ["endpoint"],
    meaning: "Answers that a cache on the way had kept",
  },
  request_concurrency_limit: { type: "gauge", labels: [], meaning: "Requests that may be in flight at once" },
  breaker_open: {
    type: "gauge",
    labels: ["host"],
    meaning: "1 while the host (`data`, `token`) is left alone after repeated failures",
  },
  auth_state: {
    type: "gauge",
    labels: ["audience", "state"],
    meaning: "1 for the state that the tokens of the audience (`rest`, `live`) are in, 0 for the others",
  },
  walk_troubles_total: {
    type: "counter",
    labels: ["endpoint", "event"],
    meaning: "What backward walks met and got around: cycles, dead cursors, pages out of order",
  },
  last_answer_timestamp_seconds: {
    type: "gauge",
    labels: [],
    meaning: "When the service last answered a request with success, Unix time",
  },

  feed_connected: { type: "gauge", labels: [], meaning: "1 while the live feed is connected" },
  feed_events_total: {
    type: "counter",
    labels: ["event", "reason"],
    meaning: "What happened to the live feed: attempts, connections, endings and their reason",
  },
  feed_subscriptions: {
    type: "gauge",
    labels: ["state"],
    meaning: "Subscriptions that are `following`, in `doubt` (polled meanwhile) or `parked` by the service",
  },
  feed_dropped_ticks_total: {
    type: "counter",
    labels: [],
    meaning: "Live ticks that could not be held; the gap is recorded and fetched",
  },
  live_lag_seconds: {
    type: "histogram",
    labels: [],
    buckets: lagBuckets,
    meaning: "From receiving a live batch to having it on disk",
  },

  rows_total: {
    type: "counter",
    labels: ["stream", "kind"],
    meaning:
      "Records by what became of them: `inserted`, `changed`, `unchanged`, `outranked`, `withdrawn`, `rejected`, `foreign`",
  },
  commits_total: {
    type: "counter",
    labels: ["stream", "source"],
    meaning: "Transactions that brought records; the source is `rest` or `live`",
  },
  alarms_total: {
    type: "counter",
    labels: ["alarm"],
    meaning:
      "Pages and lists that contradicted what is known, and therefore settled nothing and took nothing off",
  },
  unknown_events_total: {
    type: "counter",
    labels: [],
    meaning: "Live messages that this version does not know; samples are in `unknown_events`",
  },
  last_commit_timestamp_seconds: {
    type: "gauge",
    labels: ["stream"],
    meaning: "When records of the stream were last committed, Unix time",
  },
  ingest_queued: { type: "gauge", labels: [], meaning: "Calls to the ingest thread, queued or under way" },
  ingest_state: {
    type: "gauge",
    labels: ["state"],
    meaning: "1 for the state of the ingest thread (`working`, `disk_full`, `db_locked`), 0 for the others",
  },

  warehouse_bytes: { type: "gauge", labels: [], meaning: "Size of the warehouse file without its WAL" },
  wal_bytes: {
    type: "gauge",
    labels: [],
    meaning: "Size of the write-ahead log; a long reader lets it grow",
  },
  disk_free_bytes: { type: "gauge", labels: [], meaning: "Free space on the warehouse's disk" },
  disk_full_days: {
    type: "gauge",
    labels: [],
    meaning:
      "Days until the disk is full at the present growth; +Inf without growth, NaN until an hour is known",
  },

  clock_skew_seconds: {
    type: "gauge",
    labels: [],
    meaning: "The service's clock minus this machine's, when last compared",
  },
  stream_rows: { type: "gauge", labels: ["stream"], meaning: "Rows stored" },
  open_ranges: { type: "gauge", labels: ["stream"], meaning: "Missing ranges that will be fetched" },
  open_seconds: { type: "gauge", labels: ["stream"], meaning: "Length of the open ranges, over all series" },
  lost_ranges: {
    type: "gauge",
    labels: ["stream"],
    meaning: "Missing ranges that the service no longer has",
  },
  lost_seconds: { type: "gauge", labels: ["stream"], meaning: "Length of the lost ranges, over all series" },
  newest_age_seconds: {
    type: "gauge",
    labels: ["stream"],
    meaning: "Age of the newest row, or of a lookup's last refresh; absent without any row",
  },
  stream_failing: {
    type: "gauge",
    labels: ["stream"],
    meaning: "1 while the stream's last attempt ended with an error; `status` says which",
  },
  missing_scopes: {
    type: "gauge",
    labels: ["stream"],
    meaning: "Scopes that the token lacks for the stream",
  },

  jobs_total: {
    type: "counter",
    labels: ["task", "outcome"],
    meaning: "Runs of scheduled jobs; the outcome is `ok` or the code of the failure",
  },
  job_last_success_timestamp_seconds: {
    type: "gauge",
    labels: ["task"],
    meaning: "When the job last ended well, Unix time",
  },
  audit_differences_total: {
    type: "counter",
    labels: ["stream"],
    meaning: "Settled stretches that a nightly audit found different from the service; they were put right",
  },
} as const satisfies Record<string, MetricDeclaration>;

export type MetricName = keyof typeof metricTable;
/** The label names of a series, as the compiler knows them. */
export type LabelsOf<N extends MetricName> = Record<(typeof metricTable)[N]["labels"][number], string>;
