import { execFileSync } from "node:child_process";
import { availableParallelism, loadavg } from "node:os";

/** How many times slower this machine is than two quiet cores. Measured once a run; the test processes inherit it. */
const SLOWNESS_VARIABLE = "MDS_TEST_SLOWNESS";
/** What the calibration takes on two quiet cores: two starts of Node and a loop. */
const QUIET_CALIBRATION_MS = 500;

/** A limit of wall-clock time, given for a quiet machine: longer where the machine is slower or busier. */
export function timeLimit(quietMs: number): number {
  return Math.ceil(quietMs * readSlowness());
}

/** Runs before the test processes start. A value that is set already stays, so that a run can be repeated. */
export function calibrate(): string {
  process.env[SLOWNESS_VARIABLE] ??= measureSlowness().toFixed(1);
  return process.env[SLOWNESS_VARIABLE];
}

function measureSlowness(): number {
  const start = performance.now();
  for (let run = 0; run < 2; run++)
    execFileSync(process.execPath, ["-e", "let sum = 0; for (let i = 0; i < 5e7; i++) sum += i % 7;"]);
  return Math.max(1, (performance.now() - start) / QUIET_CALIBRATION_MS);
}

/** The load may have risen since the start of the run. */
function readSlowness(): number {
  const [load = 0] = loadavg();
  return Math.max(Number(process.env[SLOWNESS_VARIABLE] ?? 1), load / availableParallelism());
}
