import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { Failure } from "../../model/failure.ts";
import { formatInstant, MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { KilledWriter } from "./writer-lock.ts";

/** Why a daemon on this warehouse last ended without being told to. */
export interface LastCrash {
  readonly at: string;
  /** The code of the failure, or `unexpected`. */
  readonly code: string;
  /** One line without secrets. */
  readonly line: string;
}

const LONGEST_LINE = 500;
const NEWS_MS = 7 * 86_400_000;

/** Beside the warehouse, as the mark of its last end is: it must be written when the warehouse cannot be. */
function crashFile(path: string): string {
  return `${path}.crash`;
}

/** To be called by the one who writes the warehouse. A disk that does not take it keeps nobody from ending. */
export function noteCrash(path: string, error: unknown, now: Micros): void {
  const text = error instanceof Failure ? error.line : String(error);
  const crash: LastCrash = {
    at: formatInstant(now),
    code: error instanceof Failure ? error.code : "unexpected",
    line: text.replaceAll(/\s+/g, " ").slice(0, LONGEST_LINE),
  };
  try {
    writeFileSync(`${crashFile(path)}.new`, JSON.stringify(crash));
    renameSync(`${crashFile(path)}.new`, crashFile(path));
  } catch {}
}

/**
 * A writer that was killed, or that memory ran out for, cannot say so: the next one does, unless it found words before its
 * end. When it happened is known by what was written last.
 */
export function noteKilled(path: string, { who, since }: KilledWriter): void {
  const changedAt = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (changedAt(crashFile(path)) >= since) return;
  const endedAt = Math.max(since, changedAt(path), changedAt(`${path}-wal`));
  const failure = new Failure(`the writer (${who}) was killed`, {
    family: "operator",
    code: "killed",
    remedy: "see the system's log: memory may have run out, or the machine went down",
  });
  noteCrash(path, failure, Math.floor(endedAt) * MICROS_PER_MS);
}

export function readLastCrash(path: string): LastCrash | undefined {
  try {
    return JSON.parse(readFileSync(crashFile(path), "utf8")) as LastCrash;
  } catch {
    return undefined;
  }
}

/** What happened long ago is still known to machines, and no longer told to people. */
export function isNews({ at }: LastCrash, nowMs: number): boolean {
  return nowMs - Date.parse(at) < NEWS_MS;
}
