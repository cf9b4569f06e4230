import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { withReader } from "../../src/warehouse/reader.ts";
import type { Fault } from "../simulator/faults.ts";
import { startSimulator } from "../simulator/simulator.ts";
import { programEntry } from "../support/build-program.ts";
import { compileCacheEnv } from "../support/program-process.ts";
import { expectWarehouseMatches, readCoveredUntil } from "../support/sync/oracle.ts";
import { serviceEnv } from "../support/sync/sync-session.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { timeLimit } from "../support/time-limit.ts";
import { expectSoundFile } from "../support/warehouse/expect-sound-ledger.ts";

/** /proc counts CPU time in hundredths of a second on every Linux that Node supports. */
const TICKS_PER_SECOND = 100;

interface StartOptions {
  /** A command that runs the program by `exec`, for example `["prlimit", "--nofile=64"]`. */
  readonly wrapper?: readonly string[];
  readonly nodeFlags?: readonly string[];
}

interface LimitedDaemon {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  stderr(): string;
  /** The JSON lines of its log so far. */
  log(): Record<string, unknown>[];
  get(path: string): Promise<{ status: number; text: string }>;
  /** Resolves when all gaps are filled. */
  waitUntilFilled(): Promise<void>;
  /** Polls until `look` returns a value; throws if the daemon ends or the time runs out. */
  waitFor<T>(what: string, look: () => T | undefined | Promise<T | undefined>): Promise<T>;
}

interface InstallationOptions {
  readonly refreshSeconds?: number;
  readonly days?: number;
  readonly faults?: readonly Fault[];
}

/** A simulator, a settings file and a warehouse, for daemons with limited resources. */
export async function installLimited({
  refreshSeconds = 1,
  days = 1,
  faults = [],
}: InstallationOptions = {}) {
  const simulator = await startSimulator({ refreshSeconds, faults });
  onTestFinished(() => simulator.stop());
  const folder = temporaryFolder();
  const warehouse = join(folder, "mds.sqlite");
  onTestFinished(() => expectSoundFile(warehouse, Date.now()));
  const settingsFile = join(folder, "mds-sync.yaml");
  writeFileSync(
    settingsFile,
    `service: { refreshSeconds: ${refreshSeconds} }
sync:
  ohlcv: false
  intraday: { GWA: [BTC], MWA: none, LX: none, days: ${days} }
  exchangeTickers: { exchanges: [Kraken], markets: all }
  marketCap: false
  derivatives: false
http: { port: 0 }
`,
  );
  const env = { MDS_CONFIG: settingsFile, MDS_WAREHOUSE: warehouse, ...serviceEnv(simulator) };
  return {
    ...{ simulator, folder },
    /** Of the program. */
    env,
    start({ wrapper = [], nodeFlags = [] }: StartOptions = {}) {
      const program = [process.execPath, ...nodeFlags, programEntry, "run", "--no-progress"];
      const [command = "", ...args] = [...wrapper, ...program];
      return watchDaemon(
        spawn(command, args, {
          cwd: folder,
          env: { PATH: process.env.PATH ?? "", ...compileCacheEnv(), ...env },
          stdio: ["ignore", "ignore", "pipe"],
        }),
      );
    },
    query: (sql: string) => withReader(warehouse, (reader) => reader.rows<Record<string, unknown>>(sql)),
    /** Compares the index ticks with the service, up to where all series are covered. */
    expectMatchesService: () =>
      withReader(warehouse, (reader) =>
        expectWarehouseMatches(reader, simulator, Date.now(), readCoveredUntil(reader)),
      ),
  };
}

/** Collects the output of a daemon process, and kills it at the end of the test. */
export function watchDaemon(child: ChildProcess): LimitedDaemon {
  onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  const until: LimitedDaemon["waitFor"] = async (what, look) => {
    const deadline = performance.now() + timeLimit(60_000);
    for (;;) {
      const seen = await look();
      if (seen !== undefined) return seen;
      const hasEnded = child.exitCode !== null || child.signalCode !== null;
      if (hasEnded || performance.now() > deadline)
        throw new Error(`${hasEnded ? "the daemon ended" : "time ran out"} before: ${what}\n${stderr}`);
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
      const address = await until("the dashboard", () => /dashboard: ([^\s"]+)/.exec(stderr)?.[1]);
      const answer = await fetch(new URL(path, address), { headers: { connection: "close" } });
      return { status: answer.status, text: await answer.text() };
    },
    waitUntilFilled: () =>
      until("gaps filled", () => (stderr.includes("filled: ") ? true : undefined)).then(() => {}),
    waitFor: until,
  };
}

/** CPU time of all threads since the start. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user = "", system = ""] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11);
  return (Number(user) + Number(system)) / TICKS_PER_SECOND;
}

/** Peak resident memory. */
export function peakMegabytes(pid: number): number {
  const kib = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}

/** The number that the next opened file descriptor gets. */
export function nextDescriptor(pid: number): number {
  const taken = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let next = 0;
  while (taken.has(next)) next++;
  return next;
}

/** Changes the soft limit of a running process as user `uid`. The hard limit stays, so that it can be raised again. */
export function setLimit(pid: number, name: "as" | "nofile" | "nproc", value: number, uid?: number): void {
  const user = uid === undefined ? {} : { uid, gid: uid };
  const { status, stderr } = spawnSync("prlimit", ["--pid", String(pid), `--${name}=${value}:`], user);
  if (status !== 0) throw new Error(String(stderr));
}
