import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";

/** How large the warehouse was, and when. */
export interface SizeSample {
  readonly at: Micros;
  readonly bytes: number;
}

/** A disk that is full in fewer days than this is worth a word. */
export const SOON_FULL_DAYS = 14;

/** Less history than this says more about the last commit than about the trend. */
const LEAST_SPAN = 3600 * MICROS_PER_SECOND;
const SAMPLE_EVERY = 600 * MICROS_PER_SECOND;
const LONGEST_SPAN = 2 * MICROS_PER_DAY;

/**
 * Days until `free` bytes are used up: Infinity without growth, undefined while too little is known. The trend is the
 * median of the slopes between all pairs of samples: neither the steps in which a file grows nor a first backfill that
 * is over move it for long.
 */
export function daysUntilFull(samples: readonly SizeSample[], free: number): number | undefined {
  const first = samples[0];
  const last = samples.at(-1);
  if (!first || !last || last.at - first.at < LEAST_SPAN) return undefined;
  const slopes: number[] = [];
  samples.forEach((later, index) => {
    for (const earlier of samples.slice(0, index)) {
      if (later.at > earlier.at) slopes.push((later.bytes - earlier.bytes) / (later.at - earlier.at));
    }
  });
  slopes.sort((a, b) => a - b);
  const middle = slopes.length / 2;
  const growth = ((slopes[Math.floor(middle - 0.5)] ?? 0) + (slopes[Math.ceil(middle - 0.5)] ?? 0)) / 2;
  return growth > 0 ? Math.max(0, free) / growth / MICROS_PER_DAY : Number.POSITIVE_INFINITY;
}

/** The samples of the last two days, the oldest first: enough for a trend, few enough to compare all pairs. */
export function sizeSamples(connection: Connection): SizeSample[] {
  return connection.statement("SELECT at, bytes FROM size_samples ORDER BY at").all() as SizeSample[];
}

/** Notes the size of this moment, unless the last note is younger than ten minutes. Samples of a false clock are dropped. */
export function noteSize(transaction: Transaction, bytes: number): void {
  const { now } = transaction;
  transaction
    .statement("DELETE FROM size_samples WHERE at > ? OR at < ?")
    .run([now, Math.floor(now - LONGEST_SPAN)]);
  transaction
    .statement(
      "INSERT INTO size_samples (at, bytes) SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM size_samples WHERE at > ?)",
    )
    .run([Math.floor(now), bytes, Math.floor(now - SAMPLE_EVERY)]);
}
