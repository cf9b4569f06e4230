import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";
import { toSyncSettings } from "../../src/cli/support/session.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { IngestThread } from "../../src/ingest/thread/ingest-thread.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../src/service/client/client.ts";
import { SubscriptionStates } from "../../src/service/live/subscription-states.ts";
import type { SyncContext } from "../../src/sync/context/context.ts";
import { RunStats } from "../../src/sync/context/run-stats.ts";
import { followLiveFeed } from "../../src/sync/live/follower.ts";
import { SubscriptionCoverage } from "../../src/sync/live/subscription-coverage.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import type { Figure } from "./figures.ts";
import {
  EXCHANGE_ID,
  type SenderCommand,
  type SentGroup,
  type SentReport,
  STEADY_SERIES,
  sharedNow,
} from "./live-sender.ts";

const TICKS_PER_SECOND = 50_000;
const BURST_TICKS = 30_000;
const CADENCE_SECONDS = 30;
const OLDER_ROWS = 150;
const BURST_INTERVAL_MS = CADENCE_SECONDS * 1000;
/** How long the first tick of a batch waits for others: part of the allowed latency. */
const FLUSH_DELAY_MS = 40;

/** One commit: the total number of ticks so far, and when. */
interface CommittedTicks {
  readonly ticks: number;
  readonly at: number;
}

function createClient(baseUrl: string): ServiceClient {
  return createServiceClient({
    baseUrl,
    authUrl: baseUrl,
    clientId: "bench",
    readSecret: async () => "bench",
    concurrency: 8,
    maxRequestsPerSecond: 0,
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    onEvent: () => {},
  });
}

type LivePath = Awaited<ReturnType<typeof startLivePath>>;

/** The live path as in the daemon, fed by a sender in its own process. */
async function startLivePath(path: string) {
  const sender = fork(resolve(import.meta.dirname, "live-sender.ts"), { execArgv: [] });
  const receive = async <Message>() => (await once(sender, "message"))[0] as Message;
  const { port } = await receive<{ readonly port: number }>();
  const client = createClient(`http://127.0.0.1:${port}`);
  const ingest = await new IngestThread({ path, clock: systemClock, log: silentLog }).start();
  const reader = openReader(path);
  const stopping = new AbortController();
  const { signal } = stopping;
  const context: SyncContext = {
    ...{ client, ingest, reader, signal, clock: systemClock, log: silentLog, random: Math.random },
    stats: new RunStats(),
    settings: { ...toSyncSettings(loadSettings({ env: {} })), refreshSeconds: CADENCE_SECONDS },
  };
  const exchangeId = EXCHANGE_ID;
  const coverage = new SubscriptionCoverage(CADENCE_SECONDS * 1_000_000, (change) =>
    ingest.call("commitLiveFeedChange", change, signal),
  );
  coverage.setDesired({
    indices: [{ source: "index", indexType: "MWA" }],
    exchanges: [{ exchangeId, subscriptions: [{ source: "exchange", exchangeId }] }],
    selection: { exchangeIds: [exchangeId], markets: undefined, isResolved: true },
  });
  const committed: CommittedTicks[] = [];
  let ticks = 0;
  let overflows = 0;
  const ready = Promise.withResolvers<void>();
  const following = followLiveFeed(context, {
    wsUrl: `ws://127.0.0.1:${port}/`,
    subscriptions: new SubscriptionStates(coverage.subscriptions),
    coverage,
    onEvent: () => {},
    onCommit: ({ indexTicks, exchangeTicks }) => {
      ticks += indexTicks.inserted + exchangeTicks.inserted;
      committed.push({ ticks, at: sharedNow() });
    },
    onMessage: ({ kind }) => {
      if (kind === "gap") overflows++;
    },
    onCoverageChange: () => {
      if (coverage.isComplete) ready.resolve();
    },
  }).catch((error) => {
    if (!signal.aborted) throw error;
  });
  await ready.promise;
  return {
    committed,
    /** How often ticks were dropped because the buffer was full. */
    countOverflows: () => overflows,
    /** Lets the sender send, and returns what it has sent. */
    order(command: SenderCommand): Promise<SentReport> {
      sender.send(command);
      return receive<SentReport>();
    },
    /** Waits until so many ticks are committed, or until no more are committed for five seconds. */
    async waitForCommits(count: number): Promise<void> {
      for (let still = 0, last = ticks; ticks < count && still < 100; still++) {
        await new Promise((later) => setTimeout(later, 50));
        if (ticks !== last) still = 0;
        last = ticks;
      }
    },
    async stop(): Promise<void> {
      stopping.abort();
      await following;
      await client.close();
      reader.close();
      await ingest.close();
      sender.disconnect();
    },
  };
}

