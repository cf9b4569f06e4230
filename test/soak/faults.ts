import type { Random } from "../../src/runtime/backoff.ts";
import type { FaultCall } from "../simulator/faults.ts";

/** Always on, to measure how quickly the daemon answers PINGs. */
export const PERMANENT_FAULT: FaultCall = ["pingStorm", 200, { when: "accept" }];

/** Temporary faults; `revoke` revokes all tokens. */
const faultCalls: readonly (FaultCall | "revoke")[] = [
  ["status", 500, { p: 0.2 }],
  ["status", 503, { p: 0.5 }],
  ["status", 429, { retryAfter: "seconds", wait: 1000, p: 0.1 }],
  ["reset", { p: 0.2 }],
  ["hangUp", { p: 0.2 }],
  ["latency", 300, { p: 0.5 }],
  ["cut", "length", { on: "/index-ticker", p: 0.2 }],
  ["cut", "chunked", { on: "/index-ticker", p: 0.2 }],
  ["encoding", "cut", { on: "/index-ticker", p: 0.2 }],
  ["html", { on: "/index-ticker", p: 0.2 }],
  ["sizeCap", 500, { on: "/index-ticker" }],
  ["deadCursor", 404, { on: "/index-ticker", p: 0.1 }],
  ["cycle", 1, { on: "/index-ticker", p: 0.05, page: "later" }],
  ["refuse", { to: 4000 }],
  ["dropConnection", { when: "tick", total: 1 }],
  ["dropConnection", { code: 1011, when: "tick", total: 1 }],
  ["upgradeStatus", 503],
  ["mute", { when: "tick", total: 1 }],
  ["missingTick", { p: 0.2 }],
  ["duplicateTick", { p: 0.2 }],
  ["lateTick", 2000, { p: 0.2 }],
  ["otherValue", { p: 0.1 }],
  ["message", "trade", { when: "tick", p: 0.1 }],
  "revoke",
];

export interface FaultPhase {
  readonly fault: FaultCall | "revoke";
  /** Seconds without a fault before this one. */
  readonly quietSeconds: number;
  /** Duration of the fault. */
  readonly seconds: number;
}

export function pickFaultPhase(random: Random): FaultPhase {
  const fault = faultCalls[Math.floor(random() * faultCalls.length)] ?? "revoke";
  return { fault, quietSeconds: 2 + random() * 8, seconds: 2 + random() * 6 };
}
