import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { usualQuirks } from "../../src/simulator/market/quirks.ts";
import { makeWorld, type World } from "../../src/simulator/world.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";
import { type Pace, pacedNow } from "./accelerated-clock.ts";

const entry = resolve(import.meta.dirname, "../../src/cli/main.ts");
const preload = resolve(import.meta.dirname, "accelerated-clock.ts");
const BEHIND_MS = 12 * 3_600_000;

export interface Daemon {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  stderr(): string;
}

/** A simulator and a daemon, each in a process of its own, on clocks that run `factor` times as fast as ours. */
export class Scene {
  readonly folder = mkdtempSync(join(tmpdir(), "mds-sync-scene-"));
  readonly path = join(this.folder, "mds.sqlite");
  /** What the simulator serves, without asking it: a function of its seed alone. */
  readonly world: World;
  readonly #pace: Pace;
  readonly #children = new Set<ChildProcess>();
  #service: Record<string, string> = {};
  #simulator: ChildProcess | undefined;

  constructor({ factor, refreshSeconds = 30 }: { factor: number; refreshSeconds?: number }) {
    const since = Date.now();
    this.#pace = { factor, since, from: since - BEHIND_MS, stepFile: join(this.folder, "step") };
    this.world = makeWorld({
      seed: 1,
      size: "demo",
      tickMs: refreshSeconds * 1000,
      quirks: usualQuirks,
      cacheBytes: 2 ** 20,
    });
  }

  /** The scene's present, milliseconds since 1970. */
  now(): number {
    return pacedNow(this.#pace, Date.now());
  }

  /** Lets so much of the scene's time go by. */
  pass(seconds: number): Promise<void> {
    return new Promise((wake) => setTimeout(wake, (seconds * 1000) / this.#pace.factor));
  }

  async openService(): Promise<void> {
    const child = this.#spawn(["simulate"], ["ignore", "pipe", "inherit"]);
    this.#simulator = child;
    if (!child.stdout) throw new Error("the simulator has no stdout");
    for await (const line of createInterface({ input: child.stdout })) {
      const [name = "", ...value] = line.split("=");
      this.#service[name] = value.join("=");
      if (name === "MDS_CLIENT_SECRET") return;
    }
  }

  get service(): ChildProcess {
    if (!this.#simulator) throw new Error("the service is not open");
    return this.#simulator;
  }

  writeSettings(yaml: string): void {
    writeFileSync(join(this.folder, "mds-sync.yaml"), yaml);
  }

  startDaemon(): Daemon {
    const child = this.#spawn(["run", "--no-progress"], ["ignore", "ignore", "pipe"]);
    let stderr = "";
    child.stderr?.on("data", (chunk) => {
      stderr += String(chunk);
    });
    const ended = once(child, "exit").then(([code]) => code as number | null);
    return { child, ended, stderr: () => stderr };
  }

  /** Steps the daemon's wall clock, in all by so much since its start. */
  stepWall({ child }: Daemon, ms: number): void {
    writeFileSync(this.#pace.stepFile, String(ms));
    child.kill("SIGUSR2");
  }

  async control(method: "GET" | "POST", path: string, body?: string): Promise<unknown> {
    const url = `${this.#service.MDS_BASE_URL}/simulator/${path}`;
    const answer = await fetch(url, { method, ...(body === undefined ? {} : { body }) });
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
    return answer.json();
  }

  /** How often a websocket has been opened. */
  async connections(): Promise<number> {
    const { list } = (await this.control("GET", "requests")) as {
      list: { target: string; status: number }[];
    };
    return list.filter(({ target, status }) => target.startsWith("/v3/stream") && status === 101).length;
  }

  read<T>(work: (reader: Connection) => T): T {
    const reader = openReader(this.path);
    try {
      return work(reader);
    } finally {
      reader.close();
    }
  }

  /** Looks again and again until there is something to see; after so long of the scene's time, says what is missing. */
  async until<T>(
    what: string,
    look: () => T | undefined | Promise<T | undefined>,
    withinSeconds = 3_600,
  ): Promise<T> {
    const deadline = this.now() + withinSeconds * 1000;
    for (;;) {
      const seen = await look();
      if (seen !== undefined) return seen;
      if (this.now() > deadline) throw new Error(`${withinSeconds} s went by without this: ${what}`);
      await new Promise((later) => setTimeout(later, 50));
    }
  }

  async close(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  #spawn(args: readonly string[], stdio: ("ignore" | "pipe" | "inherit")[]): ChildProcess {
    const child = spawn(process.execPath, ["--import", preload, entry, ...args], {
      cwd: this.folder,
      stdio,
      env: {
        PATH: process.env.PATH ?? "",
        MDS_TEST_PACE: JSON.stringify(this.#pace),
        MDS_WAREHOUSE: this.path,
        ...this.#service,
      },
    });
    this.#children.add(child);
    return child;
  }
}
