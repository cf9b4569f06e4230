import { renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import { syncToDisk } from "./disk.ts";
import { walSuffixes } from "./wal.ts";

/** Damaged files that were renamed, so that a person can inspect them. */
export interface QuarantinedFiles {
  readonly reason: string;
  /** The new names of the database, its WAL and its `-shm` file, as far as they exist. */
  readonly files: readonly string[];
}

const databaseSuffixes = ["", ...walSuffixes] as const;

/**
 * Renames database, WAL and `-shm` file together, so that they still open under the new name; `wal` leaves the database
 * in place. The database goes first: a WAL that a crash leaves behind alone is quarantined by the next start.
 */
export function quarantine(path: string, reason: string, now: Micros, which: "all" | "wal" = "all") {
  const name = findAsideName(path, now);
  const suffixes = (which === "all" ? databaseSuffixes : walSuffixes).filter((suffix) =>
    fileExists(path + suffix),
  );
  for (const suffix of suffixes) renameSync(path + suffix, name + suffix);
  syncToDisk(dirname(path));
  return { reason, files: suffixes.map((suffix) => name + suffix) };
}

/** A dated name for a database that is replaced, which neither it nor its WAL and `-shm` file have yet. */
export function findAsideName(path: string, now: Micros): string {
  const stamp = formatTimestamp(now).slice(0, 19).replaceAll(":", "");
  let name = `${path}.aside-${stamp}Z`;
  for (let n = 2; databaseSuffixes.some((suffix) => fileExists(name + suffix)); n++)
    name = `${path}.aside-${stamp}Z.${n}`;
  return name;
}

function fileExists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