/** The milliseconds from send to commit of each tick, ascending. */
function computeLatencies(
  groups: readonly SentGroup[],
  total: number,
  committed: readonly CommittedTicks[],
): Float64Array {
  const first = groups[0]?.first ?? 0;
  const found = new Float64Array(total - first);
  let group = 0;
  let commit = 0;
  for (let tick = first; tick < total; tick++) {
    while ((groups[group + 1]?.first ?? Number.POSITIVE_INFINITY) <= tick) group++;
    while ((committed[commit]?.ticks ?? Number.POSITIVE_INFINITY) <= tick) commit++;
    found[tick - first] = (committed[commit]?.at ?? Number.POSITIVE_INFINITY) - (groups[group]?.at ?? 0);
  }
  return found.sort();
}

const quantile = (sorted: Float64Array, q: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.POSITIVE_INFINITY;

async function measureSteady(
  live: LivePath,
  seconds: number,
  print: (line: string) => void,
): Promise<Figure[]> {
  // Warm up the JIT compiler.
  const warm = await live.order({ order: "steady", ticksASecond: TICKS_PER_SECOND / 2, seconds: 3 });
  await live.waitForCommits(warm.ticks);
  const before = { all: process.cpuUsage(), main: process.threadCpuUsage() };
  const steady = { order: "steady", ticksASecond: TICKS_PER_SECOND, seconds } as const;
  const { groups, ticks } = await live.order(steady);
  await live.waitForCommits(ticks);
  const sent = ticks - warm.ticks;
  const perTick = ({ user, system }: NodeJS.CpuUsage) => (user + system) / sent;
  const inMain = perTick(process.threadCpuUsage(before.main));
  const beside = perTick(process.cpuUsage(before.all)) - inMain;
  const found = computeLatencies(groups, ticks, live.committed);
  print(
    `${sent.toLocaleString("en-US")} ticks of ${STEADY_SERIES} series in ${seconds} s, sent by another process`,
  );
  print(
    `from send to commit: median ${quantile(found, 0.5).toFixed(0)} ms, worst ${quantile(found, 1).toFixed(0)} ms`,
  );
  print(`CPU per tick: ${inMain.toFixed(1)} µs in the main thread, ${beside.toFixed(1)} µs in other threads`);
  return [
    {
      name: `${TICKS_PER_SECOND.toLocaleString("en-US")} ticks per second, p99 from send to commit`,
      measured: quantile(found, 0.99),
      atMost: FLUSH_DELAY_MS + 40,
      digits: 0,
      unit: "ms",
    },
    { name: "times that ticks were dropped", measured: live.countOverflows(), atMost: 0, digits: 0 },
  ];
}

/**
 * Gives every series a few pages of older rows, as after a day. In an empty file neighbouring series would share pages, and
 * a burst would take a tenth of the work.
 */
function growHistory(path: string): void {
  const database = new Database(path, { timeout: 10_000 });
  const older = "SELECT value * 30000000 + 1700000000000000 AS ts FROM json_each(?)";
  const steps = JSON.stringify(Array.from({ length: OLDER_ROWS }, (_, at) => at));
  const grow = (table: string, columns: string, keys: string, figures: string) =>
    database
      .prepare(`INSERT INTO ${table} (${columns}, source) SELECT k.key, m.ts, ${figures}, 0 FROM (${keys}) k
        CROSS JOIN (${older}) m ORDER BY 1, 2`)
      .run(steps);
  try {
    const indices = "SELECT series AS key FROM series WHERE index_type = 'MWA'";
    grow("index_tick_rows", "series, ts, price, volume", indices, "1.5, 2.5");
    const listings = "SELECT listing AS key FROM listings";
    grow("exchange_tick_slots", "slot, ts, last, bid, ask, volume", listings, "1.5, 1.4, 1.6, 2.5");
    database.pragma("wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}

async function measureBursts(live: LivePath, path: string, seconds: number): Promise<Figure> {
  // Do not measure the first tick of each series: its dictionary entry is created only once.
  const first = await live.order({ order: "burst", ticks: BURST_TICKS });
  await live.waitForCommits(first.ticks);
  growHistory(path);
  let worst = 0;
  const bursts = Math.max(1, Math.round((seconds * 1000) / BURST_INTERVAL_MS));
  for (let burst = 0; burst < bursts; burst++) {
    await new Promise((later) => setTimeout(later, BURST_INTERVAL_MS));
    const { groups, ticks } = await live.order({ order: "burst", ticks: BURST_TICKS });
    await live.waitForCommits(ticks);
    worst = Math.max(worst, quantile(computeLatencies(groups, ticks, live.committed), 1));
  }
  return {
    name: `a burst of ${BURST_TICKS.toLocaleString("en-US")} ticks on disk, the worst of ${bursts}`,
    measured: worst,
    atMost: 1_000,
    digits: 0,
    unit: "ms",
  };
}

/** Measures the live path; `--seconds N` makes a shorter run. */
export async function benchLive(print: (line: string) => void): Promise<Figure[]> {
  const seconds = parseSeconds(process.argv);
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const path = join(folder, "mds.sqlite");
  const live = await startLivePath(path);
  try {
    return [...(await measureSteady(live, seconds, print)), await measureBursts(live, path, seconds)];
  } finally {
    await live.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function parseSeconds(args: readonly string[]): number {
  const at = args.indexOf("--seconds");
  return at < 0 ? 60 : Number(args[at + 1]);
}
