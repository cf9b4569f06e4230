import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposableSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import { usageReport } from "./backfill-run.ts";
import { buildProgram } from "./built-program.ts";
import type { Figure } from "./figures.ts";
import { cpuMs, fillWithTicks, seriesName, TICKS_PER_SERIES } from "./tick-warehouse.ts";

const SERIES_COUNT = 3;

/** The fastest of several runs: other programs can only slow one down. */
function measureMs(work: () => unknown): number {
  work();
  const times = Array.from({ length: 7 }, () => {
    const startedAt = cpuMs();
    work();
    return cpuMs() - startedAt;
  });
  return Math.min(...times);
}

/** What a quant's tools cost. */
export async function benchToolkit(): Promise<readonly Figure[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "mds-bench-toolkit-"));
  const path = join(folder.path, "mds.sqlite");
  const bars = `SELECT ts, open, high, low, close FROM bars_1h WHERE index_type = 'GWA' AND name = '${seriesName(2)}'`;
  fillWithTicks(path, SERIES_COUNT);
  using warehouse = openWarehouse(path);
  return [
    {
      ...{
        name: "mds-sync ticks --format ndjson to a pipe, by CPU time",
        measured: await measurePipe(folder.path, path),
      },
      ...{ atLeast: 150_000, digits: 0, unit: "rows/s" },
    },
    {
      ...{ name: "200 days of 1h bars of one series", measured: measureMs(() => warehouse.query(bars)) },
      ...{ atMost: 20, digits: 1, unit: "ms" },
    },
  ];
}

/** Rows per second of the program's CPU time, its start included: it uses one core throughout. */
async function measurePipe(folder: string, path: string): Promise<number> {
  const names = Array.from({ length: SERIES_COUNT }, (_, at) => seriesName(at + 1));
  const usage = join(folder, "usage.json");
  const flags = ["--format", "ndjson", "--warehouse", path];
  const args = ["--import", usageReport, buildProgram(), "ticks", ...names, ...flags];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, BENCH_USAGE: usage },
  });
  child.stdout.resume();
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`mds-sync ticks exited with ${code}`);
  const { cpuSeconds } = JSON.parse(readFileSync(usage, "utf8")) as { cpuSeconds: number };
  return (SERIES_COUNT * TICKS_PER_SERIES) / cpuSeconds;
}
