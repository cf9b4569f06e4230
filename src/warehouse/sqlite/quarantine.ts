import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { formatInstant, type Micros } from "../../model/time.ts";
import { syncToDisk } from "./disk.ts";

/** A file that could not be used, kept for a person to look at. */
export interface SetAside {
  readonly reason: string;
  /** The new names of the database and of what lay beside it. */
  readonly files: readonly string[];
}

/** The database, its WAL and the index of that. */
const walEnds = ["-wal", "-shm"] as const;
const ends = ["", ...walEnds] as const;

interface Entry {
  readonly reason: string;
  /** The new name of the database. */
  readonly name: string;
}

/**
 * Says which files were set aside whose losses do not stand in the ledger yet. Written before the first of them is renamed
 * and gone once the losses are committed, so that a process that ends in between leaves word to the next.
 */
function listFile(path: string): string {
  return `${path}.salvage`;
}

/**
 * Renames the database, its WAL and its index together, so that they still open as one under the new name; or, where only
 * the WAL is not to be used, that and its index.
 */
export function setAside(path: string, reason: string, now: Micros, which: "all" | "wal" = "all"): void {
  const stamp = formatInstant(now).slice(0, 19).replaceAll(":", "");
  let name = `${path}.aside-${stamp}Z`;
  for (let n = 2; ends.some((end) => isFile(name + end)); n++) name = `${path}.aside-${stamp}Z.${n}`;
  const others = readList(path).filter((entry) => entry.name !== name);
  writeList(path, [...others, { reason, name }]);
  rename(path, name, which === "all" ? ends : walEnds);
}

/** What was set aside and is not in the ledger yet, the oldest first. */
export function awaitingSalvage(path: string): SetAside[] {
  return readList(path)
    .map(({ reason, name }) => ({ reason, files: ends.map((end) => name + end).filter(isFile) }))
    .filter(({ files }) => files.length > 0);
}

/** The losses are committed. */
export function endSalvage(path: string): void {
  if (!isFile(listFile(path))) return;
  rmSync(listFile(path), { force: true });
  syncToDisk(dirname(path));
}

/**
 * Goes on with what a killed process was at: a WAL that was left at the path after its database had been renamed would be
 * taken for the new database's own.
 */
export function finishSettingAside(path: string): void {
  const last = readList(path).at(-1);
  if (last && !isFile(path)) rename(path, last.name, ends);
}

function rename(path: string, name: string, ends: readonly string[]): void {
  for (const end of ends) if (isFile(path + end) && !isFile(name + end)) renameSync(path + end, name + end);
  syncToDisk(dirname(path));
}

function readList(path: string): Entry[] {
  try {
    return JSON.parse(readFileSync(listFile(path), "utf8")) as Entry[];
  } catch {
    return [];
  }
}

function writeList(path: string, list: readonly Entry[]): void {
  const unfinished = `${listFile(path)}.new`;
  writeFileSync(unfinished, JSON.stringify(list));
  syncToDisk(unfinished);
  renameSync(unfinished, listFile(path));
  syncToDisk(dirname(path));
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}
