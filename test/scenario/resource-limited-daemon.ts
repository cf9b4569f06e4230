import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { onTestFinished } from "vitest";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";
import { type Agreement, expectTruth } from "../support/sync/oracle.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

export const entry = resolve(import.meta.dirname, "../../src/cli/main.ts");

/** Hundredths of a second: what /proc counts in, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** A service, a settings file and a warehouse, for daemons that lack something. */
export interface Place {
  readonly simulator: Simulator;
  readonly folder: string;
  readonly warehouse: string;
  readonly settingsFile: string;
  /** All that the program needs to be told. */
  readonly env: Readonly<Record<string, string>>;
  start(options?: StartOptions): ScarceDaemon;
  read<T>(work: (reader: Connection) => T): T;
  query(sql: string): Record<string, unknown>[];
  /** Holds the index ticks against the service, as of what is confirmed of all of them. */
  expectTruth(): Agreement;
}

export interface StartOptions {
  /** What runs the program in its place, by `exec`: `["prlimit", "--nofile=64"]`. */
  readonly under?: readonly string[];
  readonly nodeFlags?: readonly string[];
}

export interface ScarceDaemon {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  stderr(): string;
  /** The lines of its log so far, as far as they are JSON. */
  log(): Record<string, unknown>[];
  get(path: string): Promise<{ status: number; text: string }>;
  /** What was missing at the start is filled. */
  filled(): Promise<void>;
  /** Looks again and again until there is something to see; says what it waited for when the daemon ends or time runs out. */
  until<T>(what: string, look: () => T | undefined | Promise<T | undefined>): Promise<T>;
}

const WAIT_AT_MOST_MS = 60_000;

export async function findPlace({
  refreshSeconds = 1,
  assets = "BTC",
  days = 1,
  faults = "",
}: {
  refreshSeconds?: number;
  assets?: string;
  days?: number;
  faults?: string;
} = {}): Promise<Place> {
  const simulator = await startSimulator({ refreshSeconds, faults });
  onTestFinished(() => simulator.stop());
  const folder = temporaryFolder();
  const warehouse = join(folder, "mds.sqlite");
  const settingsFile = join(folder, "mds-sync.yaml");
  writeFileSync(
    settingsFile,
    `service: { refreshSeconds: ${refreshSeconds} }
sync:
  ohlcv: false
  intraday: { GWA: [${assets}], MWA: none, LX: none, days: ${days} }
  exchangeTickers: { exchanges: [Kraken], markets: all }
  marketCap: false
  derivatives: false
http: { port: 0 }
`,
  );
  const env = {
    MDS_CONFIG: settingsFile,
    MDS_WAREHOUSE: warehouse,
    MDS_BASE_URL: simulator.baseUrl,
    MDS_WS_URL: simulator.wsUrl,
    MDS_CLIENT_ID: simulator.clientId,
    MDS_CLIENT_SECRET: simulator.clientSecret,
  };
  const read = <T>(work: (reader: Connection) => T): T => {
    const reader = openReader(warehouse);
    try {
      return work(reader);
    } finally {
      reader.close();
    }
  };
  return {
    simulator,
    folder,
    warehouse,
    settingsFile,
    env,
    read,
    start({ under = [], nodeFlags = [] } = {}) {
      const [command = "", ...args] = [
        ...under,
        process.execPath,
        ...nodeFlags,
        entry,
        "run",
        "--no-progress",
      ];
      return watch(
        spawn(command, args, {
          cwd: folder,
          env: { PATH: process.env.PATH ?? "", ...env },
          stdio: ["ignore", "ignore", "pipe"],
        }),
      );
    },
    query: (sql) => read(({ database }) => database.prepare(sql).all() as Record<string, unknown>[]),
    expectTruth: () =>
      read((reader) => {
        const confirmed = reader.database
          .prepare(
            `SELECT min(reached) FROM (SELECT max(s.to_ts) + w.settle_delay AS reached FROM settled_ranges s
              JOIN wanted_ranges w ON w.stream = s.stream AND w.series = s.series
              WHERE s.stream = 'index_ticks' GROUP BY s.series)`,
          )
          .pluck()
          .get();
        return expectTruth(reader, simulator, Date.now(), Number(confirmed));
      }),
  };
}

/** Looks after a daemon that was started one way or another. */
export function watch(child: ChildProcess): ScarceDaemon {
  onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  const until: ScarceDaemon["until"] = async (what, look) => {
    const deadline = performance.now() + WAIT_AT_MOST_MS;
    for (;;) {
      const seen = await look();
      if (seen !== undefined) return seen;
      const hasEnded = child.exitCode !== null || child.signalCode !== null;
      if (hasEnded || performance.now() > deadline)
        throw new Error(`${hasEnded ? "the daemon ended" : "time ran out"} without this: ${what}\n${stderr}`);
      await new Promise((later) => setTimeout(later, 50));
    }
  };
  return {
    child,
    pid: child.pid ?? 0,
    ended,
    stderr: () => stderr,
    log: () =>
      stderr
        .split("\n")
        .filter((line) => line.startsWith("{") && line.endsWith("}"))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    async get(path) {
      const address = await until("the dashboard", () => /dashboard: (\S+)/.exec(stderr)?.[1]);
      const answer = await fetch(new URL(path, address), { headers: { connection: "close" } });
      return { status: answer.status, text: await answer.text() };
    },
    filled: () =>
      until("what was missing is filled", () => (stderr.includes("filled: ") ? true : undefined)).then(
        () => {},
      ),
    until,
  };
}

/** Of all its threads, since its start. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user = "", system = ""] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11);
  return (Number(user) + Number(system)) / TICKS_PER_SECOND;
}

/** The most memory that it has held. */
export function peakMegabytes(pid: number): number {
  const kib = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}

/** The lowest number that its next descriptor can have. */
export function nextDescriptor(pid: number): number {
  const taken = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let next = 0;
  while (taken.has(next)) next++;
  return next;
}

/** Changes the soft limit of a process that runs; the hard one stays, so that it can be raised again. `as`: its own user. */
export function limit(pid: number, name: "as" | "nofile" | "nproc", value: number, as?: number): void {
  const user = as === undefined ? {} : { uid: as, gid: as };
  const { status, stderr } = spawnSync("prlimit", ["--pid", String(pid), `--${name}=${value}:`], user);
  if (status !== 0) throw new Error(String(stderr));
}
