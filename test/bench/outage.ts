import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import type { FaultCall } from "../simulator/faults.ts";
import { RemoteSimulator, simulatorEntry } from "../simulator/remote-simulator.ts";
import type { LoggedRequest } from "../simulator/traffic-log.ts";
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
  /** REST answers all the time, within limits: how old the newest record of an index may become at most. */
  readonly maxHeadAgeSeconds?: number;
  /** The socket alone fails: how long it may wait at most. */
  readonly maxSocketWaitSeconds?: number;
}

/** The websocket is refused, so that everything is polled. */
const withoutFeed = (seconds: number): FaultCall[] => [
  ["upgradeStatus", 503, { to: seconds * 1_000 }],
  ["dropConnection", { when: "tick", to: seconds * 1_000 }],
];
const LIMIT_SECONDS = 120;

/** `--full`: the long outage lasts five minutes. */
const LONG_SECONDS = process.argv.includes("--full") ? 300 : 150;
const askForPause = (seconds: number) => ({ retryAfter: "seconds", wait: seconds * 1_000 }) as const;
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
  {
    ...{ name: "socket dropped every 10 s, twelve times", seconds: 0, maxSocketWaitSeconds: 5 },
    faults: [
      ["dropConnection", { when: "tick", total: 1 }],
      ["dropConnection", { when: "accept", in: 10_000, total: 12 }],
    ],
  },
  {
    ...{ name: "/derivatives alone answers 429 with Retry-After: 30", seconds: LIMIT_SECONDS },
    faults: [
      ...withoutFeed(LIMIT_SECONDS),
      ["status", 429, { on: "/derivatives/*", ...askForPause(30), to: LIMIT_SECONDS * 1_000 }],
    ],
    maxHeadAgeSeconds: 20,
  },
  {
    ...{ name: "one 429 with Retry-After: 86400", seconds: LIMIT_SECONDS, maxHeadAgeSeconds: 20 },
    faults: [
      ...withoutFeed(LIMIT_SECONDS),
      ["status", 429, { on: "/market-cap", total: 1, ...askForPause(86_400) }],
    ],
  },
  {
    ...{ name: "429 for 3 of every 10 s", seconds: LIMIT_SECONDS, maxLostPeriods: 1, maxHeadAgeSeconds: 20 },
    faults: [
      ...withoutFeed(LIMIT_SECONDS),
      ...Array.from({ length: LIMIT_SECONDS / 10 }, (_, at): FaultCall => {
        return ["status", 429, { on: "*", from: at * 10_000, to: at * 10_000 + 3_000 }];
      }),
    ],
  },
  {
    ...{ name: "one 403 on the upgrade", seconds: 0, maxSocketWaitSeconds: 5 },
    faults: [
      ["dropConnection", { when: "tick", total: 1 }],
      ["upgradeStatus", 403, { total: 1 }],
    ],
  },
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
const DROPS_SECONDS = 150;
const MAX_BACK_SECONDS = 3;
const MAX_FIRST_MINUTE_REQUESTS = 30;

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
    while ((await this.#readMetrics("feed_connected")) < 1 || this.#storedPeriods().size < 2)
      await sleep(1_000);
    await sleep(5_000);
  }

  async measure(): Promise<Figure[]> {
    const { name, cadenceSeconds, seconds, faults, maxLostPeriods } = this.#row;
    const { maxHeadAgeSeconds, maxSocketWaitSeconds } = this.#row;
    const periodMs = cadenceSeconds * 1_000;
    const endOffset = Date.now() + seconds * 1_000 + END_BEFORE_PERIOD_MS;
    const startAt = Date.now() + 2 * periodMs - (endOffset % periodMs);
    await sleep(startAt - Date.now());
    const before = await this.#countFailed();
    const sentAt = Date.now();
    await this.#simulator.setFaults(...faults);
    const startedAt = (sentAt + Date.now()) / 2;
    const endAt = startedAt + seconds * 1_000;
    await sleep(Math.min(60, seconds) * 1_000);
    const firstMinute = (await this.#countFailed()) - before;
    const rest = maxSocketWaitSeconds === undefined ? seconds - Math.min(60, seconds) : DROPS_SECONDS;
    await sleep((rest + TAIL_SECONDS) * 1_000 + periodMs);
    const title = `${name}, cadence ${cadenceSeconds} s`;
    const lost = {
      name: `${title}: periods lost`,
      ...this.#countLost(startedAt, maxHeadAgeSeconds ? startedAt : endAt, Date.now() - 2 * periodMs),
      atMost: maxLostPeriods,
      digits: 0,
    };
    const requests = await this.#simulator.readRequests();
    const upgrades = requests.filter(({ target, at }) => target.startsWith("/v3/stream") && at >= startedAt);
    if (maxHeadAgeSeconds !== undefined) {
      const measured = longestSilence(requests, startedAt, endAt) / 1_000;
      return [
        { name: `${title}: oldest head of an index`, measured, atMost: maxHeadAgeSeconds, unit: "s" },
        lost,
      ];
    }
    if (maxSocketWaitSeconds !== undefined) {
      const connectedMs = name.includes("dropped") ? 10_000 : 0;
      const waitMs = longestWait(upgrades, startedAt + END_BEFORE_PERIOD_MS, connectedMs);
      const wait = { measured: waitMs / 1_000, atMost: maxSocketWaitSeconds, unit: "s" };
      const note = `${upgrades.length} connections`;
      return [{ name: `${title}: longest wait of the socket`, note, ...wait }, lost];
    }
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
      {
        name: `${title}: requests in its first ${Math.min(60, seconds)} s`,
        measured: firstMinute,
        atMost: MAX_FIRST_MINUTE_REQUESTS,
        digits: 0,
      },
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

  /** Requests, token requests and connections without success, whether or not anybody received them. */
  async #countFailed(): Promise<number> {
    return (
      (await this.#readMetrics("requests_total", 'outcome="ok"')) +
      (await this.#readMetrics('feed_events_total{event="attempt"'))
    );
  }

  /** `but`: which lines do not count. */
  async #readMetrics(prefix: string, but?: string): Promise<number> {
    const text = await (await fetch(new URL("/metrics", this.#address))).text();
    const lines = text.split("\n").filter((line) => line.startsWith(`mds_sync_${prefix}`));
    const counted = lines.filter((line) => but === undefined || !line.includes(but));
    return counted.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
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

/** `droppedAt`: the first tick, with which the first connection ends. `connectedMs`: how long the others last. */
function longestWait(upgrades: readonly LoggedRequest[], droppedAt: number, connectedMs: number): number {
  let longest = 0;
  let freeAt = droppedAt;
  for (const { at, status } of upgrades) {
    longest = Math.max(longest, at - freeAt);
    freeAt = at + (status === 101 ? connectedMs : 0);
  }
  return longest;
}

/** The longest time in which no page of an index was answered. */
function longestSilence(requests: readonly LoggedRequest[], from: number, to: number): number {
  const isHead = ({ target, status, at }: LoggedRequest) =>
    target.startsWith("/v3/index-ticker") && status === 200 && at >= from && at <= to;
  const byIndex = Map.groupBy(requests.filter(isHead), ({ target }) => /indexId=[^&]+/.exec(target)?.[0]);
  const times = [...byIndex.values()].map((each) => [from, ...each.map(({ at }) => at), to]);
  const silences = times.flatMap((each) => each.map((at, i) => at - (each[i - 1] ?? at)));
  return times.length === 0 ? to - from : Math.max(...silences);
}
