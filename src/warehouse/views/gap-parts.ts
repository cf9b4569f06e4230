import { gapStateSql, SETTLING_REASON } from "../../model/status/gap-state.ts";
import { AGED_OUT_REASON, NOT_FOUND } from "../../rule/claim.ts";
import { NOT_OBSERVED_REASON, targetStartSql } from "../coverage/gaps.ts";
import {
  absenceSql,
  incidentKindsSql,
  NIGHTLY_INTERVAL_MICROS,
  WITHDRAWAL_REASON,
} from "../coverage/pending-claims.ts";
import { decayedLatenessSql, NOT_PUBLISHED_REASON, quietTimeSql } from "../coverage/publication.ts";
import type { SqlDialect } from "./sql-dialect.ts";

/** The settled ranges `g` of the key of target `t`. */
const sameKey = "g.stream = t.stream AND g.series = t.series";

/**
 * Where a gap becomes `settling`: where the live span begins. If the gap begins at most one settle delay earlier, REST
 * was polled after the span began and has stored the records of that delay: then the whole gap is `settling`.
 */
const liveSettlingFrom = (
  { table }: SqlDialect,
  start: string,
) => `(SELECT CASE WHEN l.from_ts - t.settle_delay <= ${start} THEN ${start} ELSE l.from_ts END
      FROM ${table("live_spans")} l WHERE l.stream = t.stream AND l.index_type = s.index_type AND l.index_id IN ('', s.index_id)
      AND l.to_ts >= t.target_end AND t.blocked_reason IS NULL ORDER BY l.from_ts LIMIT 1)`;

/** The head of an index that the service does not have is `settling` for a day: the nightly run requests it again. */
const notFoundSettlingFrom = (
  { table }: SqlDialect,
  start: string,
) => `(SELECT CASE WHEN g.reason = '${NOT_FOUND}' AND g.to_ts = ${start} AND g.to_ts > t.target_end - ${NIGHTLY_INTERVAL_MICROS} THEN ${start} END
      FROM ${table("settled_ranges")} g WHERE t.is_snapshot = 0 AND ${sameKey} AND g.from_ts < ${start} ORDER BY g.from_ts DESC LIMIT 1)`;

/** Where the first rows at or after `start` are that the service seems to have withdrawn: a gap that contains them has their reason. */
const withdrawnFrom = (
  { table }: SqlDialect,
  start: string,
) => `(SELECT min(m.from_ts) FROM ${table("pending_claims")} m
      WHERE m.stream = t.stream AND m.series = t.series AND m.accepted_at IS NULL AND m.to_ts > ${start} AND m.kind IN (${incidentKindsSql}))`;

/** One gap of a target, from `start` to the next settled range, with the columns that decide its state. */
function gapFrom(dialect: SqlDialect, start: string): string {
  const { table, smallest } = dialect;
  const nextSettled = `(SELECT min(g.from_ts) FROM ${table("settled_ranges")} g WHERE ${sameKey} AND g.from_ts >= ${start})`;
  const settlingFrom = smallest(
    "t.quiet_from",
    `coalesce(${liveSettlingFrom(dialect, start)}, t.target_end)`,
    `coalesce(${notFoundSettlingFrom(dialect, start)}, t.target_end)`,
  );
  return `SELECT t.stream, t.service_window, t.is_snapshot, t.blocked_reason, t.target_end, t.window_start, t.silent_from, t.silent_to, t.absent_to, t.absent_reason,
    s.index_type, s.index_id, s.name, ${start} AS gap_from,
    ${smallest("t.end_ts", `coalesce(${nextSettled}, t.end_ts)`)} AS gap_to, ${settlingFrom} AS settling_from,
    ${withdrawnFrom(dialect, start)} AS withdrawn_from
  FROM present_targets t CROSS JOIN ${table("series")} s`;
}

/**
 * `findGaps` of all ledger keys at the time of the query, as common table expressions; the result is `parts`. A gap
 * begins where a target begins or a settled range ends, and lasts until the next settled range: all by index seek.
 * Unlike `findGaps`, it also shows as `settling` what a live span has received, and the head of an index that was not
 * found today: neither needs attention.
 */
