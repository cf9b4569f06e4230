/** How large the warehouse was, and when. */
export interface SizeSample {
  /** Milliseconds on a clock that does not go back. */
  readonly at: number;
  readonly bytes: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Less history than this says more about the last commit than about the trend. */
const LEAST_SPAN_MS = HOUR_MS;
const SAMPLE_EVERY_MS = 600_000;
const LONGEST_SPAN_MS = 2 * DAY_MS;

/**
 * Days until `free` bytes are used up: Infinity without growth, undefined while too little is known. The trend is the
 * median of the slopes between all pairs of samples: neither the steps in which a file grows nor a first backfill that
 * is over move it for long.
 */
export function daysUntilFull(samples: readonly SizeSample[], free: number): number | undefined {
  const first = samples[0];
  const last = samples.at(-1);
  if (!first || !last || last.at - first.at < LEAST_SPAN_MS) return undefined;
  const slopes: number[] = [];
  samples.forEach((later, index) => {
    for (const earlier of samples.slice(0, index)) {
      if (later.at > earlier.at) slopes.push((later.bytes - earlier.bytes) / (later.at - earlier.at));
    }
  });
  slopes.sort((a, b) => a - b);
  const middle = slopes.length / 2;
  const growth = ((slopes[Math.floor(middle - 0.5)] ?? 0) + (slopes[Math.ceil(middle - 0.5)] ?? 0)) / 2;
  return growth > 0 ? Math.max(0, free) / growth / DAY_MS : Number.POSITIVE_INFINITY;
}

/** The samples of the last two days, ten minutes apart: enough for a trend, few enough to compare all pairs. */
export class SizeHistory {
  #samples: SizeSample[] = [];

  note(sample: SizeSample): void {
    const last = this.#samples.at(-1);
    if (last && sample.at - last.at < SAMPLE_EVERY_MS) return;
    this.#samples = [...this.#samples.filter(({ at }) => sample.at - at <= LONGEST_SPAN_MS), sample];
  }

  daysUntilFull(free: number): number | undefined {
    return daysUntilFull(this.#samples, free);
  }
}
