import { Failure } from "../model/failure.ts";
import { CLOCK_TOLERANCE_MS } from "../model/time.ts";
import { runLoop } from "../runtime/clock.ts";
import { type SyncContext, storeClockSkew } from "../sync/context/context.ts";
import { suspendWatchdog } from "../telemetry/watchdog.ts";
import { captureFileIdentity } from "../warehouse/integrity.ts";
import { findFolderFailure, readFreeBytes, readWrittenBytes } from "../warehouse/sqlite/disk.ts";
import { runQuickCheck } from "../warehouse/sqlite/quick-check.ts";
import { readWarehouseBytes } from "../warehouse/sqlite/wal.ts";
import { estimateDaysUntilFull, readSizeSamples } from "../warehouse/tables/size-history.ts";
import type { DaemonTelemetry } from "./daemon-telemetry.ts";

interface StorageMonitorOptions {
  readonly path: string;
  readonly telemetry: Pick<DaemonTelemetry, "metrics" | "streamErrors" | "recordFailure">;
  /** The monitor records sizes only after the first backfill, whose growth does not predict the coming days. */
  readonly hasFilled: () => boolean;
}

const MONITOR_INTERVAL_MS = 60_000;
const SECONDS_PER_DAY = 86_400;
/** A WAL this large means that a long-running reader blocks its truncation. */
const WAL_WARNING_BYTES = 256 * 1024 * 1024;
/** Delays the quick check after the start, because catching up is more urgent. */
const QUICK_CHECK_DELAY_MS = 15_000;
const QUICK_CHECK_TIMEOUT_MS = 3_600_000;

/**
 * Every minute: checks that the file is in its place (saves the open one and rejects if it is not) and that its folder is
 * writable, and records its size, the stream states and the clock skew.
 */
export function monitorStorage(context: SyncContext, options: StorageMonitorOptions): Promise<void> {
  const { clock, log, signal } = context;
  const file = captureFileIdentity(options.path);
  let isClockOff = false;
  let folderFailure: Failure | undefined;
  const checkFolder = () => {
    const failure = findFolderFailure(options.path);
    if (failure && !folderFailure) options.telemetry.recordFailure("storage", failure);
    if (!failure && folderFailure) log.info({ after: folderFailure.code }, "storage recovered");
    folderFailure = failure;
  };
  return runLoop({
    clock,
    signal,
    delayMs: () => MONITOR_INTERVAL_MS,
    async runOnce() {
      checkFolder();
      isClockOff = logClock(context, isClockOff);
      if (!file.isInPlace()) {
        log.error({ path: options.path }, "warehouse file gone, copying it");
        // The writer copies the open file, which may take long.
        suspendWatchdog();
      }
      await moveLiveRows(context);
      await monitorOnce(context, options);
    },
    onError(error) {
      throw error;
    },
  });
}

/** Logs when this machine's clock begins to differ from the service's, and when it agrees again. */
function logClock({ client, log }: SyncContext, wasOff: boolean): boolean {
  const { skewMs } = client.health();
  if (skewMs === undefined) return wasOff;
  const isOff = Math.abs(skewMs) > CLOCK_TOLERANCE_MS;
  const fields = { aheadSeconds: Math.round(skewMs / 1000) };
  if (isOff && !wasOff) log.warn(fields, "clock off, service's clock is used");
  if (!isOff && wasOff) log.info(fields, "clock agrees with the service's again");
  return isOff;
}

/** In batches, so that other commits can run in between. */
async function moveLiveRows({ ingest, signal }: SyncContext): Promise<void> {
  let from = await ingest.call("moveLiveRows", {}, signal);
  while (from !== undefined) from = await ingest.call("moveLiveRows", { from }, signal);
}

async function monitorOnce(context: SyncContext, options: StorageMonitorOptions): Promise<void> {
  const { client, ingest, reader, log, signal } = context;
  const { path, telemetry, hasFilled } = options;
  const { walBytes, isTruncated, holders } = await ingest.call("checkStorage", undefined, signal);
  if (!isTruncated && walBytes > WAL_WARNING_BYTES)
    log.warn({ walBytes, readers: holders.readers }, "reader blocks WAL truncation");
  await storeClockSkew(context);
  const warehouseBytes = readWarehouseBytes(path);
  if (hasFilled()) await ingest.call("commitFileSize", warehouseBytes + walBytes, signal);
  const freeBytes = readFreeBytes(path);
  const daysUntilFull = estimateDaysUntilFull(readSizeSamples(reader), freeBytes);
  const { metrics } = telemetry;
  metrics.set("warehouse_bytes", warehouseBytes);
  metrics.set("wal_bytes", walBytes);
  metrics.set("written_bytes", readWrittenBytes());
  metrics.set("disk_free_bytes", freeBytes);
  // Undefined until sizes are recorded for an hour; Infinity without growth.
  metrics.set("disk_full_seconds", (daysUntilFull ?? Number.NaN) * SECONDS_PER_DAY);
  const { skewMs } = client.health();
  if (skewMs !== undefined) metrics.set("clock_skew_seconds", -skewMs / 1000);
  const changes = telemetry.streamErrors.takeChanges(client.health().parkedEndpoints);
  if (changes) await ingest.call("commitStreamHealth", changes, signal);
}

/**
 * Checks a large file in the background after a crash. SQLite files survive crashes, and a check before the start would
 * miss snapshots (docs/decisions/snapshots-first.md). If the file is damaged, the next start quarantines it.
 */
export async function checkInBackground(context: SyncContext, path: string): Promise<void> {
  const { ingest, clock, log, signal } = context;
  if (ingest.isChecked) return;
  log.info({}, "unclean shutdown, checking warehouse in background");
  await clock.sleep(QUICK_CHECK_DELAY_MS, signal);
  const check = { clock, deadlineMs: QUICK_CHECK_TIMEOUT_MS, signal };
  const { outcome, finding: damage } = await runQuickCheck(path, check);
  log.info({ outcome }, "warehouse checked");
  if (outcome === "unfinished") return;
  await ingest.call("recordIntegrityCheck", damage, signal);
  if (damage === undefined) return;
  throw new Failure(`${path} is damaged (${damage})`, {
    code: "db_corrupt",
    remedy: "restart: the damaged file is quarantined, never deleted, and a new one is filled",
  });
}
