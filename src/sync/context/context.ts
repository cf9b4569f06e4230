import type { IngestThread } from "../../ingest/thread/ingest-thread.ts";
import {
  exitCode,
  Failure,
  type FailureCode,
  failureCode,
  policyOf,
  type SyncReaction,
} from "../../model/failure.ts";
import type { Selector } from "../../model/selector.ts";
import type { IndexType } from "../../model/stream-columns.ts";
import type { DerivativeType, Stream } from "../../model/streams.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { ConfirmationRules } from "../../rule/confirm.ts";
import { backoffDelay, type Clock, type Random } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import type { ServiceClient } from "../../service/client/client.ts";
import type { ClientEvent } from "../../service/http/client-events.ts";
import { requestPriority } from "../../service/http/request.ts";
import { MAX_SILENCE_MS, MAX_TASK_TRIES, MINUTE_MS, TASK_BACKOFF } from "../../service/limits.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { readClockSkew } from "../../warehouse/tables/warehouse-state.ts";
import type { RunStats } from "./run-stats.ts";

/** Everything that sync code needs to fetch from the service and write to the warehouse. */
export interface SyncContext {
  readonly client: ServiceClient;
  readonly ingest: IngestThread;
  readonly reader: Connection;
  readonly settings: SyncSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly stats: RunStats;
  readonly signal: AbortSignal;
}

/**
 * Sends one small request if the service's time is not known yet; every response carries it. Targets computed with a
 * wrong local clock would cover the future or mark the present as lost.
 */
export async function ensureServiceTime(context: SyncContext): Promise<void> {
  const { client, signal, stats } = context;
  if (client.server.now() !== undefined) return;
  const request = { endpoint: "/asset", query: { symbol: "BTC" }, priority: requestPriority.head, signal };
  try {
    await retryUntilDone(context, () => client.request(request, async () => {}));
  } catch (error) {
    if (classifyError(error, stats.successCount) === "stop" || client.server.now() === undefined) throw error;
  }
}

/** The service's time; the local time before the first response. */
export function serviceNow({ client, clock }: Pick<SyncContext, "client" | "clock">): Micros {
  return Math.floor((client.server.now() ?? clock.now()) * MICROS_PER_MS);
}

/** Formats a request without secrets, for the source column of `rejects`. */
export function describeRequest(endpoint: string, filters: Readonly<Record<string, unknown>> = {}): string {
  const pairs = Object.entries(filters).map(([name, value]) => `${name}=${String(value)}`);
  return `GET ${endpoint}${pairs.length > 0 ? `?${pairs.join("&")}` : ""}`;
}

export type IndexSelectors = Readonly<Record<IndexType, Selector>>;

/** Settings of each stream; `false` switches it off. Durations are in seconds. */
export interface SyncStreamSettings {
  readonly lookups: { readonly every: number } | false;
  readonly ohlcv: IndexSelectors | false;
  readonly intraday: (IndexSelectors & { readonly days: number }) | false;
  readonly exchangeTickers: { readonly exchanges: Selector; readonly markets: Selector } | false;
  readonly marketCap: { readonly every: number } | false;
  readonly derivatives:
    | { readonly exchanges: Selector; readonly types: readonly DerivativeType[]; readonly every: number }
    | false;
}

export interface SyncSettings {
  readonly streams: SyncStreamSettings;
  /** The service's intraday cadence. */
  readonly refreshSeconds: number;
  /** Ids of liquid indices, by the names that the operator gave them. */
  readonly lxIndexIds: Readonly<Record<string, string>>;
  readonly concurrency: number;
  /** A series without new records is covered up to this many seconds before now. */
  readonly quietMargin: number;
  /** How often REST confirms what the live feed has covered, in seconds. */
  readonly confirmEvery: number;
  /** Rate limit over all requests; 0: none. */
  readonly maxRequestsPerSecond: number;
  /** When to accept a claim of the service that contradicts stored rows. */
  readonly withdrawals: ConfirmationRules;
}

/** The service's time is known to about a second, so a smaller change of the skew is noise. */
const MIN_SKEW_CHANGE_MICROS = 2 * MICROS_PER_SECOND;

/**
 * Stores the skew between the local clock and the service's. Views add the stored skew to SQLite's clock, so after a clock
 * step they are wrong until this function stores the new one.
 */
export async function storeClockSkew({ client, ingest, reader, signal }: SyncContext): Promise<void> {
  const { skewMs } = client.health();
  if (skewMs === undefined) return;
  const skew = -skewMs * MICROS_PER_MS;
  if (Math.abs(skew - readClockSkew(reader)) > MIN_SKEW_CHANGE_MICROS)
    await ingest.call("commitClockSkew", skew, signal);
}

function reactionTo(error: unknown): SyncReaction {
  return error instanceof Failure ? policyOf(error.code).sync : "stop";
}

/**
 * The reaction without the variants that only a few callers need. `successCount`: successful responses so far. If credentials worked
 * before in this run, their failure is retried.
 */
export function classifyError(error: unknown, successCount: number) {
  if (error instanceof Failure && error.exit === exitCode.credentials)
    return error.code === "auth_failed" && successCount > 0 ? "retry" : "stop";
  const reaction = reactionTo(error);
  switch (reaction) {
    case "end_process":
      return "stop";
    case "retry_limited":
      return "retry";
    case "give_up_endpoint":
      return "give_up";
    default:
      return reaction;
  }
}

