/**
 * Every number that steers requests and connections, with its reason; what is not here follows from one of these. The three times that
 * a person would choose stand beside the units: a minute for a request, ten for what lasts, an hour for what a person must change.
 */
export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const TEN_MINUTES_MS = 10 * MINUTE_MS;
export const HOUR_MS = 60 * MINUTE_MS;

// Attempt: one request, sent until it is answered.
/** Below this rate a response counts as stalled. */
export const MIN_BYTES_PER_SECOND = 16 * 1024;
/** While three requests of four fail, one page in a hundred needs more; its range is then fetched again. */
export const MAX_ATTEMPTS = 16;
/** So often in a row is no accident: of the host, of paths that are missing, of a subscription, of a page behind a gateway or with a cut body. */
export const REPEATED = 3;
/** The answer is small, but a late one still counts: a token, or whether a market is quiet. */
export const SMALL_ANSWER_TIMEOUT_MS = MINUTE_MS / 2;
/** A poll that waits longer is late, because history occupies every slot; so is a third subscription that is not answered. */
export const LATE_MS = 2 * SECOND_MS;
/** How often one request is sent again after a failure that soon repeats itself; all requests share the failures of tokens. */
export const MAX_RETRIES = { "401": 1, connection_lost: 1, conflict: 3, "no token": 5 } as const;
/** Isolated failures: the next attempt probably succeeds. */
export const FAST_BACKOFF = { baseMs: 10, maxMs: 160 };
/** Nearly everything fails; also the pause before the websocket connects again. */
export const SLOW_BACKOFF = { baseMs: SECOND_MS, maxMs: MINUTE_MS };
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
/** The speed is back at the ceiling after this time, and at twice of it after as long again. */
export const GROWTH_MS = 4_000;
/** Each further 429 in a row doubles the silence after it, up to this. */
export const MAX_HOLD_MS = 5_000;
/** The silence after the second 429 in a row, at least. */
export const HOLD_MS = 200;
/** A late timer may catch up this much, so that coarse timers do not lower the rate. */
export const MAX_CATCH_UP_MS = 20;
/** How long after the last poll one slot stays reserved for the next. */
export const RESERVATION_MS = 2 * MINUTE_MS;
/** At least every fourth start is one of each kind that waits: no limit starves heads or history. */
export const MAX_STARTS_BETWEEN = 3;

// Outage: what fails, and when it is asked again.
/** So rare is a run of failures that opens a breaker, given the share of requests that fail anyway. */
export const MAX_CHANCE = 1e-5;
/** Before any answer, three of four may fail; so many requests show the real share. */
export const INITIAL_FAILED_SHARE = 0.75;
/** A stream without history is synced: back three seconds after the service, with less than 1,300 probes in an hour. */
export const URGENT_PROBES = { baseMs: 2_900, maxMs: 2_900, jitter: 0.03 };
/** A probe that hangs must not hold up the next: it ends just before. */
export const MAX_PROBE_MS = URGENT_PROBES.baseMs - SECOND_MS / 10;
/** What has a history can wait: fewer than 200 requests in an hour of outage, and fewer than 100 to one endpoint that fails. */
export const PROBE_BACKOFF = { baseMs: 2_000, maxMs: 40_000, jitter: 0.5 };
/** The client never waits longer than this, whatever the service requests; nor does a run in which nothing is answered. */
export const MAX_SILENCE_MS = 15 * MINUTE_MS;

// Tasks: a round of histories, a list, a snapshot.
/** So many failures of one task while other requests succeed are enough. */
export const MAX_TASK_TRIES = 4;
/** Each try has had its requests repeated already. */
export const TASK_BACKOFF = { baseMs: 5 * SECOND_MS, maxMs: MINUTE_MS };

// The size of pages, and their number.
/** Pages in a row that are empty or show no older row, each with a cursor. */
export const MAX_FRUITLESS_PAGES = 5;
/** More than any list needs: 30,000 records at ten a page. */
export const MAX_LIST_PAGES = 3_000;
/** The documented default; a service that refuses it refuses something else. */
export const MIN_PAGE_SIZE = 10;
/** After so many good pages a page of twice the size is tried; after each try that fails, after twice as many. */
export const GOOD_PAGES = { first: 4, max: 1024 };

// Tokens.
/** Shorter lifetimes count as this: `expires_in: 0` must not cause a token request per request. */
export const MIN_TOKEN_LIFETIME_MS = MINUTE_MS / 2;
/** No token is used longer than this after it was first seen, whatever the response says. */
export const MAX_TOKEN_LIFETIME_MS = 24 * HOUR_MS;
/** Leaves about 4.5 hours of a one-day token: a shorter outage of the token endpoint has no effect. */
export const REFRESH_AT_FRACTION = 0.8;

// The websocket, and each connection.
/** TCP and TLS, a greeting, the answer to a subscription, and the next part of a body: ten times what a slow link takes. */
export const ANSWER_TIMEOUT_MS = 10 * SECOND_MS;
/** A PING after so long a silence; three without any message end the connection. */
export const PING_INTERVAL_MS = 15 * SECOND_MS;
/** A PING may arrive during a pause and must be answered within a second. */
export const MAX_PAUSE_MS = 700;
/** Tolerates one late and one lost tick; with a check every half period, silence is noticed within three periods. */
export const MAX_SILENT_PERIODS = 2.5;
/** So many silent subscriptions are compared with REST at a time; each costs a request. */
export const MAX_QUIET_CHECKS = 8;
/** The service said "go away" on the websocket. */
export const UNWANTED_BACKOFF = { baseMs: MINUTE_MS, maxMs: HOUR_MS };

// Parking: what is not requested for a while.
/** So many records of one path, or `REPEATED` paths, answer 404 and none succeeds: the service is at fault, not the records. */
export const MAX_MISSING_RECORDS = 100;

/** At least a minute, growing to at least half an hour. */
const REJECTED = { baseMs: 75 * SECOND_MS, maxMs: 37.5 * MINUTE_MS, jitter: 0.2 };
const every = (ms: number) => ({ baseMs: ms, maxMs: ms, jitter: 0 });

/** `retry`: when it is tried again. `newTokenMs`: a retry takes a new token, which may have new scopes, once in this time. */
const row = (parks: string, retry: typeof REJECTED, ends: string, newTokenMs = 0) => ({
  ...{ parks, retry, ends, newTokenMs },
});

const ANSWER = "its next answer";

/** What is parked at which sign, and what ends it. A history can be fetched later; what else is missed is lost. */
export const parkings = {
  "401": row("an endpoint that rejects a token which others accept", REJECTED, ANSWER),
  "401 of all": row("every request", REJECTED, "an answer to a new token"),
  "refused credentials": row("token requests", { ...every(6 * MINUTE_MS), jitter: 1 / 6 }, "another secret"),
  "403": row("a history of one type", every(TEN_MINUTES_MS), ANSWER, TEN_MINUTES_MS),
  "403 of an index": row("one index: hundreds may be denied", every(HOUR_MS), ANSWER, HOUR_MS),
  "403 of a snapshot": row("a snapshot stream", every(MINUTE_MS), ANSWER, TEN_MINUTES_MS),
  "no list": row("all requests of one kind", every(MINUTE_MS), "a list of that kind"),
  "refused subscription": row("one subscription", every(HOUR_MS), "its confirmation"),
  "unanswered subscription": row("one subscription", every(TEN_MINUTES_MS), "its confirmation"),
};
export type ParkingSign = keyof typeof parkings;
