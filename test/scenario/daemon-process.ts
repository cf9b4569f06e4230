import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { withReader } from "../../src/warehouse/reader.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";
import { Oracle } from "../simulator/oracle.ts";
import { defaultQuirks } from "../simulator/quirks.ts";
import { createQuirkyWorld } from "../simulator/quirky-world.ts";
import { RemoteSimulator, simulatorEntry } from "../simulator/remote-simulator.ts";
import { programEntry } from "../support/build-program.ts";
import { compileCacheEnv } from "../support/program-process.ts";
import { timeLimit } from "../support/time-limit.ts";
import { expectSoundFile } from "../support/warehouse/expect-sound-ledger.ts";
import { acceleratedNow, type ClockPace } from "./accelerated-clock.ts";

const preload = resolve(import.meta.dirname, "accelerated-clock.ts");
const DAY_MS = 86_400_000;

export interface DaemonProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  stderr(): string;
}

/** What the service serves, which depends on the seed alone. */
function createData() {
  const world = createQuirkyWorld({ seed: 1, size: "demo", tickMs: 30_000 }, defaultQuirks);
  return { universe: world.universe, oracle: new Oracle(world) };
}

/** A simulator and a daemon, each in its own process, on clocks that run `factor` times as fast as real time. */
export class AcceleratedScene {
  readonly folder = mkdtempSync(join(tmpdir(), "mds-sync-scene-"));
  readonly path = join(this.folder, "mds.sqlite");
  readonly data = createData();
  readonly #clockPace: ClockPace;
  readonly #children = new Set<ChildProcess>();
  #serviceEnv: Readonly<Record<string, string>> = {};
  #service: ChildProcess | undefined;

  constructor({ factor }: { factor: number }) {
    const since = Date.now();
    // Yesterday at noon: no scene meets a midnight, whose jobs come minutes later, at some hours of the day only.
    const from = Math.floor(since / DAY_MS) * DAY_MS - DAY_MS / 2;
    this.#clockPace = { factor, since, from, stepFile: join(this.folder, "step") };
  }

  /** Scenario time, milliseconds since 1970. */
  now(): number {
    return acceleratedNow(this.#clockPace, Date.now());
  }

  /** Waits for this much scenario time. */
  advance(seconds: number): Promise<void> {
    return new Promise((wake) => setTimeout(wake, (seconds * 1000) / this.#clockPace.factor));
  }

  async startService(): Promise<void> {
    this.#service = this.#spawn([simulatorEntry], ["ignore", "pipe", "inherit"]);
    this.#serviceEnv = (await RemoteSimulator.connect(this.#service)).env;
  }

  signalService(signal: NodeJS.Signals): void {
    this.#service?.kill(signal);
  }

  writeSettings(yaml: string): void {
    writeFileSync(join(this.folder, "mds-sync.yaml"), yaml);
  }

  startDaemon(): DaemonProcess {
    const child = this.#spawn([programEntry, "run", "--no-progress"], ["ignore", "ignore", "pipe"]);
    let stderr = "";
    child.stderr?.on("data", (chunk) => {
      stderr += String(chunk);
    });
    const ended = once(child, "close").then(([code]) => code as number | null);
    return { child, ended, stderr: () => stderr };
  }

  /** Sets the total step of the daemon's wall clock since its start. */
  stepWallClock({ child }: DaemonProcess, ms: number): void {
    writeFileSync(this.#clockPace.stepFile, String(ms));
    child.kill("SIGUSR2");
  }

  withReader<T>(work: (reader: Connection) => T): T {
    return withReader(this.path, work);
  }

  /** Polls until `look` returns a value; throws after `withinSeconds` of scenario time on a quiet machine. */
  async waitFor<T>(
    what: string,
    look: () => T | undefined | Promise<T | undefined>,
    withinSeconds = 3_600,
  ): Promise<T> {
    const deadline = this.now() + timeLimit(withinSeconds * 1000);
    for (;;) {
      const seen = await look();
      if (seen !== undefined) return seen;
      if (this.now() > deadline) throw new Error(`not within ${withinSeconds} s: ${what}`);
      await new Promise((later) => setTimeout(later, 50));
    }
  }

  async close(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    try {
      expectSoundFile(this.path, this.now());
    } finally {
      rmSync(this.folder, { recursive: true, force: true });
    }
  }

  #spawn(args: readonly string[], stdio: ("ignore" | "pipe" | "inherit")[]): ChildProcess {
    const child = spawn(process.execPath, ["--import", preload, ...args], {
      cwd: this.folder,
      stdio,
      env: {
        PATH: process.env.PATH ?? "",
        ...compileCacheEnv(),
        MDS_TEST_PACE: JSON.stringify(this.#clockPace),
        MDS_WAREHOUSE: this.path,
        ...this.#serviceEnv,
      },
    });
    this.#children.add(child);
    return child;
  }
}
