import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import Database from "better-sqlite3";
import { Ingest } from "../../src/ingest/thread/ingest-thread.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../src/service/client/client.ts";
import { SubscriptionList } from "../../src/service/live/subscription-status.ts";
import type { Intake } from "../../src/sync/context/context.ts";
import { Tally } from "../../src/sync/context/run-stats.ts";
import { followLive } from "../../src/sync/live/follower.ts";
import { LiveStanding } from "../../src/sync/live/subscription-coverage.ts";
import { type Figure, figureTable, isMissed } from "./figures.ts";
import { createClient, fillSeries, startPageServer } from "./ingest.ts";
import { EXCHANGE_ID, type Order, type Report, type Sent, STEADY_SERIES, sharedNow } from "./live-sender.ts";

const TICKS_A_SECOND = 50_000;
const BURST = 30_000;
const CADENCE_SECONDS = 30;
const ROWS_BEFORE = 150;
const BURST_EVERY_MS = CADENCE_SECONDS * 1000;
/** The backfill beside which PINGs are sent: so many series, so many pages of each. */
const BACKFILL = { series: 8, pages: 100 };
/** How long the first tick of a batch waits for company: a part of what is promised. */
const FLUSH_MS = 40;

/** Ticks that reached the disk together: the number of all so far, and when. */
interface Committed {
  readonly ticks: number;
  readonly at: number;
}

/** The live path as the daemon has it, with a sender at its other end in a process of its own. */
class LivePath {
  readonly committed: Committed[] = [];
  /** So often ticks came faster than they could be held, and some were dropped. */
  gaps = 0;
  readonly #sender: ChildProcess;
  readonly #client: ServiceClient;
  readonly #ingest: Ingest;
  readonly #stop = new AbortController();
  #following: Promise<void> | undefined;
  #ticks = 0;

  private constructor(sender: ChildProcess, client: ServiceClient, ingest: Ingest) {
    this.#sender = sender;
    this.#client = client;
    this.#ingest = ingest;
  }

  static async start(path: string): Promise<LivePath> {
    const sender = fork(resolve(import.meta.dirname, "live-sender.ts"), { execArgv: [] });
    const [hello] = (await once(sender, "message")) as [Extract<Report, { report: "listening" }>];
    const baseUrl = `http://127.0.0.1:${hello.port}`;
    const wsUrl = `ws://127.0.0.1:${hello.port}/`;
    const client = createServiceClient({
      baseUrl,
      authUrl: baseUrl,
      wsUrl,
      clientId: "bench",
      readSecret: async () => "bench",
      concurrency: 8,
      maxRequestsPerSecond: 0,
      clock: systemClock,
      random: Math.random,
      log: silentLog,
      observe: () => {},
    });
    const ingest = await Ingest.start({ path, clock: systemClock, log: silentLog });
    const live = new LivePath(sender, client, ingest);
    await live.#follow(wsUrl);
    return live;
  }

  get ingest(): Ingest {
    return this.#ingest;
  }

  tell(order: Order): void {
    this.#sender.send(order);
  }

