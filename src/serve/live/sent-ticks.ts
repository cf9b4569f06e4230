import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";

/** Timestamps are remembered for this long. */
const MEMORY_MICROS = 3600 * MICROS_PER_SECOND;

/** The ticks of one source that were sent. Ticks are sent in the order of time: a late one is only announced. */
export class SentTicks {
  /** Ticks that existed at the subscription are not sent. */
  readonly #existing: Micros;
  /** Every known tick above this is in the set. */
  #rememberedFrom: Micros;
  #known = new Set<Micros>();
  newest: Micros;

  constructor(newest: Micros) {
    this.#existing = newest;
    this.#rememberedFrom = newest;
    this.newest = newest;
  }

  /** Remembers ticks in the order of time. */
  add(timestamps: readonly Micros[]): void {
    for (const ts of timestamps) this.#known.add(ts);
    this.newest = Math.max(this.newest, timestamps.at(-1) ?? this.newest);
    const from = this.newest - MEMORY_MICROS;
    if (from - this.#rememberedFrom < MEMORY_MICROS) return;
    this.#known = new Set([...this.#known].filter((ts) => ts > from));
    this.#rememberedFrom = from;
  }

  /** The part of a changed range that has ticks which are not sent: their time, before `until`, is over; undefined: none. */
  takeLate(
    { from, to }: TimeRange,
    until: Micros,
    readTimestamps: (range: TimeRange) => readonly Micros[],
  ): TimeRange | undefined {
    const start = Math.max(from, this.#existing + 1);
    const end = Math.min(to, until);
    if (start >= end) return undefined;
    const rememberedFrom = this.#rememberedFrom;
    const unsent = readTimestamps({ from: Math.max(start, rememberedFrom + 1), to: end }).filter(
      (ts) => !this.#known.has(ts),
    );
    this.add(unsent);
    const first = start <= rememberedFrom ? start : unsent[0];
    const last = unsent.at(-1) ?? Math.min(end - 1, rememberedFrom);
    return first === undefined ? undefined : { from: first, to: last + 1 };
  }
}
