import { Failure } from "../model/failure.ts";
import { loop } from "../runtime/loop.ts";
import type { Intake } from "../sync/context/context.ts";
import { keepClockSkew } from "../sync/context/context.ts";
import type { StreamNotes } from "../sync/context/problem-log.ts";
import { daysUntilFull, sizeSamples } from "../warehouse/read/size-history.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { freeBytes } from "../warehouse/sqlite/disk.ts";
import { quickCheck } from "../warehouse/sqlite/quick-check.ts";
import { warehouseBytes } from "../warehouse/sqlite/wal.ts";

/** What a round has measured. */
export interface StorageRound {
  readonly warehouseBytes: number;
  readonly walBytes: number;
  readonly freeBytes: number;
  /** Undefined until an hour of sizes is known; Infinity without growth. */
  readonly daysUntilFull: number | undefined;
}

export interface StorageRounds {
  readonly path: string;
  readonly reader: Connection;
  readonly notes: StreamNotes;
  /** A first backfill says nothing about the days to come: sizes are noted once it is over. */
  readonly isFilled: () => boolean;
  readonly measured: (round: StorageRound) => void;
}

const EVERY_MS = 60_000;
/** A WAL of this size has a reader in its way that is worth naming. */
const LONG_WAL_BYTES = 256 * 1024 * 1024;
/** The check has time; what there is to catch up with at a start has not. */
const CHECK_AFTER_MS = 15_000;
const CHECK_PATIENCE_MS = 3_600_000;

/** Each minute: is the file still ours, how large has it become, how do the streams fare, how is the clock set. Rejects when the file is not. */
export function lookAfterStorage(intake: Intake, rounds: StorageRounds): Promise<void> {
  const { clock, signal } = intake;
  return loop({
    clock,
    signal,
    everyMs: () => EVERY_MS,
    work: () => round(intake, rounds),
    failed(error) {
      throw error;
    },
  });
}

async function round(intake: Intake, rounds: StorageRounds): Promise<void> {
  const { client, ingest, log, signal } = intake;
  const { path, reader, notes, isFilled, measured } = rounds;
  const { walBytes, isTruncated, holders } = await ingest.call("checkStorage", undefined, [], signal);
  if (!isTruncated && walBytes > LONG_WAL_BYTES)
    log.warn({ walBytes, readers: holders.readers }, "a reader keeps the WAL from shrinking");
  await keepClockSkew(intake, reader);
  const bytes = warehouseBytes(path);
  if (isFilled()) await ingest.call("commitSize", bytes + walBytes, [], signal);
  const free = freeBytes(path);
  const full = daysUntilFull(sizeSamples(reader), free);
  measured({ warehouseBytes: bytes, walBytes, freeBytes: free, daysUntilFull: full });
  const changed = notes.take(client.health().parked);
  if (changed) await ingest.call("commitStreamNotes", changed, [], signal);
}

/**
 * After a crash a large file is checked beside the work: SQLite's promise is that a crash leaves it sound, and a restart
 * must not cost minutes of ticks that nobody can fetch later. If it is damaged all the same, the next start sets it aside.
 */
export async function checkBesideTheWork(intake: Intake, path: string): Promise<void> {
  const { ingest, clock, log, signal } = intake;
  if (ingest.isChecked) return;
  log.info({}, "the warehouse was not closed in order: it is checked beside the work");
  await clock.sleep(CHECK_AFTER_MS, signal);
  const checked = await quickCheck(path, { clock, deadlineMs: CHECK_PATIENCE_MS, signal });
  log.info({ verdict: checked.verdict }, "the warehouse was checked");
  if (checked.verdict === "unfinished") return;
  const damage = checked.verdict === "damaged" ? checked.finding : undefined;
  await ingest.call("noteCheck", damage, [], signal);
  if (damage === undefined) return;
  throw new Failure(`${path} is damaged (${damage})`, {
    family: "operator",
    code: "db_corrupt",
    remedy: "start again: the file is set aside, never deleted, and a new one is filled",
  });
}
