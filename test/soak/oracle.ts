import { toPlainNotation } from "../../src/model/decimal.ts";
import type { Random } from "../../src/runtime/backoff.ts";
import type { SimulatedIndexType } from "../../src/simulator/market/indexes.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";
import type { Oracle } from "../simulator/oracle.ts";

interface SettledSeriesRange {
  readonly type: SimulatedIndexType;
  readonly id: string;
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

export interface Comparison {
  /** Number of stored index ticks. */
  readonly rows: number;
  readonly compared: number;
  readonly differences: readonly string[];
}

/** The length of one sample. Each range is sampled at both ends and at random positions. */
const SAMPLE_MICROS = 1_800_000_000;
const SAMPLES_PER_RANGE = 6;
/** The service's window, minus a minute for the comparison itself: older rows cannot be compared. */
const SERVED_MICROS = 200 * 86_400_000_000 - 60_000_000;

/**
 * Compares samples of every covered range with the service, row by row, in both directions. `Soak.waitForHead` compares
 * the head completely before the daemon stops.
 */
export function compareWithService(
  reader: Connection,
  oracle: Oracle,
  sinceMs: number,
  random: Random,
): Comparison {
  const ranges = reader
    .statement(
      `SELECT s.index_type AS type, s.index_id AS id, s.name, g.from_ts AS "from", g.to_ts AS "to"
      FROM settled_ranges g JOIN series s ON s.series = g.series WHERE g.stream = 'index_ticks' AND g.proof <> 'lost'`,
    )
    .all() as SettledSeriesRange[];
  const differences: string[] = [];
  let compared = 0;
  const oldest = Date.now() * 1000 - SERVED_MICROS;
  for (const each of ranges) {
    if (each.to <= oldest) continue;
    const range = { ...each, from: Math.max(each.from, oldest) };
    const length = Math.min(SAMPLE_MICROS, range.to - range.from);
    const starts = Array.from({ length: SAMPLES_PER_RANGE }, (_, index) => {
      const position = index === 0 ? 0 : index === 1 ? 1 : random();
      return Math.floor(range.from + (range.to - range.from - length) * position);
    });
    for (const from of new Set(starts)) {
      const found = compareRange(reader, oracle, range, from, from + length);
      compared += found.rows;
      if (found.difference !== undefined) differences.push(found.difference);
    }
  }
  const countNewer = reader.database.prepare("SELECT count(*) FROM index_ticks WHERE ts > ?").pluck();
  const rows = reader.database.prepare("SELECT count(*) FROM index_tick_rows").pluck().get() as number;
  const futureCount = countNewer.get((sinceMs + 86_400_000) * 1000) as number;
  if (futureCount > 0) differences.push(`${futureCount} ticks are in the future`);
  return { rows, compared, differences };
}

function compareRange(
  reader: Connection,
  oracle: Oracle,
  { type, id, name }: SettledSeriesRange,
  from: number,
  to: number,
): { rows: number; difference: string | undefined } {
  const stored = reader
    .statement(
      `SELECT ts || ' ' || price_exact || ' ' || volume_exact FROM index_ticks
      WHERE index_type = ? AND index_id = ? AND ts >= ? AND ts < ? ORDER BY ts`,
    )
    .pluck()
    .all([type, id, from, to]) as string[];
  const served = oracle
    .indexTicks(type, id, from / 1000, to / 1000, Date.now())
    .map(
      ({ timestamp, price, volume }) =>
        `${Date.parse(timestamp) * 1000} ${toPlainNotation(price)} ${toPlainNotation(volume)}`,
    );
  const at = served.findIndex((row, index) => row !== stored[index]);
  if (at < 0 && stored.length === served.length) return { rows: stored.length, difference: undefined };
  const difference = `${type} ${name}: ${stored.length} rows stored, ${served.length} served; first difference: ${served[at] ?? stored[served.length]}`;
  return { rows: stored.length, difference };
}
