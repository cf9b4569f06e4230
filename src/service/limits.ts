/**
 * Every number that steers requests and connections, with its reason; what is not here follows from one of these. The units and the
 * three times that a person would choose are not counted.
 */
export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const TEN_MINUTES_MS = 10 * MINUTE_MS;
export const HOUR_MS = 60 * MINUTE_MS;

// Attempt: one request, sent until it is answered.
/** A page of 2,000 rows takes seconds; a connection that was lost silently must not hold a slot for longer. */
export const REQUEST_TIMEOUT_MS = MINUTE_MS;
/** For a large body on a slow link. The largest body at the lowest accepted rate takes longer and is aborted. */
export const MAX_BODY_TIMEOUT_MS = TEN_MINUTES_MS;
/** Below this rate a response counts as stalled. */
export const MIN_BYTES_PER_SECOND = 16 * 1024;
/** While three requests of four fail, one page in a hundred needs more; its range is then fetched again. */
export const MAX_ATTEMPTS = 16;
/** How often one request is sent again after a failure that soon repeats itself; all requests share the failures of tokens. */
export const MAX_RETRIES = { "401": 1, connection_lost: 1, conflict: 3, "no token": 5 } as const;
/** Isolated failures: the next attempt probably succeeds. */
export const FAST_BACKOFF = { baseMs: 10, maxMs: 160 };
/** Nearly everything fails; also the pause before the websocket connects again. */
export const SLOW_BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };
/** A snapshot must not miss its period because history has spent the budget. */
export const URGENT_BACKOFF = { ...SLOW_BACKOFF, maxMs: 5 * SECOND_MS };
/** Retries that each success pays for: they are at most nine requests in ten. */
export const BUDGET = { perSuccess: 9, max: 30 };

// Outage: what fails, and when it is asked again.
/** So rare is a run of failures that opens a breaker, given the share of requests that fail anyway. */
export const MAX_CHANCE = 1e-5;
/** Before any answer, three of four may fail; so many requests show the real share. */
export const INITIAL_FAILED_SHARE = 0.75;
export const SHARE_MEMORY = 30;
/** A doubt about the host costs one request, that of the probe. */
export const MIN_HOST_FAILURES = 3;
/** An endpoint that fails alone loses its requests but for one at a time: not for a short burst. */
export const MIN_ENDPOINT_FAILURES = 16;
/** A timeout counts as so many failures: it holds a slot for a minute. */
export const TIMEOUT_WEIGHT = 8;
/** An endpoint that has only failed for this long, while others answer, is given up until a probe succeeds. */
export const DEAD_ENDPOINT_MS = MINUTE_MS;
/** A stream without history is synced: back three seconds after the service, with less than 1,300 probes in an hour. */
export const URGENT_PROBES = { baseMs: 2_900, maxMs: 2_900, jitter: 0.03 };
/** A probe that hangs must not hold up the next. */
export const MAX_PROBE_MS = 2_800;
/** Longer than the cadence of a stream without history. */
export const URGENCY_MS = TEN_MINUTES_MS;
/** What has a history can wait: fewer than 200 requests in an hour of outage, and fewer than 100 to one endpoint that fails. */
export const PROBE_BACKOFF = { baseMs: 2_000, maxMs: 40_000, jitter: 0.5 };
export const ENDPOINT_BACKOFF = { ...PROBE_BACKOFF, maxMs: 90_000 };
/** The client never waits longer than this, whatever the service requests. */
export const MAX_RETRY_AFTER_MS = 15 * MINUTE_MS;
/** How long a request waits for an outage to end, over all attempts: longer than a pause that the service asks for. */
export const MAX_REQUEST_WAIT_MS = MAX_RETRY_AFTER_MS + 5 * MINUTE_MS;

// Parking: what is not requested for a while.
/** So many different paths, or records of one path, answer 404 and none succeeds: the service is at fault, not the records. */
export const MAX_MISSING_PATHS = 3;
export const MAX_MISSING_RECORDS = 100;

/** At least a minute, growing to at least half an hour. */
const REJECTED = { baseMs: 75 * SECOND_MS, maxMs: 37.5 * MINUTE_MS, jitter: 0.2 };
const every = (ms: number) => ({ baseMs: ms, maxMs: ms, jitter: 0 });

interface ParkingRow {
  readonly parks: string;
  /** When it is tried again: the first wait, doubled up to the longest. */
  readonly retry: { readonly baseMs: number; readonly maxMs: number; readonly jitter: number };
  /** A retry takes a new token, which may have newly granted scopes, once in this time. */
  readonly newTokenMs: number;
  readonly ends: string;
}

/** What is parked at which sign, and what ends it. A history can be fetched later; what else is missed is lost. */
export const parkings = {
  "401": {
    parks: "an endpoint that rejects a token which others accept",
    retry: REJECTED,
    newTokenMs: 0,
    ends: "its next answer",
  },
  "401 of all": { parks: "every request", retry: REJECTED, newTokenMs: 0, ends: "an answer to a new token" },
  "refused credentials": {
    parks: "token requests",
    retry: { ...every(6 * MINUTE_MS), jitter: 1 / 6 },
    newTokenMs: 0,
    ends: "another secret",
  },
  "403": {
    parks: "a history of one type",
    retry: every(TEN_MINUTES_MS),
    newTokenMs: TEN_MINUTES_MS,
    ends: "its next answer",
  },
  "403 of an index": {
    parks: "one index: hundreds may be denied",
    retry: every(HOUR_MS),
    newTokenMs: HOUR_MS,
    ends: "its next answer",
  },
  "403 of a snapshot": {
    parks: "a snapshot stream",
    retry: every(MINUTE_MS),
    newTokenMs: TEN_MINUTES_MS,
    ends: "its next answer",
  },
  "no list": {
    parks: "all requests of one kind",
    retry: every(MINUTE_MS),
    newTokenMs: 0,
    ends: "a list of that kind",
  },
  "refused subscription": {
    parks: "one subscription",
    retry: every(HOUR_MS),
    newTokenMs: 0,
    ends: "its confirmation",
  },
  "unanswered subscription": {
    parks: "one subscription",
    retry: every(TEN_MINUTES_MS),
    newTokenMs: 0,
    ends: "its confirmation",
  },
} as const satisfies Record<string, ParkingRow>;
export type ParkingSign = keyof typeof parkings;
