import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { defaultQuirks } from "../../src/simulator/market/quirks.ts";
import { createWorld } from "../../src/simulator/world.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { buildProgram } from "../bench/built-program.ts";
import { findIndexDifference } from "../scenario/daemon-oracle.ts";
import type { FaultCall } from "../simulator/faults.ts";
import { Oracle } from "../simulator/oracle.ts";
import { RemoteSimulator, simulatorEntry } from "../simulator/remote-simulator.ts";

const entry = buildProgram();
const preload = resolve(import.meta.dirname, "vitals.mjs");
/** A sixth of the real cadence, so that the backfill of 200 days never finishes during a soak. */
const CADENCE_SECONDS = 5;
const settings = `service: { refreshSeconds: ${CADENCE_SECONDS} }
sync:
  ohlcv: false
  intraday: { GWA: all, MWA: all, LX: all, days: 200 }
  exchangeTickers: { exchanges: all, markets: all }
http: { port: 0 }
`;

/** What the daemon's process reports once a second; see vitals.mjs. */
export interface Vitals {
  readonly rss: number;
  /** The longest stall of the main thread's event loop in that second, milliseconds. */
  readonly stallMs: number;
}

/** The memory settings of the systemd unit, so that the soak measures the daemon as it is installed. */
function installedEnvironment(): Record<string, string> {
  const unit = readFileSync(resolve(import.meta.dirname, "../../config/mds-sync.service"), "utf8");
  const lines = unit.split("\n").filter((line) => line.startsWith("Environment="));
  const pairs = lines.flatMap((line) => [...line.matchAll(/(MALLOC_\w+|NODE_OPTIONS)=(\S+)/g)]);
  return Object.fromEntries(pairs.map(([, name, value]) => [name, value]));
}

/** A simulator and a daemon, each in its own process. */
export class Soak {
  readonly path: string;
  readonly vitalsFile: string;
  readonly oracle = new Oracle(
    createWorld({ seed: 1, size: "demo", tickMs: CADENCE_SECONDS * 1000, quirks: defaultQuirks }),
  );
  /** When the live feed was subscribed, milliseconds since 1970. */
  startedAt = 0;
  readonly #folder: string;
  #simulator: RemoteSimulator | undefined;
  readonly #children: ChildProcess[] = [];
  #daemon: ChildProcess | undefined;
  #stderr = "";

  constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, "mds.sqlite");
    this.vitalsFile = join(folder, "vitals");
    writeFileSync(join(folder, "mds-sync.yaml"), settings);
  }

  async start(fault: FaultCall): Promise<void> {
    const args = [simulatorEntry, "--refresh-seconds", String(CADENCE_SECONDS)];
    this.#simulator = await RemoteSimulator.connect(this.#spawn(args, "pipe", "inherit"));
    await this.#simulator.setFaults(fault);
    const daemon = this.#spawn(["--import", preload, entry, "run", "--no-progress"], "ignore", "pipe");
    this.#daemon = daemon;
    daemon.stderr?.on("data", (chunk) => {
      this.#stderr = (this.#stderr + String(chunk)).slice(-20_000);
    });
    while (!this.#stderr.includes("live feed connected")) {
      this.assertAlive();
      await this.wait(0.1);
    }
    await this.wait(3);
    this.startedAt = Date.now();
  }

  wait(seconds: number): Promise<void> {
    return new Promise((wake) => setTimeout(wake, seconds * 1000));
  }

  assertAlive(): void {
    if (this.#daemon?.exitCode != null || this.#daemon?.signalCode != null)
      throw new Error(`the daemon exited:\n${this.#stderr}`);
  }

  get simulator(): RemoteSimulator {
    if (!this.#simulator) throw new Error("the simulator was not started");
    return this.#simulator;
  }

  /** Waits until the live head equals the service's records. Returns the elapsed milliseconds; throws after `withinMs`. */
  async waitForHead(withinMs: number): Promise<number> {
    const startedAt = Date.now();
    for (;;) {
      const reader = openReader(this.path);
      const difference = findIndexDifference(reader, this.oracle, this.startedAt, startedAt);
      reader.close();
      if (difference === undefined) return Date.now() - startedAt;
      if (Date.now() - startedAt > withinMs)
        throw new Error(`the live head is still incomplete: ${difference}\n${this.#stderr}`);
      await this.wait(1);
    }
  }

  async stop(): Promise<number | null> {
    if (!this.#daemon) throw new Error("the daemon was not started");
    const ended = once(this.#daemon, "exit");
    this.#daemon.kill("SIGTERM");
    const [code] = await ended;
    return code as number | null;
  }

  kill(): void {
    for (const child of this.#children) child.kill("SIGKILL");
  }

  #spawn(args: readonly string[], stdout: "pipe" | "ignore", stderr: "pipe" | "inherit"): ChildProcess {
    const child = spawn(process.execPath, args, {
      cwd: this.#folder,
      stdio: ["ignore", stdout, stderr],
      env: {
        PATH: process.env.PATH ?? "",
        ...installedEnvironment(),
        MDS_WAREHOUSE: this.path,
        MDS_SOAK_VITALS: this.vitalsFile,
        ...this.#simulator?.env,
      },
    });
    this.#children.push(child);
    return child;
  }
}
