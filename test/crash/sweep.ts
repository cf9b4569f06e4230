import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { holes } from "../../src/warehouse/coverage/gaps.ts";
import { settledRanges } from "../../src/warehouse/coverage/ledger.ts";
import type { Warehouse } from "../../src/warehouse/writer.ts";
import { btc } from "../support/ingest/pages.ts";
import { hole, open, seedLiveRows, truth, walk } from "./workload.ts";

/** What changes files: a kill just before each of these is a crash at a different place. */
const writes = ["pwrite64", "fdatasync", "fsync", "ftruncate", "rename", "unlink", "openat"] as const;
export const tasks = ["migrate", "commit", "shorten", "checkpoint"] as const;
export type Task = (typeof tasks)[number];

/** One place to die at: the nth call of a system call, counted from the start of the process. */
export interface Place {
  readonly task: Task;
  readonly call: string;
  readonly nth: number;
}

const victim = resolve(import.meta.dirname, "killed-process.ts");

export function hasStrace(): boolean {
  return spawnSync("strace", ["-V"]).status === 0;
}

/** All places at which a task touches its file, found by watching it once. */
export function placesOf(task: Task): Place[] {
  return withFile(task, (path, folder) => {
    const trace = join(folder, "trace");
    run(["-f", "-y", "-o", trace, "-e", `trace=${writes.join(",")}`], task, path);
    const seen = new Map<string, number>();
    const places: Place[] = [];
    for (const line of readFileSync(trace, "utf8").split("\n")) {
      const call = /^\d+\s+(\w+)\(/.exec(line)?.[1];
      if (!call) continue;
      const nth = (seen.get(call) ?? 0) + 1;
      seen.set(call, nth);
      if (line.includes(folder) && !(call === "openat" && !line.includes("O_CREAT")))
        places.push({ task, call, nth });
    }
    return places;
  });
}

/** Kills the task at one place, then opens the file as the next start would, and says what is wrong with it. */
export function dieAt(place: Place): { problems: string[]; killed: boolean } {
  return withFile(place.task, (path) => {
    const inject = `inject=${place.call}:signal=KILL:when=${place.nth}`;
    const { signal, status, stdout } = run(
      ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${place.call}`, "-e", inject],
      place.task,
      path,
    );
    return { problems: judge(path, stdout), killed: signal === "SIGKILL" || status === 137 };
  });
}

/**
 * What must hold after any crash: the file is sound, pages that were reported are there, every record in a settled
 * range is stored, and going on from here ends at the truth.
 */
export function judge(path: string, reported: string): string[] {
  const problems: string[] = [];
  const warehouse = open(path);
  try {
    for (const { reason } of warehouse.setAside) problems.push(`the file was set aside: ${reason}`);
    const integrity = warehouse.connection.database.pragma("integrity_check", { simple: true });
    if (integrity !== "ok") problems.push(`integrity: ${String(integrity)}`);
    const pages = (reported.match(/^page /gm) ?? []).length;
    const stored = storedMoments(warehouse);
    const settled = settledMoments(warehouse);
    if (settled.length < pages * 20 - 1)
      problems.push(`${pages} pages were reported, ${settled.length} rows are settled`);
    for (const moment of settled)
      if (!stored.has(moment)) problems.push(`settled without its row: ${moment}`);
    walk(warehouse, () => {});
    const end = [...storedMoments(warehouse)]
      .filter((ts) => hole.from <= ts && ts < hole.to)
      .sort((a, b) => b - a);
    if (end.join() !== truth.join()) problems.push(`ends with ${end.length} rows instead of ${truth.length}`);
    if (settledMoments(warehouse).length !== truth.length) problems.push("the hole stays open");
    if (holes(warehouse.connection, "index_ticks", hole.to).length > 0) problems.push("there are holes");
  } finally {
    warehouse.close();
  }
  return problems;
}

function storedMoments(warehouse: Warehouse): Set<number> {
  return new Set(
    warehouse.connection.database.prepare("SELECT ts FROM index_ticks").pluck().all() as number[],
  );
}

function settledMoments(warehouse: Warehouse): number[] {
  const series = warehouse.connection.database
    .prepare("SELECT series FROM series WHERE index_type = ? AND index_id = ?")
    .pluck()
    .get(btc.indexType, btc.indexId) as number | undefined;
  if (series === undefined) return [];
  const ranges = settledRanges(warehouse.connection, { stream: "index_ticks", series });
  return truth.filter((ts) => ranges.some(({ from, to }) => from <= ts && ts < to));
}

/** A file prepared for the task: nothing for a migration, live rows otherwise, and a full WAL for a checkpoint. */
function withFile<T>(task: Task, use: (path: string, folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "mds-sync-crash-"));
  try {
    const path = join(folder, "mds.sqlite");
    if (task !== "migrate") prepare(path, task);
    return use(path, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const prepared = new Map<Task, string>();

function prepare(path: string, task: Task): void {
  let master = prepared.get(task);
  if (!master) {
    master = join(mkdtempSync(join(tmpdir(), "mds-sync-crash-master-")), "mds.sqlite");
    const warehouse = open(master);
    seedLiveRows(warehouse);
    if (task === "checkpoint") walk(warehouse, () => {});
    // Copied while open, so that the WAL still holds what a checkpoint would move.
    for (const end of ["", "-wal"]) copyFileSync(master + end, `${master}.copy${end}`);
    warehouse.close();
    prepared.set(task, master);
  }
  for (const end of ["", "-wal"])
    if (existsSync(`${master}.copy${end}`)) copyFileSync(`${master}.copy${end}`, path + end);
}

function run(strace: readonly string[], task: Task, path: string) {
  return spawnSync("strace", [...strace, process.execPath, victim, task, path], { encoding: "utf8" });
}
