import type { IngestThread, PageReader } from "../../ingest/thread/ingest-thread.ts";
import type { Selector } from "../../model/selector.ts";
import type { DerivativeType } from "../../model/streams.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { ConfirmationRules } from "../../rule/confirm.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import type { Random } from "../../runtime/loop.ts";
import type { ServiceClient } from "../../service/client/client.ts";
import { requestPriority } from "../../service/http/request.ts";
import { type ListWalkOptions, walkListPages } from "../../service/pagination/list-walk.ts";
import { readClockSkew } from "../../warehouse/coverage/targets.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { classifyError } from "./error-policy.ts";
import { retryUntilDone } from "./retry.ts";
import type { RunStats } from "./run-stats.ts";

/** Everything that sync code needs to fetch from the service and write to the warehouse. */
export interface SyncContext {
  readonly client: ServiceClient;
  readonly ingest: IngestThread;
  readonly clock: Clock;
  readonly log: Log;
  readonly stats: RunStats;
  /** When to accept a claim of the service that contradicts stored rows. */
  readonly withdrawals: ConfirmationRules;
  readonly signal: AbortSignal;
}

/**
 * Sends one small request if the service's time is not known yet; every response carries it. Targets computed with a
 * wrong local clock would cover the future or mark the present as lost.
 */
export async function ensureServiceTime(context: SyncContext, random: Random): Promise<void> {
  const { client, signal, stats } = context;
  if (client.serverNow() !== undefined) return;
  const request = { endpoint: "/asset", query: { symbol: "BTC" }, priority: requestPriority.head, signal };
  try {
    await retryUntilDone(context, random, () => client.request(request, async () => {}));
  } catch (error) {
    if (classifyError(error, stats.successCount) === "stop" || client.serverNow() === undefined) throw error;
  }
}

/** The service's time; the local time before the first response. */
export function serviceNow({ client, clock }: Pick<SyncContext, "client" | "clock">): Micros {
  return Math.floor((client.serverNow() ?? clock.now()) * MICROS_PER_MS);
}

/** Fetches the pages of a list. */
export function fetchListPages({ client, signal }: SyncContext, list: ListWalkOptions, pages: PageReader) {
  return walkListPages(client, { ...list, signal }, pages.read);
}

/** Formats a request without secrets, for the source column of `rejects`. */
export function describeRequest(endpoint: string, filters: Readonly<Record<string, unknown>> = {}): string {
  const pairs = Object.entries(filters).map(([name, value]) => `${name}=${String(value)}`);
  return `GET ${endpoint}${pairs.length > 0 ? `?${pairs.join("&")}` : ""}`;
}

export interface IndexSelectors {
  readonly GWA: Selector;
  readonly MWA: Selector;
  readonly LX: Selector;
}

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
  readonly withdrawals: ConfirmationRules;
}

/** The service's time is known to about a second, so a smaller change of the skew is noise. */
const MIN_SKEW_CHANGE_MICROS = 2 * MICROS_PER_SECOND;

/**
 * Stores the skew between the local clock and the service's. Views add the stored skew to SQLite's clock, so after a clock
 * step they are wrong until this function stores the new one.
 */
export async function storeClockSkew(
  { client, ingest, signal }: Pick<SyncContext, "client" | "ingest" | "signal">,
  reader: Connection,
): Promise<void> {
  const { skewMs } = client.health();
  if (skewMs === undefined) return;
  const skew = -skewMs * MICROS_PER_MS;
  if (Math.abs(skew - readClockSkew(reader)) > MIN_SKEW_CHANGE_MICROS)
    await ingest.call("commitClockSkew", skew, signal);
}
