import type { Random } from "../../src/runtime/backoff.ts";

/** Always on, to measure how quickly the daemon answers PINGs. */
export const PERMANENT_FAULT = "ws ping-storm every=200ms on=accept";

/** Temporary faults as lines of the simulator's fault script; `revoke` is a separate control request. */
const faultLines: readonly string[] = [
  "GET * status 500 p=0.2",
  "GET * status 503 p=0.5",
  "GET * rate-limit retry-after=seconds wait=1s p=0.1",
  "GET * reset p=0.2",
  "GET * hang-up p=0.2",
  "GET * latency 300ms p=0.5",
  "GET /index-ticker cut length p=0.2",
  "GET /index-ticker cut chunked p=0.2",
  "GET /index-ticker encoding cut p=0.2",
  "GET /index-ticker html p=0.2",
  "GET /index-ticker size-cap 500",
  "GET /index-ticker dead-cursor 404 p=0.1",
  "GET /index-ticker next-id same page=later p=0.05",
  "port refuse from=0s to=4s",
  "ws drop-connection 1006 on=tick total=1",
  "ws drop-connection 1011 on=tick total=1",
  "ws upgrade-status 503",
  "ws mute on=tick total=1",
  "ws missing-tick p=0.2",
  "ws duplicate-tick p=0.2",
  "ws late-tick by=2s p=0.2",
  "ws other-value p=0.1",
  "ws message trade on=tick p=0.1",
  "revoke",
];

export interface FaultPhase {
  readonly line: string;
  /** Seconds without a fault before this one. */
  readonly quietSeconds: number;
  /** Duration of the fault. */
  readonly seconds: number;
}

export function pickFaultPhase(random: Random): FaultPhase {
  const line = faultLines[Math.floor(random() * faultLines.length)] ?? "revoke";
  return { line, quietSeconds: 2 + random() * 8, seconds: 2 + random() * 6 };
}
