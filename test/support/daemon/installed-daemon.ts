import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { expect, onTestFinished } from "vitest";
import { withReader } from "../../../src/warehouse/reader.ts";
import type { Fault } from "../../simulator/faults.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { programEntry } from "../build-program.ts";
import { compileCacheEnv } from "../program-process.ts";
import { expectWarehouseMatches, readCoveredUntil } from "../sync/oracle.ts";
import { serviceEnv } from "../sync/sync-session.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { timeLimit } from "../time-limit.ts";
import { expectSoundFile } from "../warehouse/expect-sound-ledger.ts";

interface StartOptions {
  /** A command that runs the program by `exec`, for example `["prlimit", "--nofile=64"]`. */
  readonly wrapper?: readonly string[];
  readonly nodeFlags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Takes its stderr; default: it is collected. */
  readonly stderr?: number;
}

export type DaemonProcess = ReturnType<typeof watchDaemon>;

interface InstallationOptions {
  readonly refreshSeconds?: number;
  readonly days?: number;
  readonly faults?: readonly Fault[];
  /** The settings of streams, in YAML, in place of the usual ones. */
  readonly streams?: Readonly<Record<string, string>>;
}

/** A simulator, a settings file and a warehouse, for daemons in processes of their own. */
export async function installDaemon({
  refreshSeconds = 1,
  days = 1,
  faults = [],
  streams = {},
}: InstallationOptions = {}) {
  const simulator = await startSimulator({ refreshSeconds, faults });
  onTestFinished(() => simulator.stop());
  const folder = temporaryFolder();
  const warehouse = join(folder, "mds.sqlite");
  onTestFinished(() => expectSoundFile(warehouse, Date.now()));
  const settingsFile = join(folder, "mds-sync.yaml");
  const sync = {
    ohlcv: "false",
    intraday: `{ GWA: [BTC], MWA: none, LX: none, days: ${days} }`,
    exchangeTickers: "{ exchanges: [Kraken], markets: all }",
    marketCap: "false",
    derivatives: "false",
    ...streams,
  };
  const lines = Object.entries(sync).map(([name, setting]) => `  ${name}: ${setting}\n`);
  writeFileSync(
    settingsFile,
    `service: { refreshSeconds: ${refreshSeconds} }\nsync:\n${lines.join("")}http: { port: 0 }\n`,
  );
  const env = { MDS_CONFIG: settingsFile, MDS_WAREHOUSE: warehouse, ...serviceEnv(simulator) };
  return {
    ...{ simulator, folder, warehouse },
    /** Of the program. */
    env,
    start({ wrapper = [], nodeFlags = [], stderr, ...more }: StartOptions = {}) {
      const program = [process.execPath, ...nodeFlags, programEntry, "run", "--no-progress"];
      const [command = "", ...args] = [...wrapper, ...program];
      return watchDaemon(
        spawn(command, args, {
          cwd: folder,
          env: { PATH: process.env.PATH ?? "", ...compileCacheEnv(), ...env, ...more.env },
          stdio: ["ignore", "ignore", stderr ?? "pipe"],
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
export function watchDaemon(child: ChildProcess) {
  onTestFinished(() => void child.kill("SIGKILL"));
  let stderr = "";
  (child.stderr as Readable | null)?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  /** Polls until `look` returns a value that is neither false, null nor undefined; throws if the daemon ends or the time runs out. */
  const waitFor = async <T>(what: string, look: () => T | Promise<T>) => {
    const deadline = performance.now() + timeLimit(60_000);
    for (;;) {
      const seen = await look();
      if (seen) return seen as Exclude<T, false | null | undefined>;
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
    /** The JSON lines of its log so far. */
    log: () =>
      stderr
        .split("\n")
        .filter((line) => line.startsWith("{") && line.endsWith("}"))
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    /** The address of its pages. */
    address: () => waitFor("the dashboard", () => /dashboard: ([^\s"]+)/.exec(stderr)?.[1]),
    async get(path: string) {
      const address = await this.address();
      const answer = await fetch(new URL(path, address), { headers: { connection: "close" } });
      return { status: answer.status, text: await answer.text() };
    },
    waitUntilFilled: () => waitFor("gaps filled", () => stderr.includes("filled: ")),
    waitFor,
    /** It stops cleanly, as soon as service managers expect. */
    async stop() {
      const stoppedAt = performance.now();
      child.kill("SIGTERM");
      expect(await ended).toEqual({ code: 0, signal: null });
      expect(performance.now() - stoppedAt).toBeLessThan(timeLimit(5_000));
      if (child.stderr?.readableEnded) expect(stderr).toMatch(/"msg":"stopped cleanly"\}\n$/);
    },
  };
}
