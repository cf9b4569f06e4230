import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildProgram } from "./built-program.ts";
import { type Figure, median } from "./figures.ts";
import { readClientSettings } from "./simulator-process.ts";
import { fillWithTicks, TICKS_PER_SERIES } from "./tick-warehouse.ts";

const RUNS = 5;
const POLL_INTERVAL_MS = 10;

const settings = `sync:
  ohlcv: { GWA: [BTC], MWA: none, LX: none }
  intraday: { GWA: { top: 5 }, MWA: none, LX: all, days: 1 }
http: { port: 0 }
`;

/** How soon a daemon is ready, on a large warehouse that was closed cleanly. */
export async function benchStart(print: (line: string) => void): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-start-"));
  const simulator = spawn(process.execPath, [buildProgram(), "simulate"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    const path = join(folder, "mds.sqlite");
    const seriesCount = Math.ceil(20_000_000 / TICKS_PER_SERIES);
    fillWithTicks(path, seriesCount);
    writeFileSync(join(folder, "mds-sync.yaml"), settings);
    print(
      `${(seriesCount * TICKS_PER_SERIES).toLocaleString("en-US")} ticks, ${Math.round(statSync(path).size / 2 ** 20)} MiB`,
    );
    const env = { MDS_WAREHOUSE: path, ...(await readClientSettings(simulator.stdout)) };
    const times: number[] = [];
    for (let run = 0; run < RUNS; run++) times.push(await measureStart(folder, env));
    print(`each start: ${times.map((ms) => `${Math.round(ms)} ms`).join(", ")}`);
    return [
      { name: "from the start to /readyz", measured: median(times), atMost: 2_000, digits: 0, unit: "ms" },
    ];
  } finally {
    simulator.kill("SIGTERM");
    await once(simulator, "exit");
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureStart(folder: string, env: Record<string, string>): Promise<number> {
  const startedAt = performance.now();
  const daemon = spawn(process.execPath, [buildProgram(), "run"], {
    cwd: folder,
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = once(daemon, "exit");
  let address: string | undefined;
  daemon.stderr.setEncoding("utf8").on("data", (text: string) => {
    address ??= /dashboard: ([^\s"]+)/.exec(text)?.[1];
  });
  while (daemon.exitCode === null) {
    const answer = address && (await fetch(new URL("/readyz", address)).catch(() => undefined));
    if (answer && answer.status === 200) break;
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
  if (daemon.exitCode !== null) throw new Error(`the daemon exited with ${daemon.exitCode}`);
  const ms = performance.now() - startedAt;
  daemon.kill("SIGTERM");
  await ended;
  return ms;
}
