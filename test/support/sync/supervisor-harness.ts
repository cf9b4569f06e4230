import { join } from "node:path";
import { onTestFinished } from "vitest";
import { syncSettings } from "../../../src/cli/support/session.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { requireServiceSettings } from "../../../src/config/service-settings.ts";
import { Ingest } from "../../../src/ingest/thread/ingest-thread.ts";
import { MICROS_PER_MS } from "../../../src/model/time.ts";
import { seededRandom } from "../../../src/runtime/backoff.ts";
import type { Log } from "../../../src/runtime/log.ts";
import { createServiceClient } from "../../../src/service/client/client.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../../src/simulator/simulator.ts";
import type { SyncSettings } from "../../../src/sync/context/context.ts";
import { serviceClock } from "../../../src/sync/context/context.ts";
import type { Problem } from "../../../src/sync/context/error-policy.ts";
import { Tally } from "../../../src/sync/context/run-stats.ts";
import { CurrentKeeper } from "../../../src/sync/supervisor.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import { presentTs } from "../../../src/warehouse/views/sql-fragments.ts";
import { TurnedClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { type Agreement, expectTruth } from "./oracle.ts";

export interface KeeperOptions {
  readonly simulator?: SimulatorOptions;
  /** The part `sync` of the settings. */
  readonly sync: Record<string, unknown>;
  readonly start?: string;
  /** Hours pass more quickly with fewer ticks. */
  readonly refreshSeconds?: number;
  readonly maxRequestsPerSecond?: number;
}

export type Row = Record<string, unknown>;

/** The daemon's work, the service and a warehouse on a real disk, on one clock that is turned by hand. */
export class KeeperUnderTest {
  readonly clock: TurnedClock;
  readonly simulator: Simulator;
  readonly path: string;
  readonly problems = new Map<string, readonly Problem[]>();
  /** The parts that told of problems, each time that they did. */
  readonly told: string[] = [];
  readonly failures: unknown[] = [];
  readonly logged: { fields: Record<string, unknown>; message: string }[] = [];
  isFilled = false;
  activity = "";
  settings: SyncSettings;
  keeper: CurrentKeeper | undefined;
  readonly #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  readonly #env: Record<string, string>;

  private constructor(
    clock: TurnedClock,
    simulator: Simulator,
    { sync, refreshSeconds = 30, maxRequestsPerSecond = 0 }: KeeperOptions,
  ) {
    this.clock = clock;
    this.simulator = simulator;
    this.path = join(temporaryFolder(), "mds.sqlite");
    this.#env = {
      MDS_BASE_URL: simulator.baseUrl,
      MDS_WS_URL: simulator.wsUrl,
      MDS_CLIENT_ID: simulator.clientId,
      MDS_CLIENT_SECRET: simulator.clientSecret,
      MDS_WAREHOUSE: this.path,
    };
    const loaded = loadSettings({ env: this.#env, directory: temporaryFolder() });
    this.settings = {
      ...syncSettings(loaded),
      refreshSeconds,
      maxRequestsPerSecond,
      streams: { ...syncSettings(loaded).streams, ...sync },
    };
  }

  static async start(options: KeeperOptions): Promise<KeeperUnderTest> {
    const clock = new TurnedClock(options.start ?? "2026-03-01T12:00:07Z");
    const { refreshSeconds = 30 } = options;
    const simulator = await startSimulator({ clock, refreshSeconds, ...options.simulator });
    const under = new KeeperUnderTest(clock, simulator, options);
    onTestFinished(async () => {
      await under.stop();
      await simulator.stop();
    });
    await under.#begin();
    return under;
  }

  async #begin(): Promise<void> {
    const { clock } = this;
    const note = (fields: Record<string, unknown>, message: string) =>
      void this.logged.push({ fields, message });
    const log: Log = { debug: () => {}, info: note, warn: note, error: note };
    const random = seededRandom(seed);
    const tally = new Tally();
    const service = requireServiceSettings(loadSettings({ env: this.#env, directory: temporaryFolder() }));
    const client = createServiceClient({
      ...service,
      maxRequestsPerSecond: this.settings.maxRequestsPerSecond,
      clock,
      random,
      log,
      observe: (observation) => tally.observe(observation),
    });
    const ingest = await Ingest.start({ path: this.path, clock: serviceClock(client, clock), log });
    const reader = openReader(this.path);
    const intake = { client, ingest, clock, log, tally, signal: this.#stop.signal };
    this.keeper = new CurrentKeeper(intake, {
      settings: this.settings,
      wsUrl: service.wsUrl,
      reader,
      random,
      failed: (_, error) => void this.failures.push(error),
      problems: (part, problems) => {
        this.problems.set(part, problems);
        this.told.push(part);
      },
      about: (activity) => {
        this.activity = activity;
      },
      filled: () => {
        this.isFilled = true;
      },
      live: () => {},
      heard: () => {},
      observeFeed: () => {},
    });
    const run = this.keeper.run().catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.failures.push(error);
    });
    this.#running = run.then(async () => {
      reader.close();
      await client.close();
      await ingest.close();
    });
  }

  /** Lets time run. */
  async pass(seconds: number): Promise<void> {
    await this.clock.runUntil(this.clock.sleep(seconds * 1000));
  }

  /** Lets time run until something is so. */
  async until(isSo: () => boolean, mostSeconds = 3600, step = 1): Promise<void> {
    for (let waited = 0; !isSo(); waited += step) {
      if (waited > mostSeconds) throw new Error(`not within ${mostSeconds} s: ${isSo}`);
      await this.pass(step);
    }
  }

  /** Fills and follows until every head is heard and settled as far as it can be. */
  async settled(): Promise<void> {
    await this.until(() => this.isFilled);
    await this.pass(4 * this.settings.refreshSeconds);
  }

  query(sql: string): Row[] {
    const reader = openReader(this.path);
    try {
      return reader.database.prepare(sql).all() as Row[];
    } finally {
      reader.close();
    }
  }

  /** The view `gaps`, by the turned clock instead of SQLite's. */
  gaps(where = "1"): Row[] {
    const [view] = this.query("SELECT sql FROM sqlite_master WHERE name = 'gaps'");
    const body = String(view?.sql).replace(/^CREATE VIEW\s+\S+\s+AS/i, "");
    const now = Math.floor(this.clock.now()) * MICROS_PER_MS;
    return this.query(
      `SELECT stream, name, state, reason, (${now} - from_ts) / 1000000 AS age, (to_ts - from_ts) / 1000000 AS seconds
        FROM (${body.replaceAll(presentTs, String(now))}) WHERE ${where} ORDER BY stream, name, from_ts`,
    );
  }

  /** Requests to an endpoint after the first `from` of all. */
  asked(endpoint: string, from = 0): { readonly target: string; readonly at: number }[] {
    return this.simulator.requests.list
      .slice(from)
      .filter(({ target }) => target.startsWith(`/v3${endpoint}?`) || target === `/v3${endpoint}`);
  }

  get requests(): number {
    return this.simulator.requests.list.length;
  }

  /** Everything that is wanted equals what the service serves; the ledger need not be ahead of `asOf`. */
  expectTruth(asOfMs: number): Agreement {
    const reader = openReader(this.path);
    try {
      return expectTruth(reader, this.simulator, this.clock.now(), asOfMs * MICROS_PER_MS);
    } finally {
      reader.close();
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.clock.runUntil(this.#running);
  }
}
