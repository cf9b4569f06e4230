import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { inlineColumnDocs } from "../../scripts/bundle-plugins.ts";
import { auditLedger } from "../../src/warehouse/audit/audit-ledger.ts";
import { readSettledRanges } from "../../src/warehouse/coverage/ledger.ts";
import { readGaps } from "../../src/warehouse/coverage/series-gaps.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { btc } from "../support/ingest/pages.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../support/warehouse/empty-warehouse.ts";
import {
  auditedAt,
  commitPages,
  expectedPolls,
  expectedTimestamps,
  gap,
  moveParts,
  openTestWriter,
  seedLiveRows,
  seedPolls,
} from "./workload.ts";

/** System calls that change files. A kill just before each call is a different crash point. */
const fileCalls = ["pwrite64", "fdatasync", "fsync", "ftruncate", "rename", "unlink", "openat"] as const;
export const tasks = [
  "migrate",
  "commit",
  "commit-together",
  "commit-and-truncate",
  "checkpoint",
  "move",
] as const;
export type Task = (typeof tasks)[number];

/** Where to kill the process: before the nth invocation of a system call. */
export interface CrashPoint {
  readonly task: Task;
  readonly call: string;
  readonly count: number;
}

let bundledProcess: Promise<string> | undefined;

/** The process to kill, bundled into one file: loading its modules would take longer than its work. */
export function killedProcess(): Promise<string> {
  bundledProcess ??= bundleProcess();
  return bundledProcess;
}

