import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultCall } from "../simulator/faults.ts";
import { RemoteSimulator, simulatorEntry } from "../simulator/remote-simulator.ts";
import { readAddress } from "../support/daemon/read-address.ts";
import { queryFile } from "../support/warehouse/warehouse-file.ts";
import { buildProgram } from "./built-program.ts";
import type { Figure } from "./figures.ts";

interface Row {
  readonly name: string;
  /** Of the outage. */
  readonly seconds: number;
  readonly faults: readonly FaultCall[];
}

const refused = (seconds: number): Row => ({
  ...{ name: `refused ${seconds} s`, seconds },
  faults: [["refuse", { to: seconds * 1_000 }]],
});

type FailFor = (conditions: { readonly on: string; readonly to: number }) => FaultCall;

/** Everything fails so: requests, the socket, and the connection that there is. */
const failing = (name: string, seconds: number, request: FailFor, upgrade: FailFor): Row => {
  const to = seconds * 1_000;
  const conditions = { on: "*", to };
  return {
    ...{ name: `${name} ${seconds} s`, seconds },
    faults: [request(conditions), upgrade(conditions), ["dropConnection", { when: "tick", to }]],
  };
};
const upgradeStatus =
  (code: number): FailFor =>
  ({ to }) => ["upgradeStatus", code, { to }];
const failingWith = (name: string, seconds: number, code: number) =>
  failing(name, seconds, (conditions) => ["status", code, conditions], upgradeStatus(code));

const rows: readonly Row[] = [
  ...[30, 90, 300].map(refused),
  failing("connections reset", 30, (conditions) => ["reset", conditions], upgradeStatus(502)),
  failingWith("503 for everything", 60, 503),
  failingWith("a deploy: socket closed, 502", 20, 502),
  failing(
    "no answer",
    30,
    (conditions) => ["stall", conditions],
    ({ to }) => ["upgradeStall", { to }],
  ),
];

const CADENCE_MS = 5_000;
const settings = `service: { refreshSeconds: ${CADENCE_MS / 1_000} }
sync:
  ohlcv: false
  intraday: { GWA: none, MWA: none, LX: all, days: 1 }
  exchangeTickers: { exchanges: all, markets: { top: 5 } }
  marketCap: { every: 30s }
  derivatives: { every: 10s }
http: { port: 0 }
`;

/** Every outage ends so long before the end of a period: the record of that period can still be had. */
const END_BEFORE_PERIOD_MS = 4_000;
const TAIL_MS = 15_000;
const MAX_BACK_SECONDS = 3;

/** The daemon against the simulator, each in its own process, all rows at the same time. */
export async function benchOutage(): Promise<Figure[]> {
  buildProgram();
  const started = await Promise.allSettled(rows.map((row) => Site.start(row)));
  const sites = started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  try {
    for (const each of started) if (each.status === "rejected") throw each.reason;
    await Promise.all(sites.map((site) => site.waitUntilFollowing()));
    return (await Promise.all(sites.map((site) => site.measure()))).flat();
  } finally {
    await Promise.all(sites.map((site) => site.stop()));
  }
}

class Site {
  readonly #row: Row;
  readonly #folder: string;
  readonly #simulator: RemoteSimulator;
  readonly #processes: readonly ChildProcess[];
  readonly #address: string;

  private constructor(
    row: Row,
    folder: string,
    processes: readonly ChildProcess[],
    remote: RemoteSimulator,
    address: string,
  ) {
    this.#row = row;
    this.#folder = folder;
    this.#processes = processes;
    this.#simulator = remote;
    this.#address = address;
  }

  static async start(row: Row): Promise<Site> {
    const program = buildProgram();
    const folder = mkdtempSync(join(tmpdir(), "mds-bench-outage-"));
    const cadence = ["--refresh-seconds", String(CADENCE_MS / 1_000)];
    const simulator = spawn(process.execPath, [simulatorEntry, ...cadence], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const remote = await RemoteSimulator.connect(simulator);
    writeFileSync(join(folder, "mds-sync.yaml"), settings);
    const daemon = spawn(process.execPath, [program, "run"], {
      cwd: folder,
      env: { ...remote.env, MDS_WAREHOUSE: join(folder, "mds.sqlite") },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const address = await readAddress(daemon).catch((error: unknown) => {
      simulator.kill("SIGTERM");
      throw error;
    });
    return new Site(row, folder, [daemon, simulator], remote, address);
  }

  /** Ticks of two periods are stored, and nothing else is under way. */
  async waitUntilFollowing(): Promise<void> {
    while (!(await this.#isConnected()) || this.#storedPeriods().size < 2) await sleep(1_000);
    await sleep(5_000);
  }

  #storedPeriods(): ReadonlySet<unknown> {
    const sql = `SELECT DISTINCT ts / ${CADENCE_MS * 1_000} AS period FROM exchange_ticks`;
    return new Set(queryFile(join(this.#folder, "mds.sqlite"), sql).map(({ period }) => period));
  }

  /** Periods without a record, but for those in which the service was down from the beginning to the end. */
  #countLost(startedAt: number, endAt: number): number {
    const stored = this.#storedPeriods();
    const first = Math.floor(startedAt / CADENCE_MS);
    const periods = Math.floor(Date.now() / CADENCE_MS) - 2 - first;
    return Array.from({ length: periods }, (_, at) => first + at).filter(
      (period) =>
        !stored.has(period) && (period * CADENCE_MS < startedAt || (period + 1) * CADENCE_MS > endAt),
    ).length;
  }

  async #isConnected(): Promise<boolean> {
    const text = await (await fetch(new URL("/metrics", this.#address))).text();
    return text.includes("\nmds_sync_feed_connected 1");
  }

  async measure(): Promise<Figure[]> {
    const { name, seconds, faults } = this.#row;
    const endOffset = Date.now() + seconds * 1_000 + END_BEFORE_PERIOD_MS;
    await sleep(2 * CADENCE_MS - (endOffset % CADENCE_MS));
    const sentAt = Date.now();
    await this.#simulator.setFaults(...faults);
    const startedAt = (sentAt + Date.now()) / 2;
    const endAt = startedAt + seconds * 1_000;
    await sleep(seconds * 1_000 + TAIL_MS);
    const requests = await this.#simulator.readRequests();
    const secondsUntil = (isSocket: boolean, success: number) => {
      const first = requests.find(
        ({ target, status, at }) =>
          at >= endAt &&
          target.startsWith("/v3/stream") === isSocket &&
          !target.includes("/oauth/") &&
          status === success,
      );
      return ((first?.at ?? Number.NaN) - endAt) / 1_000;
    };
    const limit = { atMost: MAX_BACK_SECONDS, unit: "s" };
    return [
      { name: `${name}: socket up after`, measured: secondsUntil(true, 101), ...limit },
      { name: `${name}: first poll after`, measured: secondsUntil(false, 200), ...limit },
      // Where everything fails for minutes, the probe of its last period may come too late for it.
      {
        name: `${name}: periods lost`,
        measured: this.#countLost(startedAt, endAt),
        ...{ atMost: seconds > 100 ? 1 : 0, digits: 0 },
      },
    ];
  }

  async stop(): Promise<void> {
    for (const child of this.#processes) {
      if (child.exitCode !== null) continue;
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