  async order<R extends Report["report"]>(order: Order): Promise<Extract<Report, { report: R }>> {
    this.tell(order);
    const [report] = (await once(this.#sender, "message")) as [Extract<Report, { report: R }>];
    return report;
  }

  /** Waits until so many ticks have been committed, for as long as any still are. */
  async settled(ticks: number): Promise<void> {
    for (let still = 0, last = this.#ticks; this.#ticks < ticks && still < 100; still++) {
      await new Promise((later) => setTimeout(later, 50));
      if (this.#ticks !== last) still = 0;
      last = this.#ticks;
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#following;
    await this.#client.close();
    await this.#ingest.close();
    this.#sender.disconnect();
  }

  #follow(wsUrl: string): Promise<void> {
    const intake: Intake = {
      client: this.#client,
      ingest: this.#ingest,
      clock: systemClock,
      log: silentLog,
      tally: new Tally(),
      signal: this.#stop.signal,
    };
    const ready = Promise.withResolvers<void>();
    const exchangeId = EXCHANGE_ID;
    const standing = new LiveStanding(CADENCE_SECONDS * 1_000_000);
    standing.wish({
      indices: [{ source: "index", indexType: "MWA" }],
      exchanges: [{ exchangeId, subscriptions: [{ source: "exchange", exchangeId }] }],
      selection: { lines: [exchangeId], markets: undefined, isResolved: true, selections: [] },
    });
    this.#following = followLive(intake, {
      wsUrl,
      subscriptions: new SubscriptionList(standing.subscriptions),
      standing,
      refreshSeconds: CADENCE_SECONDS,
      random: Math.random,
      observe: () => {},
      committed: ({ indexTicks, exchangeTicks }) => {
        this.#ticks += indexTicks.inserted + exchangeTicks.inserted;
        this.committed.push({ ticks: this.#ticks, at: sharedNow() });
      },
      heard: ({ kind }) => {
        if (kind === "gap") this.gaps++;
      },
      changed: () => {
        if (standing.isFlowing) ready.resolve();
      },
    }).catch((error) => {
      if (!this.#stop.signal.aborted) throw error;
    });
    return ready.promise;
  }
}

/** For each tick how long it took from its sending to the disk, milliseconds, in ascending order. */
function latencies(groups: readonly Sent[], total: number, committed: readonly Committed[]): Float64Array {
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
  // The first seconds are the compiler's.
  const warm = await live.order<"sent">({ order: "steady", ticksASecond: TICKS_A_SECOND / 2, seconds: 3 });
  await live.settled(warm.ticks);
  const before = { all: process.cpuUsage(), main: process.threadCpuUsage() };
  const steady = { order: "steady", ticksASecond: TICKS_A_SECOND, seconds } as const;
  const { groups, ticks } = await live.order<"sent">(steady);
  await live.settled(ticks);
  const sent = ticks - warm.ticks;
  const perTick = ({ user, system }: NodeJS.CpuUsage) => (user + system) / sent;
  const inMain = perTick(process.threadCpuUsage(before.main));
  const beside = perTick(process.cpuUsage(before.all)) - inMain;
  const found = latencies(groups, ticks, live.committed);
  print(
    `${sent.toLocaleString("en-US")} ticks of ${STEADY_SERIES} series in ${seconds} s, sent by a process beside`,
  );
  print(
    `from send to commit: median ${quantile(found, 0.5).toFixed(0)} ms, worst ${quantile(found, 1).toFixed(0)} ms`,
  );
  print(`CPU a tick: ${inMain.toFixed(1)} µs in the main thread, ${beside.toFixed(1)} µs beside it`);
  return [
    {
      name: `${TICKS_A_SECOND.toLocaleString("en-US")} ticks a second, p99 from send to commit`,
      measured: quantile(found, 0.99),
      atMost: FLUSH_MS + 40,
      digits: 0,
      unit: "ms",
    },
    { name: "times that ticks were dropped", measured: live.gaps, atMost: 0, digits: 0 },
  ];
}

/**
 * Gives every series a few pages of older rows, as any warehouse has after a day: in an empty file neighbours would share
 * pages, and a burst would be a tenth of the work.
 */
function growHistory(path: string): void {
  const database = new Database(path, { timeout: 10_000 });
  const older = "SELECT value * 30000000 + 1700000000000000 AS ts FROM json_each(?)";
  const moments = JSON.stringify(Array.from({ length: ROWS_BEFORE }, (_, at) => at));
  const grow = (table: string, columns: string, keys: string, figures: string) =>
    database
      .prepare(`INSERT INTO ${table} (${columns}, source) SELECT k.key, m.ts, ${figures}, 0 FROM (${keys}) k
        CROSS JOIN (${older}) m ORDER BY 1, 2`)
      .run(moments);
  try {
    const indices = "SELECT series AS key FROM series WHERE index_type = 'MWA'";
    grow("index_tick_rows", "series, ts, price, volume", indices, "1.5, 2.5");
    const listings = "SELECT listing AS key FROM listings";
    grow("exchange_tick_rows", "listing, ts, last, bid, ask, volume", listings, "1.5, 1.4, 1.6, 2.5");
    database.pragma("wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}

async function measureBursts(live: LivePath, path: string, seconds: number): Promise<Figure> {
  // What happens once, when a series is first heard of, is no part of the burst that comes every time.
  const first = await live.order<"sent">({ order: "burst", ticks: BURST });
  await live.settled(first.ticks);
  growHistory(path);
  let worst = 0;
  const bursts = Math.max(1, Math.round((seconds * 1000) / BURST_EVERY_MS));
  for (let burst = 0; burst < bursts; burst++) {
    await new Promise((later) => setTimeout(later, BURST_EVERY_MS));
    const { groups, ticks } = await live.order<"sent">({ order: "burst", ticks: BURST });
    await live.settled(ticks);
    worst = Math.max(worst, quantile(latencies(groups, ticks, live.committed), 1));
  }
  return {
    name: `a burst of ${BURST.toLocaleString("en-US")} ticks on disk, the worst of ${bursts}`,
    measured: worst,
    atMost: 1_000,
    digits: 0,
    unit: "ms",
  };
}

async function measurePongs(live: LivePath): Promise<Figure[]> {
  const { offer, stop } = await startPageServer(BACKFILL.series, BACKFILL.pages);
  const client = createClient(offer);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  try {
    delay.enable();
    live.tell({ order: "ping", everyMs: 50 });
    const begun = sharedNow();
    const rows = await Promise.all(offer.ids.map((id) => fillSeries(client, live.ingest, offer, id)));
    const speed = rows.reduce((a, b) => a + b) / ((sharedNow() - begun) / 1000);
    delay.disable();
    const { ms, unanswered } = await live.order<"pongs">({ order: "pongs" });
    return [
      {
        name: "the slowest PONG during a full-speed backfill",
        note: `of ${ms.length}, at ${Math.round(speed).toLocaleString("en-US")} rows/s`,
        measured: Math.max(...ms),
        atMost: 1_000,
        digits: 0,
        unit: "ms",
      },
      { name: "PINGs without an answer", measured: unanswered, atMost: 0, digits: 0 },
      { name: "longest stall of the event loop meanwhile", measured: delay.max / 1e6, digits: 0, unit: "ms" },
    ];
  } finally {
    await client.close();
    await stop();
  }
}

/** The live path against its figures; `--seconds N` for a short run of this part. */
export async function benchLive(print: (line: string) => void): Promise<Figure[]> {
  const seconds = secondsAsked(process.argv);
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const path = join(folder, "mds.sqlite");
  const live = await LivePath.start(path);
  try {
    return [
      ...(await measureSteady(live, seconds, print)),
      await measureBursts(live, path, seconds),
      ...(await measurePongs(live)),
    ];
  } finally {
    await live.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function secondsAsked(args: readonly string[]): number {
  const at = args.indexOf("--seconds");
  return at < 0 ? 60 : Number(args[at + 1]);
}

if (import.meta.main) {
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  const figures = await benchLive(print);
  for (const line of figureTable(figures)) print(line);
  if (figures.some(isMissed)) process.exitCode = 1;
}
