import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";

/** Timestamps are remembered for this long. */
const MEMORY_MICROS = 3600 * MICROS_PER_SECOND;

/** The ticks of one source that subscribers have. Ticks are sent in the order of time: one that comes later is only announced. */
export class SentTicks {
  /** What existed at the subscription is not news. */
  readonly #existing: Micros;
  /** Every sent tick above this is in the list. */
  #rememberedFrom: Micros;
  #sent: Micros[] = [];
  newest: Micros;

  constructor(newest: Micros) {
    this.#existing = newest;
    this.#rememberedFrom = newest;
    this.newest = newest;
  }

  add(timestamps: readonly Micros[]): void {
    this.#sent.push(...timestamps);
    this.newest = timestamps.at(-1) ?? this.newest;
    const from = this.newest - MEMORY_MICROS;
    if ((this.#sent[0] ?? from) >= from - MEMORY_MICROS) return;
    this.#sent = this.#sent.filter((ts) => ts > from);
    this.#rememberedFrom = Math.max(this.#rememberedFrom, from);
  }

  /** The part of a changed range that may have ticks which were not sent when it was their time; undefined: none. */
  findLate(
    { from, to }: TimeRange,
    readTimestamps: (range: TimeRange) => readonly Micros[],
  ): TimeRange | undefined {
    const start = Math.max(from, this.#existing + 1);
    const end = Math.min(to, this.newest + 1);
    if (start >= end) return undefined;
    const known = new Set(this.#sent);
    const unsent = readTimestamps({ from: Math.max(start, this.#rememberedFrom + 1), to: end }).filter(
      (ts) => !known.has(ts),
    );
    const first = start <= this.#rememberedFrom ? start : unsent[0];
    const last = unsent.at(-1) ?? Math.min(end - 1, this.#rememberedFrom);
    return first === undefined ? undefined : { from: first, to: last + 1 };
  }
}
