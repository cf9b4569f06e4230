import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import type { FaultCall } from "../simulator/faults.ts";
import { RemoteSimulator, simulatorEntry } from "../simulator/remote-simulator.ts";
import { readAddress } from "../support/daemon/read-address.ts";
import { buildProgram } from "./built-program.ts";
import type { Figure } from "./figures.ts";

interface Row {
  readonly name: string;
  readonly cadenceSeconds: number;
  /** Of the outage. */
  readonly seconds: number;
  readonly faults: readonly FaultCall[];
  readonly maxLostPeriods: number;
}

/** `--full`: the long outage lasts five minutes. */
const LONG_SECONDS = process.argv.includes("--full") ? 300 : 150;
const refuse = (seconds: number): FaultCall[] => [["refuse", { to: seconds * 1000 }]];

/** Everything fails so: requests, the socket, and the connection that there is. */
const everything = (seconds: number, request: FaultCall, upgrade: FaultCall): FaultCall[] => [
  ...[request, upgrade],
  ["dropConnection", { when: "tick", to: seconds * 1_000 }],
];

const situations: readonly (Partial<Row> & Pick<Row, "name" | "seconds" | "faults">)[] = [
  { name: "refused 30 s", seconds: 30, faults: refuse(30) },
  {
    ...{ name: "connections reset 30 s", seconds: 30 },
    faults: everything(30, ["reset", { on: "*", to: 30_000 }], ["upgradeStatus", 502, { to: 30_000 }]),
  },
  {
    ...{ name: "503 for everything 60 s", seconds: 60 },
    faults: everything(60, ["status", 503, { on: "*", to: 60_000 }], ["upgradeStatus", 503, { to: 60_000 }]),
  },
  {
    ...{ name: "a deploy: socket closed, 502 for 20 s", seconds: 20 },
    faults: everything(20, ["status", 502, { on: "*", to: 20_000 }], ["upgradeStatus", 502, { to: 20_000 }]),
  },
  {
    ...{ name: "no answer 30 s", seconds: 30 },
    faults: everything(30, ["stall", { on: "*", to: 30_000 }], ["upgradeStall", { to: 30_000 }]),
  },
  {
    name: `refused ${LONG_SECONDS} s`,
    seconds: LONG_SECONDS,
    faults: refuse(LONG_SECONDS),
    maxLostPeriods: 1,
  },
  { name: "refused 90 s", cadenceSeconds: 30, seconds: 90, faults: refuse(90) },
];
const rows: readonly Row[] = situations.map((row) => ({ cadenceSeconds: 5, maxLostPeriods: 0, ...row }));

const settings = `sync:
  ohlcv: false
  intraday: { GWA: none, MWA: none, LX: all, days: 1 }
  exchangeTickers: { exchanges: all, markets: { top: 5 } }
  marketCap: { every: 30s }
  derivatives: { every: 10s }
http: { port: 0 }
`;

/** Every outage ends so long before the end of a period: the record of that period can still be had. */
const END_BEFORE_PERIOD_MS = 4_000;
const TAIL_SECONDS = 12;
const MAX_BACK_SECONDS = 3;

/** Longer than a timer is ever late because the machine is busy. */
const MIN_STANDSTILL_MS = 2_000;
/** When the whole machine stood still, the service with it: nobody could have had the records of that time. */
const standstills: { readonly from: number; readonly to: number }[] = [];

function watchStandstills(print: (line: string) => void): NodeJS.Timeout {
  let at = Date.now();
  return setInterval(() => {
    const [from, to] = [at, Date.now()];
    at = to;
    if (to - from < MIN_STANDSTILL_MS) return;
    standstills.push({ from, to });
    print(`the machine stood still for ${((to - from) / 1_000).toFixed(1)} s`);
  }, 250);
}

/** The daemon against the simulator, each in its own process, all rows at the same time. */
export async function benchOutage(print: (line: string) => void): Promise<Figure[]> {
  buildProgram();
  const watching = watchStandstills(print);
  const started = await Promise.allSettled(rows.map((row) => Site.start(row)));
  const sites = started.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  try {
    for (const each of started) if (each.status === "rejected") throw each.reason;
    await Promise.all(sites.map((site) => site.waitUntilFollowing()));
    print("all daemons follow the feed");
    return (await Promise.all(sites.map((site) => site.measure()))).flat();
  } finally {
    clearInterval(watching);
    await Promise.all(sites.map((site) => site.stop()));
  }
}

class Site {
  readonly #row: Row;
  readonly #folder: string;
  readonly #simulator: RemoteSimulator;
  readonly #simulatorProcess: ChildProcess;
  readonly #daemon: ChildProcess;
  readonly #address: string;

