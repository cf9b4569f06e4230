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

// Gate: how many at once, and how many a second.
/** What a bad answer does to the speed: it restarts at `keep` of what was accepted, if more than `tolerated` of the answers are bad. */
export const CUTS = {
  rate: { keep: 0.7, tolerated: 0.04 },
  /** The silence that the service asks for is enough, unless it asks for it often. */
  ratePaused: { keep: 0.7, tolerated: 0.2 },
  atOnce: { keep: 0.5, tolerated: 0 },
} as const;
/** The first requests, and those after a break, until one succeeded: the service may bear one at a time, or have gone. */
export const START_AT_ONCE = 2;
/** So many answers say something: older ones count less and less, and a way back to a ceiling takes as many. */
export const MANY_ANSWERS = 64;
/** So many accepted requests are a rate, measured over at least a second: the shortest window of a limit. */
export const SAMPLE = 8;
export const MEASURED_MS = 1_000;
/** The speed is back at the ceiling after this time, and at twice of it after as long again. */
export const GROWTH_MS = 4_000;
/** The slower the limit, the longer the way back, because each ends with a wasted request; at most this. */
export const MAX_RECOVERY_MS = 24_000;
/** Each further 429 in a row doubles the silence after it, up to this. */
export const MAX_HOLD_MS = 5_000;
/** The silence after the second 429 in a row, at least. */
export const HOLD_MS = 200;
/** Fewer a second cannot be too many: that is the demand, not the limit. */
export const MIN_CEILING = 1;
/** A late timer may catch up this much, so that coarse timers do not lower the rate. */
export const MAX_CATCH_UP_MS = 20;
/** A poll that waits longer is late, because slow history pages occupy every slot. It then reserves one slot. */
export const MAX_POLL_WAIT_MS = 2 * SECOND_MS;
/** How long after the last poll one slot stays reserved for the next. */
export const RESERVATION_MS = 2 * MINUTE_MS;
/** At least every fourth start is one of each kind that waits: no limit starves heads or history. */
export const MAX_STARTS_BETWEEN = 3;

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

// The size of pages.
/** The documented default; a service that refuses it refuses something else. */
export const MIN_PAGE_SIZE = 10;
/** A page of some ten kilobytes fails for another reason than its size, unless the service says that it is too large. */
export const MIN_SUSPECT_SIZE = 50;
/** After so many good pages a page of twice the size is tried; after each try that fails, after twice as many. */
export const MIN_GOOD_PAGES = 4;
export const MAX_GOOD_PAGES = 1024;
/** A page behind a gateway is asked for so often before a smaller one. */
export const MAX_GATEWAY_FAILURES = 3;
/** And one whose body ended too early. */
export const MAX_CUT_BODIES = 2;

// Tokens.
/** They are asked for in turn, one each three seconds: a late answer still counts. */
export const TOKEN_REQUEST_TIMEOUT_MS = MINUTE_MS / 2;
/** Shorter lifetimes count as this: `expires_in: 0` must not cause a token request per request. */
export const MIN_TOKEN_LIFETIME_MS = MINUTE_MS / 2;
/** No token is used longer than this after it was first seen, whatever the response says. */
export const MAX_TOKEN_LIFETIME_MS = 24 * HOUR_MS;
/** For responses without a usable `expires_in`. A 401 ends such a token earlier if needed. */
export const DEFAULT_TOKEN_LIFETIME_MS = HOUR_MS;
/** Leaves about 4.5 hours of a one-day token: a shorter outage of the token endpoint has no effect. */
export const REFRESH_AT_FRACTION = 0.8;
/** Daemons that started together do not refresh together. */
export const REFRESH_JITTER = 0.04;
/** The current token is valid meanwhile. */
export const REFRESH_RETRY_DELAY = { minMs: MIN_TOKEN_LIFETIME_MS, maxMs: 5 * MINUTE_MS };
/** The service does not revoke a younger token: a 401 to it has another cause, to an older one it means that it expired. */
export const TRUSTED_TOKEN_AGE_MS = TEN_MINUTES_MS;

// The websocket, and each connection.
/** TCP and TLS, a greeting, the answer to a subscription, and the next part of a body: ten times what a slow link takes. */
export const ANSWER_TIMEOUT_MS = 10 * SECOND_MS;
/** After three timeouts in a row: thousands of subscriptions may be queued. */
export const SHORT_ANSWER_TIMEOUT_MS = 2 * SECOND_MS;
/** A subscription is asked for so often before it waits ten minutes or an hour. */
export const MAX_SUBSCRIBE_ATTEMPTS = 3;
/** A PING after so long a silence; three without any message end the connection. */
export const PING_INTERVAL_MS = 15 * SECOND_MS;
/** A PING may arrive during a pause and must be answered within a second. */
export const MAX_PAUSE_MS = 700;
/** Tolerates one late and one lost tick; with a check every half period, silence is noticed within three periods. */
export const MAX_SILENT_PERIODS = 2.5;
/** So many silent subscriptions are compared with REST at a time; each costs a request. */
export const MAX_QUIET_CHECKS = 8;
/** REST has until then to say whether a market is quiet. */
export const QUIET_CHECK_TIMEOUT_MS = MINUTE_MS / 2;
/** A connection lives at least as long, also with short-lived tokens: they are checked on connecting only. */
export const RECONNECT_INTERVAL_MS = TEN_MINUTES_MS;
/** The connection is replaced an hour before its token expires: there is time for some attempts. */
export const SWAP_BACKOFF = { baseMs: 2 * MINUTE_MS, maxMs: TEN_MINUTES_MS };
/** The service said "go away" on the websocket. */
export const UNWANTED_BACKOFF = { baseMs: MINUTE_MS, maxMs: HOUR_MS };

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
