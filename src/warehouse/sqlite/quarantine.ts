import { readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import { replaceFile, syncToDisk } from "./disk.ts";
import { walSuffixes } from "./wal.ts";

/** Damaged files that were renamed, so that a person can inspect them. */
export interface QuarantinedFiles {
  readonly reason: string;
  /** The new names of the database, its WAL and its `-shm` file, as far as they exist. */
  readonly files: readonly string[];
}

const databaseSuffixes = ["", ...walSuffixes] as const;

interface SalvageEntry {
  readonly reason: string;
  /** The new name of the database. */
  readonly name: string;
}

/**
 * The list of quarantined files whose losses are not in the ledger yet. It is written before the first rename and
 * removed after the losses are committed: after a crash in between, the next start continues.
 */
function salvageListPath(path: string): string {
  return `${path}.salvage`;
}

/**
 * Renames database, WAL and `-shm` file together, so that they still open under the new name; `wal` leaves the database
 * in place.
 */
export function quarantine(path: string, reason: string, now: Micros, which: "all" | "wal" = "all"): void {
  const name = findAsideName(path, now);
  const others = readSalvageList(path).filter((entry) => entry.name !== name);
  writeSalvageList(path, [...others, { reason, name }]);
  renameFiles(path, name, which === "all" ? databaseSuffixes : walSuffixes);
}

/** A dated name for a database that is replaced, which neither it nor its WAL and `-shm` file have yet. */
export function findAsideName(path: string, now: Micros): string {
  const stamp = formatTimestamp(now).slice(0, 19).replaceAll(":", "");
  let name = `${path}.aside-${stamp}Z`;
  for (let n = 2; databaseSuffixes.some((suffix) => fileExists(name + suffix)); n++)
    name = `${path}.aside-${stamp}Z.${n}`;
  return name;
}

/** Quarantined files whose losses are not in the ledger yet, oldest first. */
export function readPendingSalvage(path: string): QuarantinedFiles[] {
  return readSalvageList(path)
    .map(({ reason, name }) => ({
      reason,
      files: databaseSuffixes.map((suffix) => name + suffix).filter(fileExists),
    }))
    .filter(({ files }) => files.length > 0);
}

/** Call after the losses are committed. */
export function clearPendingSalvage(path: string): void {
  if (!fileExists(salvageListPath(path))) return;
  rmSync(salvageListPath(path), { force: true });
  syncToDisk(dirname(path));
}

/** Finishes the renames of a process that was killed halfway: docs/decisions/wal.md says why. */
export function resumeQuarantine(path: string): void {
  const last = readSalvageList(path).at(-1);
  if (last && !fileExists(path)) renameFiles(path, last.name, databaseSuffixes);
}

function renameFiles(path: string, name: string, suffixes: readonly string[]): void {
  for (const suffix of suffixes)
    if (fileExists(path + suffix) && !fileExists(name + suffix)) renameSync(path + suffix, name + suffix);
  syncToDisk(dirname(path));
}

function readSalvageList(path: string): SalvageEntry[] {
  try {
    return JSON.parse(readFileSync(salvageListPath(path), "utf8")) as SalvageEntry[];
  } catch {
    return [];
  }
}

function writeSalvageList(path: string, list: readonly SalvageEntry[]): void {
  replaceFile(salvageListPath(path), JSON.stringify(list));
  syncToDisk(dirname(path));
}

function fileExists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
