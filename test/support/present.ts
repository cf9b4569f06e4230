import { MICROS_PER_SECOND, type Micros, startOfDay } from "../../src/model/time.ts";
import { timeLimit } from "./time-limit.ts";

const DAY_MS = 86_400_000;
/** What almost every test file takes at most on a quiet machine. */
const MAX_FILE_MS = 30_000;
/** A slow machine would otherwise wait for midnight all evening. */
const MAX_WAIT_MS = 180_000;
const HOUR = 3600 * MICROS_PER_SECOND;

/** The machine's clock in whole seconds, read again before each test file. Views and commands read it, so content lies around it. */
export let present: Micros;
export let midnight: Micros;
/** The last whole hour. */
export let lastHour: Micros;
await readPresent();

/** Waits for the next day in UTC if this one ends before a test file would. */
export async function readPresent(): Promise<void> {
  const leftMs = DAY_MS - (Date.now() % DAY_MS);
  if (leftMs < Math.min(timeLimit(MAX_FILE_MS), MAX_WAIT_MS))
    await new Promise((wake) => setTimeout(wake, leftMs + 1_000));
  present = Math.floor(Date.now() / 1000) * MICROS_PER_SECOND;
  midnight = startOfDay(present);
  lastHour = Math.floor(present / HOUR) * HOUR;
}
