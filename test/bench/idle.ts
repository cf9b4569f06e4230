import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { readAddress } from "../support/daemon/read-address.ts";
import { PASSWORD, PostgresServer } from "../support/postgres-server.ts";
import { buildProgram } from "./built-program.ts";
import type { Figure } from "./figures.ts";
import { readClientSettings } from "./simulator-process.ts";

const executablePath = "/usr/bin/chromium";
const WARM_UP_SECONDS = 30;
/** After a fill the head of each series is asked for again, ever more seldom. */
const REST_SECONDS = 480;
const MEASURED_SECONDS = 60;
const CLOCK_TICKS_PER_SECOND = 100;

/** Every asset of a service of real size, live; little history, so that the backfill ends soon. */
const settings = `sync:
  ohlcv: false
  intraday: { GWA: all, MWA: none, LX: all, days: 1 }
  exchangeTickers: false
  marketCap: false
  derivatives: false
http: { port: 0 }
`;

/** The part of one core that an idle daemon takes: 1,500 series live, shared with PostgreSQL, three open pages. */
export async function benchIdle(print: (line: string) => void): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-idle-"));
  const program = buildProgram();
  const simulator = spawn(process.execPath, [program, "simulate", "--size", "real"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const server = new PostgresServer({});
  let daemon: ChildProcess | undefined;
  try {
    await server.start();
    writeFileSync(join(folder, "mds-sync.yaml"), settings);
    const env = {
      ...(await readClientSettings(simulator.stdout)),
      MDS_WAREHOUSE: join(folder, "mds.sqlite"),
      MDS_SHARED_URL: server.url(await server.createDatabase()),
      MDS_SHARED_PASSWORD: PASSWORD,
    };
    daemon = spawn(process.execPath, [program, "run"], {
      cwd: folder,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const address = await readAddress(daemon);
    await waitUntilIdle(address, print);
    print(`idle; ${REST_SECONDS / 60} minutes of rest`);
    await sleep(REST_SECONDS);
    const without = await measure(daemon, print);
    const closePages = await openPages(address, print);
    await sleep(WARM_UP_SECONDS);
    const withPages = await measure(daemon, print);
    await closePages();
    const percent = { unit: "%", digits: 1 };
    return [
      { name: "an idle daemon, of one core, no page open", measured: without * 100, ...percent },
      { name: "the same with three open pages", measured: withPages * 100, ...percent },
    ];
  } finally {
    for (const child of [daemon, simulator]) {
      if (!child || child.exitCode !== null) continue;
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface DaemonState {
  readonly backfill: object | null;
  readonly shared: { readonly lag_seconds: number | null } | null;
}

interface Status {
  readonly streams: readonly { readonly stream: string; readonly rows: number }[];
}

/** More than what is live: the history is still being filled. */
const MAX_LIVE_ROWS_PER_SECOND = 200;
/** Fewer are only the heads of the series. */
const MIN_HISTORY_ROWS = 1_000_000;
const POLL_SECONDS = 10;

/** Waits until the history is filled and forwarded, so that only live rows arrive. */
async function waitUntilIdle(address: string, print: (line: string) => void): Promise<void> {
  let before = 0;
  for (let quiet = 0; quiet < WARM_UP_SECONDS / POLL_SECONDS; ) {
    await sleep(POLL_SECONDS);
    const [daemon, status] = await Promise.all([
      readJson<DaemonState>(address, "/api/daemon"),
      readJson<Status>(address, "/api/status"),
    ]);
    const rows = status?.streams.find(({ stream }) => stream === "index_ticks")?.rows ?? 0;
    const isFilled = rows > MIN_HISTORY_ROWS && daemon?.backfill === null;
    const isLive = isFilled && rows - before < MAX_LIVE_ROWS_PER_SECOND * POLL_SECONDS;
    const isForwarded = (daemon?.shared?.lag_seconds ?? Number.POSITIVE_INFINITY) < POLL_SECONDS;
    quiet = isLive && isForwarded ? quiet + 1 : 0;
    before = rows;
    if (quiet === 0) print(`${rows.toLocaleString("en-US")} ticks`);
  }
}

/** Undefined while the warehouse cannot be read, or if the connection was just closed. */
async function readJson<T>(address: string, path: string): Promise<T | undefined> {
  const response = await fetch(new URL(path, address)).catch(() => undefined);
  return response?.ok ? ((await response.json()) as T) : undefined;
}

/** CPU seconds per second. Prints which threads take them. */
async function measure({ pid }: ChildProcess, print: (line: string) => void): Promise<number> {
  const [before, startedAt] = [readThreads(pid), performance.now()];
  await sleep(MEASURED_SECONDS);
  const seconds = (performance.now() - startedAt) / 1_000;
  const used = [...readThreads(pid)].map(([id, { name, cpuSeconds }]) => ({
    name: `${name} ${id}`,
    ofCore: (cpuSeconds - (before.get(id)?.cpuSeconds ?? 0)) / seconds,
  }));
  for (const { name, ofCore } of used.sort((a, b) => b.ofCore - a.ofCore).slice(0, 8))
    print(`  ${name}: ${(ofCore * 100).toFixed(2)} %`);
  return used.reduce((sum, { ofCore }) => sum + ofCore, 0);
}

function readThreads(pid: number | undefined): Map<string, { name: string; cpuSeconds: number }> {
  return new Map(
    readdirSync(`/proc/${pid}/task`).map((id) => {
      const [, name = "", rest = ""] =
        /\((.*)\) (.*)/.exec(readFileSync(`/proc/${pid}/task/${id}/stat`, "utf8")) ?? [];
      const fields = rest.split(" ");
      return [id, { name, cpuSeconds: (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_PER_SECOND }];
    }),
  );
}

/** Three pages in a browser; without one, three readers of their events. */
async function openPages(address: string, print: (line: string) => void): Promise<() => Promise<void>> {
  if (!existsSync(executablePath)) {
    print(`${executablePath} is missing: the pages only listen`);
    const stop = new AbortController();
    for (let i = 0; i < 3; i++)
      void fetch(new URL("/api/events", address), { signal: stop.signal })
        .then((response) => response.text())
        .catch(() => {});
    return async () => stop.abort();
  }
  const browser = await chromium.launch({ executablePath, args: ["--headless", "--no-sandbox"] });
  for (const path of ["/market", "/sync", "/bars/BTC"]) {
    const page = await browser.newPage();
    await page.goto(new URL(path, address).href);
  }
  return () => browser.close();
}

function sleep(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}
