import { statSync } from "node:fs";
import { Failure, failureCode } from "../../model/failure.ts";
import type { LastCrash } from "../../model/status/warehouse-status.ts";
import { formatTimestamp, MICROS_PER_MS, type Micros } from "../../model/time.ts";
import { readJsonFile, replaceFile } from "./disk.ts";
import type { KilledWriter } from "./writer-lock.ts";

const MAX_LINE_LENGTH = 500;
const RECENT_CRASH_MS = 7 * 86_400_000;

/** A file beside the warehouse: it must be writable when the database is not. */
const markerOf = (path: string) => `${path}.crash`;

/** Call only while holding the writer lock. Ignores write errors, so that a bad disk cannot block the shutdown. */
export function recordCrash(path: string, error: unknown, now: Micros): void {
  const text = error instanceof Failure ? error.summary : String(error);
  const crash: LastCrash = {
    at: formatTimestamp(now),
    code: failureCode(error),
    line: text.replaceAll(/\s+/g, " ").slice(0, MAX_LINE_LENGTH),
  };
  try {
    replaceFile(markerOf(path), JSON.stringify(crash));
  } catch {}
}

/**
 * Records the crash of a previous writer that was killed before it could do so itself (SIGKILL, out of memory, power
 * loss). The newest modification time of its files approximates when it ended.
 */
export function recordKilledWriter(path: string, { holder, sinceMs }: KilledWriter): void {
  const changedAt = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  // Not the time of the file: after a kill the next writer makes its lock first, and the marker of that kill then.
  if (Date.parse(readLastCrash(path)?.at ?? "") >= sinceMs) return;
  const endedAt = Math.max(sinceMs, changedAt(path), changedAt(`${path}-wal`));
  const failure = new Failure(`the writer (${holder}) was killed`, {
    code: "killed",
    remedy: "check the system log: the process may have run out of memory, or the machine may have gone down",
  });
  recordCrash(path, failure, Math.floor(endedAt) * MICROS_PER_MS);
}

export function readLastCrash(path: string): LastCrash | undefined {
  return readJsonFile(markerOf(path));
}

/** Human-readable output shows only recent crashes; JSON output shows older ones too. */
export function isRecentCrash({ at }: LastCrash, nowMs: number): boolean {
  return nowMs - Date.parse(at) < RECENT_CRASH_MS;
}
