import type { ChildProcess } from "node:child_process";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import type { FaultCall } from "./faults.ts";
import type { LoggedRequest } from "./traffic-log.ts";

/** Run it with `node` and, perhaps, `--refresh-seconds`. */
export const simulatorEntry = resolve(import.meta.dirname, "simulator-process.ts");

/** The environment variables that `mds-sync simulate` prints for its clients. */
export async function readClientSettings(stdout: NodeJS.ReadableStream): Promise<Record<string, string>> {
  const env: Record<string, string> = {};
  for await (const line of createInterface({ input: stdout })) {
    const [, name = "", value = ""] = /^([A-Z_]+)=(.*)$/.exec(line) ?? [];
    env[name] = value;
    if (name === "MDS_CLIENT_SECRET") break;
  }
  return env;
}

/** The controls of a simulator in a process of its own. */
export class RemoteSimulator {
  /** The environment of its clients. */
  readonly env: Readonly<Record<string, string>>;
  readonly #controls: string;

  private constructor({ SIMULATOR_CONTROLS = "", ...env }: Record<string, string>) {
    this.#controls = SIMULATOR_CONTROLS;
    this.env = env;
  }

  /** `child`: a process of `simulatorEntry` with a piped stdout. */
  static async connect({ stdout }: ChildProcess): Promise<RemoteSimulator> {
    if (!stdout) throw new Error("the simulator has no stdout");
    return new RemoteSimulator(await readClientSettings(stdout));
  }

  async setFaults(...faults: readonly FaultCall[]): Promise<void> {
    await this.#control("faults", { method: "POST", body: JSON.stringify(faults) });
  }

  async readRequests(): Promise<readonly LoggedRequest[]> {
    return (await this.#control("requests")) as LoggedRequest[];
  }

  async #control(path: string, init?: RequestInit): Promise<unknown> {
    const answer = await fetch(`${this.#controls}/${path}`, init);
    return answer.json();
  }
}