export function gapPartsSql(dialect: SqlDialect): string {
  const { table, largest, smallest, presentTs } = dialect;
  const inside = (...bounds: readonly string[]) => largest("j.gap_from", "j.lost_until", ...bounds);
  const present = (...bounds: readonly string[]) => largest(inside(), "j.absent_to", ...bounds);
  const before = (...bounds: readonly string[]) => smallest("j.gap_to", ...bounds);
  return `present AS (SELECT ${presentTs} AS now),
delays AS (
  SELECT w.*, p.now, ${targetStartSql(dialect, "p.now")} AS start_ts,
    ${largest("w.settle_delay", decayedLatenessSql(dialect, "p.now"))} AS delay, coalesce(u.quiet_margin, 0) AS quiet_margin,
    coalesce(${absenceSql(table, "to")}, w.from_ts) AS absent_to, ${absenceSql(table, "reason")} AS absent_reason,
    u.published_to, u.asked_to, CASE WHEN u.quiet_margin > 0 THEN ${quietTimeSql(dialect, "p.now")} ELSE p.now END AS quiet_at
  FROM present p CROSS JOIN ${table("targets")} w LEFT JOIN ${table("stream_states")} h ON h.stream = w.stream
    LEFT JOIN ${table("publications")} u ON u.stream = w.stream AND u.series = w.series
),
present_targets AS (
  SELECT d.stream, d.series, d.start_ts AS from_ts, d.delay AS settle_delay, d.service_window, d.is_snapshot, d.blocked_reason, d.absent_to, d.absent_reason,
    CASE WHEN d.to_ts < d.now THEN d.to_ts ELSE d.now END AS end_ts,
    (d.now - d.delay) / d.step * d.step AS target_end,
    (d.quiet_at - ${largest("d.delay", "d.quiet_margin")}) / d.step * d.step AS quiet_from,
    d.now - d.service_window AS window_start,
    CASE WHEN d.quiet_margin = 0 AND d.published_to < d.asked_to THEN d.published_to ELSE d.now END AS silent_from,
    CASE WHEN d.quiet_margin = 0 AND d.published_to < d.asked_to THEN d.asked_to ELSE d.now END AS silent_to
  FROM delays d
),
open_gaps AS (
  ${gapFrom(dialect, "t.from_ts")}
  WHERE s.series = t.series AND coalesce((SELECT g.to_ts FROM ${table("settled_ranges")} g WHERE ${sameKey} AND g.from_ts < t.from_ts
    ORDER BY g.from_ts DESC LIMIT 1), t.from_ts) <= t.from_ts
  UNION ALL
  ${gapFrom(dialect, "r.to_ts")} CROSS JOIN ${table("settled_ranges")} r
  WHERE s.series = t.series AND r.stream = t.stream AND r.series = t.series AND r.to_ts > t.from_ts AND r.to_ts < t.end_ts AND r.from_ts < t.end_ts
),
judged AS (
  SELECT o.*, CASE WHEN o.is_snapshot = 1 THEN o.target_end ELSE coalesce(o.window_start, o.gap_from) END AS lost_until
  FROM open_gaps o
),
kinds AS (SELECT 'lost' AS kind UNION ALL SELECT 'absent' UNION ALL SELECT 'pending' UNION ALL SELECT 'unpublished' UNION ALL SELECT 'later'
  UNION ALL SELECT 'settling'),
reasoned AS (
  SELECT j.stream, j.index_type, j.index_id, j.name, j.service_window, k.kind,
    CASE k.kind WHEN 'lost' THEN j.gap_from WHEN 'absent' THEN ${inside()} WHEN 'pending' THEN ${present()}
      WHEN 'unpublished' THEN ${present("j.silent_from")} WHEN 'later' THEN ${present("j.silent_to")} ELSE ${inside("j.settling_from")} END AS from_ts,
    CASE k.kind WHEN 'lost' THEN ${before("j.lost_until")} WHEN 'absent' THEN ${before("j.settling_from", "j.absent_to")}
      WHEN 'pending' THEN ${before("j.settling_from", "j.silent_from")} WHEN 'unpublished' THEN ${before("j.settling_from", "j.silent_to")}
      WHEN 'later' THEN ${before("j.settling_from")} ELSE j.gap_to END AS to_ts,
    CASE k.kind WHEN 'lost' THEN CASE WHEN j.is_snapshot = 1 THEN '${NOT_OBSERVED_REASON}' ELSE '${AGED_OUT_REASON}' END
      WHEN 'absent' THEN CASE WHEN j.withdrawn_from < j.gap_to THEN '${WITHDRAWAL_REASON}' ELSE j.absent_reason END WHEN 'settling' THEN '${SETTLING_REASON}'
      WHEN 'unpublished' THEN coalesce(j.blocked_reason, '${NOT_PUBLISHED_REASON}')
      ELSE CASE WHEN j.withdrawn_from < j.gap_to THEN '${WITHDRAWAL_REASON}' ELSE coalesce(j.blocked_reason, 'pending') END END AS reason
  FROM judged j CROSS JOIN kinds k
),
parts AS (
  SELECT r.stream, r.index_type, r.index_id, r.name, r.service_window, r.from_ts, r.to_ts,
    CASE r.kind WHEN 'lost' THEN 'lost' ELSE ${gapStateSql("r.reason")} END AS state, r.reason
  FROM reasoned r
  UNION ALL
  SELECT g.stream, s.index_type, s.index_id, s.name, NULL, g.from_ts, g.to_ts, 'lost', g.reason
  FROM ${table("settled_ranges")} g JOIN ${table("series")} s ON s.series = g.series WHERE g.proof = 'lost'
)`;
}
