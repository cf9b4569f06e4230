import type { PageQuestion } from "../../ingest/decode/pending-pages.ts";
import type { Ingest } from "../../ingest/thread/ingest-thread.ts";
import type { Selector } from "../../model/selector.ts";
import type { DerivativeType } from "../../model/streams.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import type { ServiceClient } from "../../service/client/client.ts";
import { priority } from "../../service/http/request.ts";
import { followList, type List } from "../../service/pagination/list-walk.ts";
import { clockSkew } from "../../warehouse/coverage/targets.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { judge } from "./error-policy.ts";
import { persistently } from "./retry.ts";
import type { Tally } from "./run-stats.ts";

/** The way from the service into the warehouse, for as long as the signal stands. */
export interface Intake {
  readonly client: ServiceClient;
  readonly ingest: Ingest;
  readonly clock: Clock;
  readonly log: Log;
  readonly tally: Tally;
  readonly signal: AbortSignal;
}

/**
 * One small question, so that the service's time is known, where nobody has asked it anything yet: this machine's clock
 * may be set to anything, and what is counted by it would claim the future or write off the present. Whatever the
 * service answers, it dates its answer.
 */
export async function learnServiceTime(intake: Intake, random: Random): Promise<void> {
  const { client, clock, signal, tally } = intake;
  if (client.serverNow() !== undefined) return;
  const waiting = { clock, random, signal, answers: () => tally.answers };
  const ask = { endpoint: "/asset", query: { symbol: "BTC" }, priority: priority.head, signal };
  try {
    await persistently(waiting, () => client.request(ask, async () => {}));
  } catch (error) {
    if (judge(error, tally.answers) === "stop" || client.serverNow() === undefined) throw error;
  }
}

/** The present by the service's clock; by ours only before its first answer. */
export function serviceNow({ client, clock }: Pick<Intake, "client" | "clock">): Micros {
  return Math.floor((client.serverNow() ?? clock.now()) * MICROS_PER_MS);
}

/**
 * This machine's clock with the service's wall time, for the ingest thread: what is too young or too far ahead to be
 * believed must not depend on how this machine's clock is set.
 */
export function serviceClock(client: Pick<ServiceClient, "serverNow">, clock: Clock): Clock {
  return {
    now: () => client.serverNow() ?? clock.now(),
    monotonic: () => clock.monotonic(),
    boottime: () => clock.boottime(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    after: (ms, callback) => clock.after(ms, callback),
    hold: () => clock.hold(),
    waive: () => clock.waive(),
  };
}

/** The pages of a list, each read in the ingest thread and held there. */
export function heldPages(intake: Intake, list: List, question: PageQuestion) {
  const { client, ingest, signal } = intake;
  return followList(client, { ...list, signal }, (body) => ingest.call("readPage", question, [body], signal));
}

/** A request for people, without secrets: what `rejects` names as its source. */
export function requestText(endpoint: string, filters: Readonly<Record<string, unknown>> = {}): string {
  const pairs = Object.entries(filters).map(([name, value]) => `${name}=${String(value)}`);
  return `GET ${endpoint}${pairs.length > 0 ? `?${pairs.join("&")}` : ""}`;
}

export interface IndexSelectors {
  readonly GWA: Selector;
  readonly MWA: Selector;
  readonly LX: Selector;
}

/** What is to be synced; `false`: not that stream. Durations are in seconds. */
export interface SyncedStreams {
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
  readonly streams: SyncedStreams;
  /** The service's intraday cadence. */
  readonly refreshSeconds: number;
  /** Name → id, as far as the operator gave them. */
  readonly lxIndexIds: Readonly<Record<string, string>>;
  readonly concurrency: number;
  /** The ceiling on all requests; 0: none. */
  readonly maxRequestsPerSecond: number;
}

/** The service's clock is known to about a second: less than this is no news. */
const NEWS = 2 * MICROS_PER_SECOND;

/**
 * Keeps in the warehouse how this machine's clock differs from the service's. Views add it to SQLite's own clock, so a
 * clock that was stepped makes them wrong until it is noted.
 */
export async function keepClockSkew(
  { client, ingest, signal }: Pick<Intake, "client" | "ingest" | "signal">,
  reader: Connection,
): Promise<void> {
  const { skewMs } = client.health();
  if (skewMs === undefined) return;
  const skew = -skewMs * MICROS_PER_MS;
  if (Math.abs(skew - clockSkew(reader)) > NEWS) await ingest.call("commitClockSkew", skew, [], signal);
}
