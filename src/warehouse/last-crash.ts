import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { Failure } from "../model/failure.ts";
import { formatInstant, type Micros } from "../model/instant.ts";

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
