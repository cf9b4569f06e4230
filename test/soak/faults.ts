import type { Random } from "../../src/runtime/backoff.ts";

/** Always on: so that the service knows how quickly its PINGs are answered. */
export const always = "ws ping-storm every=200ms on=accept";

/** What may go wrong for a while, as lines of the simulator's fault script; `revoke` is a control of its own. */
const troubles: readonly string[] = [
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

export interface Trouble {
  readonly line: string;
  /** It begins after so many quiet seconds, and lasts so many. */
  readonly quietSeconds: number;
  readonly seconds: number;
}

export function nextTrouble(random: Random): Trouble {
  const line = troubles[Math.floor(random() * troubles.length)] ?? "revoke";
  return { line, quietSeconds: 2 + random() * 8, seconds: 2 + random() * 6 };
}
