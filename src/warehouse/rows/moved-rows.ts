import { createHash } from "node:crypto";
import { MICROS_PER_DAY } from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import { findTouching, MOVED_REASON, settleAsMoved } from "../coverage/ledger.ts";
import { type SettledRangeRow, settledRanges } from "../schema/coverage.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";
import { and, eq } from "../sqlite/drizzle.ts";
import { hasChangedSince } from "../tables/journal.ts";
import { rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { keepBarsWithoutTicks } from "./kept-bars.ts";
import { addRowCount } from "./stream-stats.ts";

/*
 * Index ticks that another store has may leave the warehouse. Their range stays covered, with the proof `moved` and the place as
 * its reason: it is whole, is not fetched again and never becomes lost. The hourly bars stay.
 */

/** The index ticks of a series on one day, as another store has them: any store that can tell their digest. */
export interface HeldDay extends TimeRange {
  readonly series: number;
  /** Of the rows that the other store has, by `digestTicks`. */
  readonly digest: string;
  /** The last recorded change that the other store has; undefined: it needs no changes. */
  readonly changesUntil?: number;
}

const ticksOfRange = "FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ?";
/** Changes whenever a tick of the range changes; undefined: there are none. */
export function digestTicks(
  connection: SqlRunner,
  series: number,
  { from, to }: TimeRange,
): string | undefined {
  const rows = connection.tuples<readonly SqlValue[]>(
    `SELECT series, ts, ${rowTables.index_ticks.columns.join(", ")} ${ticksOfRange} ORDER BY ts`,
    [series, from, to],
  );
  return rows.length === 0 ? undefined : createHash("sha256").update(JSON.stringify(rows)).digest("hex");
}

/**
 * Deletes the ticks of one day, in the transaction that says where they are. Does nothing unless the ledger covers the
 * whole day and the other store has the ticks as they are now.
 */
export function moveDay(transaction: Transaction, day: HeldDay, place: string): number {
  const { series, from, to } = day;
  const key = { stream: "index_ticks", series } as const;
  const covered = findTouching(transaction, key, day).filter(({ proof }) => proof === "rows");
  if (subtract([{ from, to }], normalise(covered)).length > 0) return 0;
  if (digestTicks(transaction, series, day) !== day.digest) return 0;
  // Changed and changed back: the other store may have got the version between.
  if (day.changesUntil !== undefined && hasChangedSince(transaction, key, day, day.changesUntil)) return 0;
  let deleted = 0;
  keepBarsWithoutTicks(transaction, series, day, () => {
    deleted = transaction.run(`DELETE ${ticksOfRange}`, [series, from, to]);
  });
  settleAsMoved(transaction, key, { from, to }, place);
  addRowCount(transaction, "index_ticks", -deleted);
  return deleted;
}

/** A range of index ticks whose rows are in an earlier export only. */
export interface MovedRange extends TimeRange {
  readonly indexType: string;
  readonly indexId: string;
  readonly reason: string;
}

export function readMovedRanges(connection: Connection): MovedRange[] {
  return connection.rows<MovedRange>(`SELECT s.index_type AS indexType, s.index_id AS indexId, g.from_ts AS "from", g.to_ts AS "to", g.reason
      FROM settled_ranges g JOIN series s ON s.series = g.series
      WHERE g.stream = 'index_ticks' AND g.proof = 'moved'`);
}

/** A day of a series. */
export type SeriesDay = Pick<HeldDay, "series" | "from" | "to">;

/** The days of a period whose ticks are here and covered as a whole, by series. */
export function listWholeDays(
  connection: Connection,
  { keys, from, to }: TimeRange & { readonly keys: readonly number[] },
): SeriesDay[] {
  const covered = connection.statement<Pick<SettledRangeRow, "from" | "to">>(
    `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges WHERE stream = 'index_ticks' AND series = ?
      AND proof = 'rows' AND from_ts < ? AND to_ts > ? ORDER BY from_ts`,
  );
  return keys.flatMap((series) =>
    intersect(normalise(covered.all([series, to, from])), [{ from, to }]).flatMap((range) => {
      const days: SeriesDay[] = [];
      const first = Math.ceil(range.from / MICROS_PER_DAY) * MICROS_PER_DAY;
      for (let at = first; at + MICROS_PER_DAY <= range.to; at += MICROS_PER_DAY)
        days.push({ series, from: at, to: at + MICROS_PER_DAY });
      return days;
    }),
  );
}

/** The days of a period that have ticks and are covered as a whole, with the digest of what the export has of them. */
export function listHeldDays(
  connection: Connection,
  period: TimeRange & { readonly keys: readonly number[] },
): HeldDay[] {
  return listWholeDays(connection, period).flatMap((day) => {
    const digest = digestTicks(connection, day.series, day);
    return digest === undefined ? [] : [{ ...day, digest }];
  });
}

/** The ranges whose rows were moved to a place, by series. */
export function readMovedTo({ orm }: Connection, place: string): SettledRangeRow[] {
  const { stream, series, from, proof, reason } = settledRanges;
  const isThere = and(eq(stream, "index_ticks"), eq(proof, "moved"), eq(reason, MOVED_REASON + place));
  return orm.select().from(settledRanges).where(isThere).orderBy(series, from).all();
}
