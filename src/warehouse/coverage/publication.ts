import type { Stream } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Publication } from "../../rule/answer.ts";
import type { SqlRunner } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import type { SqlDialect } from "../views/sql-dialect.ts";
import type { LedgerKey } from "./ledger.ts";
import type { TargetRules } from "./targets.ts";

/** Reason of a range that REST was asked about, above every record that it has shown. */
export const NOT_PUBLISHED_REASON = "not published yet";

/** A quiet series is asked for at least so often while the daemon runs. */
const MAX_QUIET_ASK_AGE_MICROS = 2 * 3600 * MICROS_PER_SECOND;

/**
 * The time up to which the quiet series of the row `u` of `publications` counts as known: what passed since it was last asked for
 * only awaits the next time.
 */
export const quietTimeSql = ({ smallest }: Pick<SqlDialect, "smallest">, now: string) =>
  `CASE WHEN ${now} - u.asked_at < ${MAX_QUIET_ASK_AGE_MICROS} THEN ${smallest(now, "u.asked_at")} ELSE ${now} END`;

/** How late records of a stream appeared, and when that was last seen. */
export interface Lateness {
  readonly lateBy: Micros;
  readonly lateAt: Micros;
}

/** Later records are found by the daily recheck, and say nothing about the next ones. */
export const MAX_LATENESS_MICROS = 2 * 3600 * MICROS_PER_SECOND;
/** Without late records the lateness falls by a second in this many: two hours in a day. */
const LATENESS_DECAY = 12;

/** The lateness that the next records may have. */
export function decayLateness({ lateBy, lateAt }: Lateness, now: Micros): Micros {
  return Math.max(0, lateBy - Math.floor(Math.max(0, now - lateAt) / LATENESS_DECAY));
}

/** `decayLateness` of the row `h` of `stream_states`, which may be absent. */
export const decayedLatenessSql = ({ largest }: Pick<SqlDialect, "largest">, now: string) =>
  `coalesce(${largest("0", `h.late_by - ${largest("0", `${now} - h.late_at`)} / ${LATENESS_DECAY}`)}, 0)`;

/** The settle delay of a stream, or longer if its records appeared later than that. */
export function extendSettleDelay(
  { settleDelay }: Pick<TargetRules, "settleDelay">,
  lateness: Lateness | undefined,
  now: Micros,
): Micros {
  return lateness ? Math.max(settleDelay, decayLateness(lateness, now)) : settleDelay;
}

export function readLateness(connection: SqlRunner, stream: Stream): Lateness | undefined {
  const sql =
    "SELECT late_by AS lateBy, late_at AS lateAt FROM stream_states WHERE stream = ? AND late_by > 0";
  return connection.findRow<Lateness>(sql, [stream]);
}

/** So much lateness is believed at once. */
const PLAUSIBLE_LATENESS_MICROS = 600 * MICROS_PER_SECOND;

/**
 * Records of a stream appeared `seen.lateBy` after their timestamp: what is known then; undefined: nothing new. More than is
 * plausible at most doubles, once per period: a single wrong page, or one of each series, must not delay all claims for hours.
 */
export function learnLateness(
  known: Lateness | undefined,
  seen: Lateness,
  { settleDelay, cadence }: { readonly settleDelay: Micros; readonly cadence: Micros },
): Lateness | undefined {
  const isAgain = known && seen.lateAt - known.lateAt < cadence;
  const before = extendSettleDelay({ settleDelay }, known, isAgain ? known.lateAt : seen.lateAt);
  const isPlausible = seen.lateBy <= PLAUSIBLE_LATENESS_MICROS;
  const lateBy = isPlausible ? seen.lateBy : Math.min(seen.lateBy, isAgain ? before : 2 * before);
  return lateBy > before ? { lateBy, lateAt: seen.lateAt } : undefined;
}

export function readPublication(connection: SqlRunner, { stream, series }: LedgerKey) {
  const sql = `SELECT published_to AS publishedTo, asked_at AS askedAt, asked_to AS askedTo, quiet_margin AS quietMargin
    FROM publications WHERE stream = ? AND series = ?`;
  return connection.findRow<Publication>(sql, [stream, series]);
}

/** Of a page of the head, which may show less than was known; a page below it has no time at which the head was requested. */
const ofHeadSql =
  "published_to = excluded.published_to, asked_at = excluded.asked_at, quiet_margin = excluded.quiet_margin";
const ofLowerSql = `published_to = max(published_to, excluded.published_to)
      WHERE published_to < excluded.published_to OR asked_to < excluded.asked_to`;

/** Stores what a page has shown. */
export function recordPublication(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  { publishedTo, askedAt, askedTo, quietMargin }: Publication,
): void {
  transaction.run(
    `INSERT INTO publications (stream, series, published_to, asked_at, asked_to, quiet_margin) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (stream, series) DO UPDATE SET asked_to = max(asked_to, excluded.asked_to), ${askedAt > 0 ? ofHeadSql : ofLowerSql}`,
    [stream, series, publishedTo, askedAt, askedTo, quietMargin],
  );
}

/** Whether REST has shown another series of the stream and index type up to `to`: then REST as a whole does not lag. */
export function hasOtherPublished(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  indexType: string,
  to: Micros,
): boolean {
  const sql = `SELECT 1 FROM publications p JOIN series s ON s.series = p.series
    WHERE p.stream = ? AND p.series <> ? AND p.published_to >= ? AND s.index_type = ? LIMIT 1`;
  return transaction.findRow(sql, [stream, series, to, indexType]) !== undefined;
}
