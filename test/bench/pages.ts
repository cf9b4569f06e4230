import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposableSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readClientSettings } from "../simulator/remote-simulator.ts";
import { readAddress } from "../support/daemon/read-address.ts";
import { buildProgram } from "./built-program.ts";
import type { Figure } from "./figures.ts";

const MEASURED_SECONDS = 60;
const PAUSE_MS = 200;
const MAX_REQUEST_MS = 300;

/** Enough ticks and daily bars that the backfill outlasts the measurement. */
const settings = `sync:
  intraday: { GWA: { top: 50 }, MWA: none, LX: all, days: 30 }
http: { port: 0 }
`;

interface Market {
  readonly assets: readonly (readonly [id: string, symbol: string])[];
}

/** Requests of the pages beside the first backfill of a service of real size. */
export async function benchPages(): Promise<readonly Figure[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "mds-bench-pages-"));
  const program = buildProgram();
  const simulator = spawn(process.execPath, [program, "simulate", "--size", "real"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  let daemon: ChildProcess | undefined;
  try {
    writeFileSync(join(folder.path, "mds-sync.yaml"), settings);
    const env = {
      ...installedEnvironment(),
      MDS_WAREHOUSE: join(folder.path, "mds.sqlite"),
      ...(await readClientSettings(simulator.stdout)),
    };
    daemon = spawn(process.execPath, [program, "run"], {
      cwd: folder.path,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const address = await readAddress(daemon);
    const paths = requestedPaths(await waitForMarket(address));
    return [
      {
        name: "slowest request of a page beside a backfill",
        measured: await measureRequests(address, paths),
        atMost: MAX_REQUEST_MS,
        digits: 0,
        unit: "ms",
      },
    ];
  } finally {
    for (const child of [daemon, simulator]) {
      if (!child || child.exitCode !== null) continue;
      child.kill("SIGTERM");
      await once(child, "exit");
    }
  }
}

/** The memory settings of the systemd unit: the daemon is measured as it is installed. */
function installedEnvironment(): Record<string, string> {
  const unit = readFileSync(resolve(import.meta.dirname, "../../config/mds-sync.service"), "utf8");
  const pairs = [...unit.matchAll(/^Environment=.*?(MALLOC_\w+|NODE_OPTIONS)=(\S+)/gm)];
  return Object.fromEntries(pairs.map(([, name, value]) => [name, value]));
}

/** What the pages request, as they do it. */
function requestedPaths(assetId: string): string[] {
  const day = (daysAgo: number) => new Date(Date.now() - daysAgo * 86_400_000).toISOString();
  const bars = (width: string, days: number) =>
    `/api/bars?${new URLSearchParams({ type: "GWA", id: assetId, width, from: day(days) })}`;
  return [
    ...["/api/daemon", "/api/status", "/api/missing", "/api/coverage"],
    ...["/api/coverage?name=btc", "/api/coverage?problems=1", "/api/series?name=bt"],
    ...[bars("1h", 7), bars("1m", 1), bars("1d", 200)],
    ...["/api/market", "/api/pairs", "/api/quotes?pair=BTC%2FUSD", "/api/derivative-assets"],
    ...[`/api/derivatives?asset=${encodeURIComponent(assetId)}`, "/api/funding", "/api/schema", "/healthz"],
  ];
}

/** The slowest, but for the first ones, which start the threads that read for the pages. */
async function measureRequests(address: string, paths: readonly string[]): Promise<number> {
  let slowest = 0;
  const until = performance.now() + MEASURED_SECONDS * 1_000;
  for (let round = 0; performance.now() < until; round++)
    for (const path of paths) {
      const startedAt = performance.now();
      const response = await fetch(new URL(path, address));
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`${path} answered ${response.status}`);
      if (round > 0) slowest = Math.max(slowest, performance.now() - startedAt);
      await sleep(PAUSE_MS);
    }
  return slowest;
}

/** Waits until every page has something to show; returns the id of BTC. */
async function waitForMarket(address: string): Promise<string> {
  for (;;) {
    const market = (await readJson(address, "/api/market")) as Market | undefined;
    const lists = await Promise.all(
      ["/api/pairs", "/api/derivative-assets"].map((path) => readJson(address, path)),
    );
    const btc = market?.assets.find(([, symbol]) => symbol === "BTC");
    if (btc && lists.every((list) => String(JSON.stringify(list)).includes('"rows":[{'))) return btc[0];
    await sleep(1_000);
  }
}

/** Undefined while the warehouse cannot be read yet. */
async function readJson(address: string, path: string): Promise<unknown> {
  const response = await fetch(new URL(path, address));
  return response.ok ? response.json() : undefined;
}
