import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../model/time.ts";
import type { SizeSampleRow } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "./transaction.ts";

export type SizeSample = Readonly<SizeSampleRow>;

export const DISK_FULL_WARNING_DAYS = 14;

/** A shorter history shows the last commit rather than a trend. */
const MIN_HISTORY_MICROS = 3600 * MICROS_PER_SECOND;
const SAMPLE_INTERVAL_MICROS = 600 * MICROS_PER_SECOND;
const MAX_HISTORY_MICROS = 2 * MICROS_PER_DAY;

/**
 * Days until `free` bytes are used up: Infinity without growth, undefined with too little history. The trend is the
 * median slope between all pairs of samples, so that a finished backfill, or a file that grows in steps, does not
 * distort it for long.
 */
export function estimateDaysUntilFull(samples: readonly SizeSample[], free: number): number | undefined {
  const first = samples[0];
  const last = samples.at(-1);
  if (!first || !last || last.at - first.at < MIN_HISTORY_MICROS) return undefined;
  const slopes = samples.flatMap((later, at) => {
    const earlier = samples.slice(0, at).filter((each) => each.at < later.at);
    return earlier.map((each) => (later.bytes - each.bytes) / (later.at - each.at));
  });
  slopes.sort((a, b) => a - b);
  const middle = slopes.length / 2;
  const growth = ((slopes[Math.floor(middle - 0.5)] ?? 0) + (slopes[Math.ceil(middle - 0.5)] ?? 0)) / 2;
  return growth > 0 ? Math.max(0, free) / growth / MICROS_PER_DAY : Number.POSITIVE_INFINITY;
}

/** The samples of the last two days, oldest first: few enough to compare all pairs. */
export function readSizeSamples(connection: Connection): SizeSample[] {
  return connection.rows<SizeSample>("SELECT at, bytes FROM size_samples ORDER BY at");
}

/** Stores a sample, unless the last one is younger than ten minutes. Deletes samples from the future (a wrong clock). */
export function recordSize(transaction: Transaction, bytes: number): void {
  const { now: at } = transaction;
  transaction.run("DELETE FROM size_samples WHERE at NOT BETWEEN ? AND ?", [at - MAX_HISTORY_MICROS, at]);
  transaction.run(
    `INSERT INTO size_samples (at, bytes) SELECT ?, ?
      WHERE NOT EXISTS (SELECT 1 FROM size_samples WHERE at > ?)`,
    [at, bytes, at - SAMPLE_INTERVAL_MICROS],
  );
}
