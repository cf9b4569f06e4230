import { readFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import os from "node:os";

/*
 * Loaded before the program (`node --import`) in every process of a scenario. It speeds up all clocks by the same factor
 * from the same start, so that the program runs unchanged, with real cadences and timeouts. SIGUSR2 steps the wall clock
 * of one process, as an operator or a time daemon would.
 */
export interface ClockPace {
  /** Speed relative to the real clock. */
  readonly factor: number;
  /** Real start time, milliseconds since 1970. */
  readonly since: number;
  /** Scenario time at the start. It lies in the past, so that it never overtakes SQLite's clock, which stays real. */
  readonly from: number;
  /** File with the milliseconds by which SIGUSR2 steps the wall clock. */
  readonly stepFile: string;
}

export function acceleratedNow({ factor, since, from }: ClockPace, realNow: number): number {
  return Math.floor(from + (realNow - since) * factor);
}

function accelerateClocks(pace: ClockPace): void {
  const { factor, stepFile } = pace;
  const real = {
    now: Date.now,
    monotonic: performance.now.bind(performance),
    uptime: os.uptime,
    setTimeout: globalThis.setTimeout,
    setInterval: globalThis.setInterval,
  };
  let stepMs = 0;
  Date.now = () => acceleratedNow(pace, real.now()) + stepMs;
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

if (process.env.MDS_TEST_PACE !== undefined)
  accelerateClocks(JSON.parse(process.env.MDS_TEST_PACE) as ClockPace);
