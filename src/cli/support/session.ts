import type { LoadedSettings } from "../../config/load-settings.ts";
import { requireServiceSettings } from "../../config/service-settings.ts";
import { IngestThread } from "../../ingest/thread/ingest-thread.ts";
import { Failure, failureCode } from "../../model/failure.ts";
import type { Random } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../service/client/client.ts";
import { MAX_SILENCE_MS } from "../../service/limits.ts";
import { createSilenceTimeout, type SyncContext, type SyncSettings } from "../../sync/context/context.ts";
import { RunStats } from "../../sync/context/run-stats.ts";
import { confirmService } from "../../sync/fetch/lookups.ts";
import { openReader } from "../../warehouse/reader.ts";
import { type Connection, SMALL_CACHE_KIB } from "../../warehouse/sqlite/connection.ts";
import { isCorruption, toFailure } from "../../warehouse/sqlite/sqlite-errors.ts";
import { type CommandContext, unfinishedFailure } from "./context.ts";
import { toConfirmationRules } from "./flags.ts";

/** Picks the settings that the folder `sync` needs. */
export function toSyncSettings({ settings }: LoadedSettings): SyncSettings {
  const { refreshSeconds, lxIndexIds, concurrency, maxRequestsPerSecond } = settings.service;
  const { quietMargin, confirmEvery, withdrawals: _, ...streams } = settings.sync;
  return {
    streams,
    quietMargin,
    confirmEvery,
    withdrawals: toConfirmationRules(settings),
    refreshSeconds,
    lxIndexIds,
    concurrency,
    maxRequestsPerSecond,
  };
}

/** Opens the warehouse for writing and a service client, runs `work`, and closes both. */
export async function withSyncSession<T>(
  loaded: LoadedSettings,
  context: Pick<CommandContext, "clock" | "stopping" | "startWorker"> & {
    readonly random?: Random;
    /** Whether the operator lets the warehouse change to another service. */
    readonly mayAdopt?: boolean | undefined;
  },
  log: Log,
  work: (context: SyncContext) => Promise<T>,
): Promise<T> {
  const { clock, stopping, random = Math.random, mayAdopt = false, startWorker } = context;
  const service = requireServiceSettings(loaded);
  const stats = new RunStats();
  let ingest: IngestThread | undefined;
  let client: ServiceClient | undefined;
  let reader: Connection | undefined;
  const silenceTimeout = createSilenceTimeout(
    clock,
    () => storageFailure(ingest, reader !== undefined, loaded.settings.warehouse.path),
    () => client?.health().lastFailure,
  );
  let endedBy: unknown;
  try {
    client = createServiceClient({
      ...service,
      clock,
      random,
      log,
      onEvent(event) {
        stats.onEvent(event);
        silenceTimeout.onEvent(event);
      },
    });
    const { path } = loaded.settings.warehouse;
    const signal = AbortSignal.any([stopping, silenceTimeout.signal]);
    const { serverNow: serviceNow, secrets } = client;
    ingest = new IngestThread({ path, clock, serviceNow, log, secrets, signal, startWorker });
    await ingest.start();
    reader = openReader(path, SMALL_CACHE_KIB);
    const settings = toSyncSettings(loaded);
    const syncContext = { client, ingest, reader, settings, clock, random, log, stats, signal };
    await confirmService(syncContext, { mayAdopt, checksKnownAddress: settings.streams.lookups === false });
    return await work(syncContext);
  } catch (error) {
    endedBy = isCorruption(error) ? toFailure(error, loaded.settings.warehouse.path) : error;
    const isStopped = stopping.aborted && failureCode(error) === "stopped";
    throw isStopped ? unfinishedFailure(stopping.reason, "stopped") : endedBy;
  } finally {
    silenceTimeout.cancel();
    reader?.close();
    await client?.close();
    await ingest?.close({ endedBy });
  }
}

/** Why the warehouse did not let the run make progress, if it is the cause. `isOpen`: opening is done. */
function storageFailure(
  ingest: IngestThread | undefined,
  isOpen: boolean,
  path: string,
): Failure | undefined {
  if (isOpen || ingest?.blockingFailure) return ingest?.blockingFailure;
  return new Failure(`${path} could not be opened for ${MAX_SILENCE_MS / 60_000} minutes`, {
    code: "not_opened",
    remedy: "free some space on its disk, or end the program that holds its write lock, and run it again",
  });
}
