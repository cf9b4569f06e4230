import type { LoadedSettings } from "../../config/load-settings.ts";
import { requireServiceSettings } from "../../config/service-settings.ts";
import { Ingest } from "../../ingest/thread/ingest-thread.ts";
import { Failure } from "../../model/failure.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Log } from "../../runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../service/client/client.ts";
import type { SyncSettings } from "../../sync/context/context.ts";
import { type Intake, serviceClock } from "../../sync/context/context.ts";
import { Patience } from "../../sync/context/retry.ts";
import { Tally } from "../../sync/context/run-stats.ts";
import { openReader } from "../../warehouse/reader.ts";
import { type Connection, SMALL_CACHE_KIB } from "../../warehouse/sqlite/connection.ts";
import { asFailure, isDamage } from "../../warehouse/sqlite/sqlite-errors.ts";
import type { CommandContext } from "./context.ts";

/** Everything that a command needs which fetches into the warehouse; closed however the command ends. */
export interface SyncSession {
  readonly intake: Intake;
  readonly reader: Connection;
  readonly random: Random;
}

/** The settings in the form that the sync room reads. */
export function syncSettings({ settings }: LoadedSettings): SyncSettings {
  const { refreshSeconds, lxIndexIds, concurrency, maxRequestsPerSecond } = settings.service;
  return { streams: settings.sync, refreshSeconds, lxIndexIds, concurrency, maxRequestsPerSecond };
}

/** Becomes the warehouse's writer and the service's client for as long as `work` takes. */
export async function withSyncSession<T>(
  loaded: LoadedSettings,
  context: Pick<CommandContext, "clock" | "stopping"> & { readonly random?: Random },
  log: Log,
  work: (session: SyncSession) => Promise<T>,
): Promise<T> {
  const { clock, stopping, random = Math.random } = context;
  const service = requireServiceSettings(loaded);
  const tally = new Tally();
  let ingest: Ingest | undefined;
  const patience = new Patience(clock, () => storageFailure(ingest, loaded.settings.warehouse.path));
  let client: ServiceClient | undefined;
  let reader: Connection | undefined;
  let endedBy: unknown;
  try {
    client = createServiceClient({
      ...service,
      clock,
      random,
      log,
      observe(observation) {
        tally.observe(observation);
        patience.observe(observation);
      },
    });
    const { path } = loaded.settings.warehouse;
    const signal = AbortSignal.any([stopping, patience.signal]);
    ingest = await Ingest.start({ path, clock: serviceClock(client, clock), log, signal });
    reader = openReader(path, SMALL_CACHE_KIB);
    return await work({ intake: { client, ingest, clock, log, tally, signal }, reader, random });
  } catch (error) {
    endedBy = isDamage(error) ? asFailure(error, loaded.settings.warehouse.path) : error;
    throw stopping.aborted && isStop(error) ? unfinished(stopping.reason) : endedBy;
  } finally {
    patience.end();
    reader?.close();
    await client?.close();
    await ingest?.close({ endedBy });
  }
}

function isStop(error: unknown): boolean {
  return error instanceof Failure && error.code === "stopped";
}

/** 0 would tell a cron job that everything selected is in place. */
function unfinished(reason: unknown): Failure {
  const why = reason instanceof Error ? reason.message : "stopped";
  return new Failure(`${why} before its work was done`, {
    family: "retry",
    code: "stopped",
    remedy: "run it again: it goes on where it was",
  });
}

/** Not the service but the disk may have kept the run from getting on. */
function storageFailure(ingest: Ingest | undefined, path: string): Failure | undefined {
  if (ingest?.state === "working") return undefined;
  const failure = (message: string, code: string, remedy: string) =>
    new Failure(message, { family: "retry", code, remedy });
  switch (ingest?.state) {
    case "disk_full":
      return failure(
        `the disk of ${path} has been full for 15 minutes`,
        "disk_full",
        "free some space and run it again: what was fetched is kept",
      );
    case "db_locked":
      return failure(
        `another program has held the write lock of ${path} for 15 minutes`,
        "db_locked",
        "end its write transaction and run it again: readers never get in the way",
      );
    default:
      return failure(
        `${path} could not be opened for 15 minutes`,
        "not_opened",
        "free some space on its disk, or end the program that holds its write lock, and run it again",
      );
  }
}
