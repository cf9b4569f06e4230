import { withSyncSession } from "../../../src/cli/support/session.ts";
import type { LoadedSettings } from "../../../src/config/load-settings.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import { type Log, silentLog } from "../../../src/runtime/log.ts";
import { type BackfillFilter, type BackfillReport, backfill } from "../../../src/sync/history/backfill.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { startIngestInProcess } from "../ingest/in-process-ingest.ts";
import type { ManualClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";
import { seededRandom } from "../seeded-random.ts";

/** Where a program finds its service. */
export type ServiceAddress = Pick<Simulator, "baseUrl" | "wsUrl" | "clientId" | "clientSecret">;

/** The environment of a program that syncs from a service. */
export const serviceEnv = ({ baseUrl, wsUrl, clientId, clientSecret }: ServiceAddress) => ({
  MDS_BASE_URL: baseUrl,
  MDS_WS_URL: wsUrl,
  MDS_CLIENT_ID: clientId,
  MDS_CLIENT_SECRET: clientSecret,
});

interface SessionOptions {
  readonly clock: ManualClock;
  /** The clock of the machine, if it is not right. */
  readonly machine?: Clock;
  readonly log?: Log;
  readonly stopping?: AbortSignal;
  readonly mayAdopt?: boolean;
}

/** Runs `work` on a manual clock, with the ingest in this thread. */
export function inSession<T>(
  loaded: LoadedSettings,
  { clock, machine = clock, log = silentLog, ...options }: SessionOptions,
  work: Parameters<typeof withSyncSession<T>>[3],
): Promise<T> {
  const { signal: stopping } = new AbortController();
  const context = { stopping, random: seededRandom(seed), startWorker: startIngestInProcess, ...options };
  return clock.runUntil(withSyncSession(loaded, { clock: machine, ...context }, log, work));
}

export function runBackfill(
  loaded: LoadedSettings,
  options: SessionOptions,
  filter: BackfillFilter = {},
): Promise<BackfillReport> {
  return inSession(loaded, options, (syncContext) => backfill(syncContext, filter));
}
