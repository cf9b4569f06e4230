import { plainNotation } from "../../src/model/decimal.ts";
import type { Random } from "../../src/runtime/backoff.ts";
import type { IndexType } from "../../src/simulator/market/indexes.ts";
import type { Truth } from "../../src/simulator/oracle.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";

interface SettledSpan {
  readonly type: IndexType;
  readonly id: string;
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

export interface Comparison {
  /** Index ticks stored in all. */
  readonly rows: number;
  readonly compared: number;
  readonly differences: readonly string[];
}

/** So much of each settled range is compared, at random places, and at both of its ends. */
const WINDOW = 1_800_000_000;
const PLACES = 6;
/** What the service no longer serves stays here and has nothing to be compared with; with a minute to compare in. */
const SERVED = 200 * 86_400_000_000 - 60_000_000;

/**
 * What the ledger calls settled is what the service has, both ways: windows of every settled range, row by row. (The head
 * since `sinceMs` is compared whole, before the daemon is stopped.)
 */
export function compareWithTruth(
  reader: Connection,
  truth: Truth,
  sinceMs: number,
  random: Random,
): Comparison {
  const spans = reader
    .statement(
      `SELECT s.index_type AS type, s.index_id AS id, s.name, g.from_ts AS "from", g.to_ts AS "to"
      FROM settled_ranges g JOIN series s ON s.series = g.series WHERE g.stream = 'index_ticks' AND g.proof <> 'lost'`,
    )
    .all() as SettledSpan[];
  const differences: string[] = [];
  let compared = 0;
  const oldest = Date.now() * 1000 - SERVED;
  for (const each of spans) {
    if (each.to <= oldest) continue;
    const span = { ...each, from: Math.max(each.from, oldest) };
    const length = Math.min(WINDOW, span.to - span.from);
    const starts = Array.from({ length: PLACES }, (_, at) => {
      const share = at === 0 ? 0 : at === 1 ? 1 : random();
      return Math.floor(span.from + (span.to - span.from - length) * share);
    });
    for (const from of new Set(starts)) {
      const found = compareWindow(reader, truth, span, from, from + length);
      compared += found.rows;
      if (found.difference !== undefined) differences.push(found.difference);
    }
  }
  const late = reader.database.prepare("SELECT count(*) FROM index_ticks WHERE ts > ?").pluck();
  const rows = reader.database.prepare("SELECT count(*) FROM index_tick_rows").pluck().get() as number;
  const ahead = late.get((sinceMs + 86_400_000) * 1000) as number;
  if (ahead > 0) differences.push(`${ahead} ticks lie in the future`);
  return { rows, compared, differences };
}

function compareWindow(
  reader: Connection,
  truth: Truth,
  { type, id, name }: SettledSpan,
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
  const served = truth
    .indexTicks(type, id, from / 1000, to / 1000, Date.now())
    .map(
      ({ timestamp, price, volume }) =>
        `${Date.parse(timestamp) * 1000} ${plainNotation(price)} ${plainNotation(volume)}`,
    );
  const at = served.findIndex((row, index) => row !== stored[index]);
  if (at < 0 && stored.length === served.length) return { rows: stored.length, difference: undefined };
  const difference = `${type} ${name}: ${stored.length} rows stored, ${served.length} served; first at ${served[at] ?? stored[served.length]}`;
  return { rows: stored.length, difference };
}
