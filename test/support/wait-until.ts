import { vi } from "vitest";
import { timeLimit } from "./time-limit.ts";

/** Polls until `look` returns a value that is neither false, null nor undefined. */
export function waitUntil<T>(look: () => T | Promise<T>, intervalMs = 50) {
  return vi.waitUntil(look, { timeout: timeLimit(60_000), interval: intervalMs });
}
