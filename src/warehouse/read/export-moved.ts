import { MICROS_PER_DAY } from "../../model/time.ts";
import { intersect, normalise, type TimeRange } from "../../model/time-range.ts";
import { digestTicks, type HeldDay } from "../rows/moved-rows.ts";
import type { SettledRangeRow } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { ExportPeriod } from "./export-periods.ts";

/** A range of index ticks whose rows are in an earlier export only. */
export interface MovedRange extends TimeRange {
  readonly indexType: string;
  readonly indexId: string;
  readonly reason: string;
}

export function readMovedRanges(connection: Connection): MovedRange[] {
  return connection
    .statement<MovedRange>(
      `SELECT s.index_type AS indexType, s.index_id AS indexId, g.from_ts AS "from", g.to_ts AS "to", g.reason
      FROM settled_ranges g JOIN series s ON s.series = g.series
      WHERE g.stream = 'index_ticks' AND g.proof = 'rows' AND g.reason IS NOT NULL`,
    )
    .all();
}

/** The days of a period that have ticks and are covered as a whole, with the digest of what the export has of them. */
export function listHeldDays(connection: Connection, { keys, from, to }: ExportPeriod): HeldDay[] {
  const covered = connection.statement<Pick<SettledRangeRow, "from" | "to">>(
    `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges WHERE stream = 'index_ticks' AND series = ?
      AND proof = 'rows' AND reason IS NULL AND from_ts < ? AND to_ts > ? ORDER BY from_ts`,
  );
  return keys.flatMap((series) =>
    intersect(normalise(covered.all([series, to, from])), [{ from, to }]).flatMap((range) => {
      const days: HeldDay[] = [];
      const first = Math.ceil(range.from / MICROS_PER_DAY) * MICROS_PER_DAY;
      for (let at = first; at + MICROS_PER_DAY <= range.to; at += MICROS_PER_DAY) {
        const day = { from: at, to: at + MICROS_PER_DAY };
        const digest = digestTicks(connection, series, day);
        if (digest !== undefined) days.push({ series, ...day, digest });
      }
      return days;
    }),
  );
}