async function bundleProcess(): Promise<string> {
  const sources = resolve(import.meta.dirname, "../../src");
  const sqlite = createRequire(import.meta.url).resolve("better-sqlite3");
  const outfile = join(mkdtempSync(join(tmpdir(), "mds-sync-crash-process-")), "killed-process.mjs");
  await build({
    entryPoints: [resolve(import.meta.dirname, "killed-process.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    minifyWhitespace: true,
    alias: { "better-sqlite3": sqlite },
    external: [sqlite],
    plugins: [inlineColumnDocs],
    // The migrations are found beside the sources.
    define: { "import.meta.url": JSON.stringify(pathToFileURL(join(sources, "warehouse/migrate.ts")).href) },
  });
  return outfile;
}

export function hasStrace(): boolean {
  return spawnSync("strace", ["-V"]).status === 0;
}

/** All crash points of a task, found by tracing it once. */
export function findCrashPoints(task: Task): Promise<CrashPoint[]> {
  return withFile(task, async (path, folder) => {
    const trace = join(folder, "trace");
    await run(["-f", "-y", "-o", trace, "-e", `trace=${fileCalls.join(",")}`], task, path);
    const counts = new Map<string, number>();
    const points: CrashPoint[] = [];
    for (const line of readFileSync(trace, "utf8").split("\n")) {
      const call = /^\d+\s+(\w+)\(/.exec(line)?.[1];
      if (!call) continue;
      const nth = (counts.get(call) ?? 0) + 1;
      counts.set(call, nth);
      if (line.includes(folder) && !(call === "openat" && !line.includes("O_CREAT")))
        points.push({ task, call, count: nth });
    }
    return points;
  });
}

/** Kills the task at one point, then opens the file as the next start would, and returns the problems found. */
export function crashAt(point: CrashPoint): Promise<{ problems: string[]; isKilled: boolean }> {
  return withFile(point.task, async (path) => {
    const inject = `inject=${point.call}:signal=KILL:when=${point.count}`;
    const { signal, status, stdout } = await run(
      ["-f", "-qq", "-o", "/dev/null", "-e", `trace=${point.call}`, "-e", inject],
      point.task,
      path,
    );
    const polls = point.task === "move" ? expectedPolls : [];
    return { problems: findProblems(path, stdout, polls), isKilled: signal === "SIGKILL" || status === 137 };
  });
}

/**
 * After any crash the file must be intact, every reported page must be stored, every record in a settled range must be
 * stored, every page must be stored with its proof, resuming must end with exactly the expected rows, and each live row is there
 * once, before and after the rest of the parts is moved.
 */
export function findProblems(path: string, reported: string, polls: readonly string[] = []): string[] {
  const problems: string[] = [];
  const warehouse = openTestWriter(path);
  const audit = (after: string) => {
    for (const { rule, text } of auditLedger(warehouse.connection, auditedAt).findings)
      problems.push(`audit after ${after}: ${rule}: ${text}`);
  };
  try {
    for (const { reason } of warehouse.quarantined) problems.push(`the file was quarantined: ${reason}`);
    const integrity = warehouse.connection.database.pragma("integrity_check", { simple: true });
    if (integrity !== "ok") problems.push(`integrity check failed: ${String(integrity)}`);
    audit("the crash");
    const pages = (reported.match(/^page /gm) ?? []).length;
    const stored = readStoredTimestamps(warehouse);
    const settled = readSettledTimestamps(warehouse);
    if (settled.length < pages * 20 - 1)
      problems.push(`${pages} pages were reported, ${settled.length} rows are settled`);
    for (const ts of settled) if (!stored.has(ts)) problems.push(`settled without a row: ${ts}`);
    const unproven = countRestRows(warehouse) - settled.length;
    // A page does not prove its own oldest row.
    if (unproven > 1) problems.push(`${unproven} rows of pages are stored without their proof`);
    commitPages(warehouse, () => {});
    const completed = [...readStoredTimestamps(warehouse)]
      .filter((ts) => gap.from <= ts && ts < gap.to)
      .sort((a, b) => b - a);
    if (completed.join() !== expectedTimestamps.join())
      problems.push(`ends with ${completed.length} rows instead of ${expectedTimestamps.length}`);
    if (readSettledTimestamps(warehouse).length !== expectedTimestamps.length)
      problems.push("the gap is still open");
    if (readGaps(warehouse.connection, "index_ticks", gap.to).length > 0)
      problems.push("readGaps reports gaps");
    audit("the resume");
    const left = readPolls(warehouse);
    moveParts(warehouse);
    for (const rows of [left, readPolls(warehouse)])
      if (rows.join() !== polls.join()) problems.push(`${rows.length} live rows instead of ${polls.length}`);
  } finally {
    warehouse.close();
  }
  return problems;
}

function readStoredTimestamps({ connection }: WarehouseWriter): Set<number> {
  return new Set(connection.values<number>("SELECT ts FROM index_ticks"));
}

function readPolls({ connection }: WarehouseWriter): string[] {
  return connection.values("SELECT market_id || ' ' || ts FROM exchange_ticks ORDER BY market_id, ts");
}

function countRestRows(warehouse: WarehouseWriter): number {
  return warehouse.connection.value("SELECT count(*) FROM index_tick_rows WHERE source = 0");
}

function readSettledTimestamps({ connection }: WarehouseWriter): number[] {
  const sql = "SELECT series FROM series WHERE index_type = ? AND index_id = ?";
  const series = connection.findValue<number>(sql, [btc.indexType, btc.indexId]);
  if (series === undefined) return [];
  const ranges = readSettledRanges(connection, { stream: "index_ticks", series });
  return expectedTimestamps.filter((ts) => ranges.some(({ from, to }) => from <= ts && ts < to));
}

/** Calls `use` with a file for the task: none for a migration; otherwise live rows, and a full WAL for a checkpoint. */
async function withFile<T>(task: Task, use: (path: string, folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "mds-sync-crash-"));
  try {
    const path = join(folder, "mds.sqlite");
    if (task !== "migrate") prepare(path, task);
    return await use(path, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const preparedFiles = new Map<Task, string>();

function prepare(path: string, task: Task): void {
  let master = preparedFiles.get(task);
  if (!master) {
    master = join(mkdtempSync(join(tmpdir(), "mds-sync-crash-master-")), "mds.sqlite");
    copyEmptyWarehouse(master, viewsBesideSync);
    if (task === "move") seedPolls(master);
    const warehouse = openTestWriter(master);
    seedLiveRows(warehouse);
    if (task === "checkpoint") commitPages(warehouse, () => {});
    // Copy while open: closing would checkpoint the WAL.
    for (const suffix of ["", "-wal"]) copyFileSync(master + suffix, `${master}.copy${suffix}`);
    warehouse.close();
    preparedFiles.set(task, master);
  }
  for (const suffix of ["", "-wal"])
    if (existsSync(`${master}.copy${suffix}`)) copyFileSync(`${master}.copy${suffix}`, path + suffix);
}

async function run(strace: readonly string[], task: Task, path: string) {
  const child = spawn("strace", [...strace, process.execPath, await killedProcess(), task, path], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [stdout, [status, signal]] = await Promise.all([text(child.stdout), once(child, "close")]);
  return { stdout, status: status as number | null, signal: signal as NodeJS.Signals | null };
}