/** The service answered with something unusable, so waiting longer does not help. */
export function isInvalidResponse(error: unknown): boolean {
  return reactionTo(error) === "retry_limited";
}

/** Every other request to the same endpoint would fail in the same way. */
export function affectsWholeEndpoint(error: unknown): boolean {
  const reaction = reactionTo(error);
  return reaction === "forbidden" || reaction === "give_up_endpoint";
}

/** Only a new process or an operator can give the warehouse a writer again. */
export function isWriterLost(error: unknown): boolean {
  return reactionTo(error) === "end_process";
}

/** A failure code, or the code of a problem for which no error was thrown. */
type ProblemCode =
  | FailureCode
  | "unexpected"
  | "unanswered"
  | "shrunken_list"
  | "selector_unknown"
  | "selector_unresolved";

/** Something that the settings select and that could not be synced. Shown in reports and `status`. */
export interface Problem {
  readonly stream: Stream;
  /** Which part of the stream; undefined: the whole stream. */
  readonly what?: string;
  readonly code: ProblemCode;
  readonly message: string;
}

/** Whether both say the same about the same part of a stream. */
export function isSameProblem(a: Problem, b: Problem): boolean {
  return a.stream === b.stream && a.what === b.what && a.code === b.code;
}

/** The message of a problem, with the series or other part that it concerns. */
export function problemText({ what, message }: Problem): string {
  return what === undefined || message.startsWith(what) ? message : `${what}: ${message}`;
}

export function toProblem(stream: Stream, what: string | undefined, error: unknown): Problem {
  return {
    stream,
    ...(what === undefined ? {} : { what }),
    code: failureCode(error),
    message:
      error instanceof Failure ? error.summary : error instanceof Error ? error.message : String(error),
  };
}

/** The delay before a retry: never zero, growing, jittered. */
export function retryDelayMs(attempt: number, random: Random): number {
  return TASK_BACKOFF.baseMs / 2 + backoffDelay(attempt, TASK_BACKOFF, random);
}

/**
 * Retries `work` until it succeeds. Gives up after MAX_TASK_TRIES failures during which the service was answering: while the number
 * of successful responses does not grow, no try counts. `onRetry`: called after each failed try but the last.
 */
export async function retryUntilDone<T>(
  { clock, random, signal, stats }: Pick<SyncContext, "clock" | "random" | "signal" | "stats">,
  work: () => Promise<T>,
  onRetry?: (error: unknown) => void,
): Promise<T> {
  const start = { successes: stats.successCount, at: clock.monotonic() };
  /** Whether other requests succeeded meanwhile. */
  const othersSucceeded = (since: number) =>
    stats.successCount > since ||
    (stats.successCount > start.successes && clock.monotonic() - start.at > 2 * MINUTE_MS);
  let tries = 0;
  for (let attempt = 0; ; attempt++) {
    const successesBefore = stats.successCount;
    try {
      return await work();
    } catch (error) {
      if (classifyError(error, stats.successCount) !== "retry") throw error;
      if (isInvalidResponse(error) || othersSucceeded(successesBefore)) tries++;
      if (tries >= MAX_TASK_TRIES) throw error;
      onRetry?.(error);
      await clock.sleep(retryDelayMs(attempt, random), signal);
    }
  }
}

/**
 * Ends a run when no request has succeeded for a quarter of an hour. `findCause`: returns the cause if it is not the service, for
 * example a full disk. `findLastFailure`: of the requests.
 */
export function createSilenceTimeout(
  clock: Clock,
  findCause: () => Failure | undefined = () => undefined,
  findLastFailure: () => Failure | undefined = () => undefined,
) {
  const timeout = new AbortController();
  let lastSuccessAt = clock.monotonic();
  let cancel = () => {};
  const startTimer = () => {
    const silentMs = clock.monotonic() - lastSuccessAt;
    if (silentMs >= MAX_SILENCE_MS) timeout.abort(findCause() ?? silenceFailure(findLastFailure()));
    // Whole milliseconds: a rest of a rounding error would never pass.
    else cancel = clock.after(Math.ceil(MAX_SILENCE_MS - silentMs), startTimer);
  };
  startTimer();
  return {
    signal: timeout.signal,
    onEvent(event: ClientEvent): void {
      const isData = event.kind === "request" && event.endpoint !== "/oauth/token";
      // What cannot be stored is no success: a scan thread reads pages while the ingest thread is blocked.
      if (isData && event.status === 200 && !findCause()) lastSuccessAt = clock.monotonic();
    },
    cancel: () => cancel(),
  };
}

function silenceFailure(lastFailure: Failure | undefined): Failure {
  const why = lastFailure ? `; last failure: ${lastFailure.message}` : "";
  const remedy = lastFailure?.remedy ?? "check the network and service.baseUrl";
  return new Failure(`the service has not answered for ${MAX_SILENCE_MS / 60_000} minutes${why}`, {
    code: "gave_up",
    remedy: `${remedy}; then run again: what was fetched stays stored`,
  });
}

/** Runs `work` for each item, `concurrency` at a time. After an error it starts no more items, and throws at the end. */
export async function runConcurrently<T>(
  items: readonly T[],
  concurrency: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const remaining = items.values();
  const errors: unknown[] = [];
  const run = async () => {
    for (const item of remaining) {
      if (errors.length > 0) return;
      await work(item).catch((error: unknown) => errors.push(error));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, run));
  if (errors.length > 0) throw errors[0];
}