  private constructor(
    row: Row,
    folder: string,
    processes: readonly [simulator: ChildProcess, daemon: ChildProcess],
    remote: RemoteSimulator,
    address: string,
  ) {
    this.#row = row;
    this.#folder = folder;
    [this.#simulatorProcess, this.#daemon] = processes;
    this.#simulator = remote;
    this.#address = address;
  }

  static async start(row: Row): Promise<Site> {
    const program = buildProgram();
    const folder = mkdtempSync(join(tmpdir(), "mds-bench-outage-"));
    const cadence = String(row.cadenceSeconds);
    const simulator = spawn(process.execPath, [simulatorEntry, "--refresh-seconds", cadence], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    const remote = await RemoteSimulator.connect(simulator);
    writeFileSync(
      join(folder, "mds-sync.yaml"),
      `${settings}service: { refreshSeconds: ${row.cadenceSeconds} }\n`,
    );
    const daemon = spawn(process.execPath, [program, "run"], {
      cwd: folder,
      env: { ...remote.env, MDS_WAREHOUSE: join(folder, "mds.sqlite") },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const address = await readAddress(daemon).catch((error: unknown) => {
      simulator.kill("SIGTERM");
      throw error;
    });
    return new Site(row, folder, [simulator, daemon], remote, address);
  }

  /** Ticks of two periods are stored, and nothing else is under way. */
  async waitUntilFollowing(): Promise<void> {
    while (!(await this.#isFollowing()) || this.#storedPeriods().size < 2) await sleep(1_000);
    await sleep(5_000);
  }

  async measure(): Promise<Figure[]> {
    const { name, cadenceSeconds, seconds, faults, maxLostPeriods } = this.#row;
    const periodMs = cadenceSeconds * 1_000;
    const endOffset = Date.now() + seconds * 1_000 + END_BEFORE_PERIOD_MS;
    const startAt = Date.now() + 2 * periodMs - (endOffset % periodMs);
    await sleep(startAt - Date.now());
    const sentAt = Date.now();
    await this.#simulator.setFaults(...faults);
    const startedAt = (sentAt + Date.now()) / 2;
    const endAt = startedAt + seconds * 1_000;
    await sleep((seconds + TAIL_SECONDS) * 1_000 + periodMs);
    const title = `${name}, cadence ${cadenceSeconds} s`;
    const lost = {
      name: `${title}: periods lost`,
      ...this.#countLost(startedAt, endAt, Date.now() - 2 * periodMs),
      atMost: maxLostPeriods,
      digits: 0,
    };
    const requests = await this.#simulator.readRequests();
    const isBack = (isSocket: boolean) => {
      const first = requests.find(
        ({ target, status, at }) =>
          at >= endAt &&
          target.startsWith("/v3/stream") === isSocket &&
          !target.includes("/oauth/") &&
          status === (isSocket ? 101 : 200),
      );
      return ((first?.at ?? Number.NaN) - endAt) / 1_000;
    };
    return [
      { name: `${title}: socket up after`, measured: isBack(true), atMost: MAX_BACK_SECONDS, unit: "s" },
      { name: `${title}: first poll after`, measured: isBack(false), atMost: MAX_BACK_SECONDS, unit: "s" },
      lost,
    ];
  }

  /** Periods without a record, but for those in which the service was down from the beginning to the end. */
  #countLost(startedAt: number, endAt: number, until: number): Pick<Figure, "measured" | "note"> {
    const periodMs = this.#row.cadenceSeconds * 1_000;
    const stored = this.#storedPeriods();
    const lost: string[] = [];
    for (let period = Math.floor(startedAt / periodMs); (period + 1) * periodMs <= until; period++) {
      const [from, to] = [period * periodMs, (period + 1) * periodMs];
      const isDown = from >= startedAt && to <= endAt;
      const isStill = standstills.some((still) => from < still.to && to > still.from);
      if (!isDown && !isStill && !stored.has(period))
        lost.push(`${((period * periodMs - endAt) / 1_000).toFixed(0)} s`);
    }
    return { measured: lost.length, ...(lost.length > 0 ? { note: `at ${lost.join(", ")}` } : {}) };
  }

  #storedPeriods(): ReadonlySet<number> {
    const database = new Database(join(this.#folder, "mds.sqlite"), { readonly: true });
    try {
      const micros = this.#row.cadenceSeconds * 1_000_000;
      const sql = "SELECT DISTINCT ts / ? AS period FROM exchange_ticks";
      return new Set(database.prepare<[bigint], number>(sql).pluck().all(BigInt(micros)));
    } finally {
      database.close();
    }
  }

  async #isFollowing(): Promise<boolean> {
    const text = await (await fetch(new URL("/metrics", this.#address))).text();
    return /^mds_sync_feed_connected 1$/m.test(text);
  }

  async stop(): Promise<void> {
    for (const child of [this.#daemon, this.#simulatorProcess]) {
      if (child.exitCode !== null) continue;
      child.kill("SIGTERM");
      await once(child, "exit");
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
