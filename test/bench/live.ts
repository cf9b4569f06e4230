import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { toSyncSettings } from "../../src/cli/support/session.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { IngestThread } from "../../src/ingest/thread/ingest-thread.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { createServiceClient } from "../../src/service/client/client.ts";
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
  sharedNow,
} from "./live-sender.ts";

const TICKS_PER_SECOND = 50_000;
const MEASURED_SECONDS = 60;
const CADENCE_SECONDS = 30;
/** How long the first tick of a batch waits for others: part of the allowed latency. */
const FLUSH_DELAY_MS = 40;

/** One commit: the total number of ticks so far, and when. */
interface CommittedTicks {
  readonly ticks: number;
  readonly at: number;
}

const createClient = (baseUrl: string) =>
  createServiceClient({
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
    onCommit: ({ indexTicks, exchangeTicks }) => {
      ticks += indexTicks.inserted + exchangeTicks.inserted;
      committed.push({ ticks, at: sharedNow() });
    },
    onFeedMessage: ({ kind }) => {
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

/** Measures the live path. */
export async function benchLive(): Promise<Figure[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "mds-bench-"));
  const live = await startLivePath(join(folder.path, "mds.sqlite"));
  try {
    // Warm up the JIT compiler.
    const warm = await live.order({ ticksASecond: TICKS_PER_SECOND / 2, seconds: 3 });
    await live.waitForCommits(warm.ticks);
    const { groups, ticks } = await live.order({ ticksASecond: TICKS_PER_SECOND, seconds: MEASURED_SECONDS });
    await live.waitForCommits(ticks);
    const found = computeLatencies(groups, ticks, live.committed);
    return [
      {
        name: `${TICKS_PER_SECOND.toLocaleString("en-US")} ticks per second, p99 from send to commit`,
        measured: found[Math.floor(found.length * 0.99)] ?? Number.POSITIVE_INFINITY,
        atMost: FLUSH_DELAY_MS + 40,
        digits: 0,
        unit: "ms",
      },
      { name: "times that ticks were dropped", measured: live.countOverflows(), atMost: 0, digits: 0 },
    ];
  } finally {
    await live.stop();
  }
}
