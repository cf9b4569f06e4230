import { Fault } from "../../simulator/faults.ts";
import { CONCURRENCY, type Goodput, measureGoodput } from "./goodput.ts";

/** One situation of a bad network, and what the client must reach in it. */
export interface GoodputRow {
  readonly situation: string;
  readonly faults: readonly Fault[];
  /** Virtual seconds; the first `settleSeconds` are for finding the limit. */
  readonly seconds: number;
  readonly settleSeconds?: number;
  /** Pages per second that would be perfect, given those of the clean run. */
  readonly reference: (clean: number) => number;
  /** Share of the reference. */
  readonly atLeast: number;
  readonly maxRejectedShare?: number;
}

interface GoodputRowResult extends Goodput {
  readonly ratio: number;
}

const sameAsClean = (clean: number) => clean;
const MAX_REJECTED_SHARE = 0.05;

/** Requests that fail at random, with a status or a reset. */
export function failureRow(share: number, kind: "500" | "reset", seconds: number): GoodputRow {
  const limits: Record<number, number> = { 0.17: 0.75, 0.25: 0.65, 0.5: 0.35, 0.75: 0.1 };
  return {
    situation: `${share * 100} % ${kind === "500" ? "answered 500" : "of the connections reset"}`,
    faults: [kind === "500" ? Fault.status(500, { p: share }) : Fault.reset({ p: share })],
    seconds,
    reference: sameAsClean,
    atLeast: limits[share] ?? 0,
  };
}

/** A limit of requests per second that answers 429 without `Retry-After`. */
export function limitRow(rate: number, window: "second" | "sliding" | "bucket", seconds: number): GoodputRow {
  return {
    situation: `limit of ${rate}/s (${window})`,
    faults: [Fault.requestLimit(rate, { window })],
    seconds,
    settleSeconds: 30,
    reference: () => rate,
    atLeast: 0.8,
    maxRejectedShare: MAX_REJECTED_SHARE,
  };
}

/** The limit changes after a minute; counted from 30 seconds later. */
export function changedLimitRow(before: number, after: number, seconds: number): GoodputRow {
  return {
    situation: `limit of ${before}/s becomes ${after}/s`,
    faults: [Fault.requestLimit(before, { to: 60_000 }), Fault.requestLimit(after, { from: 60_000 })],
    seconds: 90 + seconds,
    settleSeconds: 90,
    reference: () => after,
    atLeast: 0.8,
    maxRejectedShare: MAX_REJECTED_SHARE,
  };
}

/** Random 429s that ask for a pause of a second. The pauses leave the requests between two of them. */
export function pauseRow(share: number, seconds: number): GoodputRow {
  return {
    situation: `${share * 100} % answered 429 with Retry-After: 1`,
    faults: [Fault.status(429, { retryAfter: "seconds", wait: 1000, p: share })],
    seconds,
    reference: (clean) => (1 / share - 1) / (1 / share / clean + 1),
    atLeast: 0.6,
  };
}

export function overloadRow(above: number, seconds: number): GoodputRow {
  return {
    situation: `503 while more than ${above} are in flight`,
    faults: [Fault.overload(above)],
    seconds,
    settleSeconds: 1,
    reference: (clean) => (clean * above) / CONCURRENCY,
    atLeast: 0.8,
  };
}

export async function measureRow(row: GoodputRow, clean: number, seed: number): Promise<GoodputRowResult> {
  const { faults, seconds, settleSeconds = 0, reference } = row;
  const goodput = await measureGoodput({ faults, seconds, fromSeconds: settleSeconds, seed });
  return { ...goodput, ratio: goodput.pagesPerSecond / reference(clean) };
}
