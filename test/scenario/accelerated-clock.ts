import { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";

/*
 * Loaded before the program (`node --import`), in every process of a scenario: all their clocks run faster by the same
 * factor since the same moment, so that the service's real cadence and every real deadline fit into a test. Nothing in
 * the program knows. SIGUSR2 steps the wall clock of this process alone, as an operator or a time daemon does.
 */
export interface Pace {
  /** So many times as fast as the real clock. */
  readonly factor: number;
  /** The real moment, milliseconds since 1970, at which it all began. */
  readonly since: number;
  /** The scenario's moment at that time. In the past: what SQLite takes for the present must not lie before it. */
  readonly from: number;
  /** How far to step the wall clock on SIGUSR2: a file with milliseconds in it. */
  readonly stepFile: string;
}

export function pacedNow({ factor, since, from }: Pace, realNow: number): number {
  return Math.floor(from + (realNow - since) * factor);
}

function run(pace: Pace): void {
  const { factor, stepFile } = pace;
  const real = {
    now: Date.now,
    monotonic: performance.now.bind(performance),
    uptime: os.uptime,
    setTimeout: globalThis.setTimeout,
    setInterval: globalThis.setInterval,
  };
  let stepMs = 0;
  Date.now = () => pacedNow(pace, real.now()) + stepMs;
  performance.now = () => real.monotonic() * factor;
  os.uptime = () => real.uptime() * factor;
  syncBuiltinESMExports();
  type Timer = (callback: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => NodeJS.Timeout;
  const paced = (timer: Timer): Timer => {
    return (callback, ms = 0, ...args) => timer(callback, ms / factor, ...args);
  };
  Object.assign(globalThis, { setTimeout: paced(real.setTimeout), setInterval: paced(real.setInterval) });
  process.on("SIGUSR2", () => {
    stepMs = Number(readFileSync(stepFile, "utf8"));
  });
}

if (process.env.MDS_TEST_PACE !== undefined) run(JSON.parse(process.env.MDS_TEST_PACE) as Pace);
