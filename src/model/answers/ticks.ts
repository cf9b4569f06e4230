import type { Micros } from "../time.ts";

export type PulseTick = readonly [indexType: string, indexId: string, ts: Micros, price: number];

/** What pages need to know about commits: which streams grew, and the newest price of each series that moved. */
export interface PulseResult {
  readonly time: string;
  /** Rows by stream: a page asks again if the number of its stream has changed. */
  readonly rows: Readonly<Record<string, number>>;
  readonly ticks: readonly PulseTick[];
}
