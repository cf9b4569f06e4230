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

/** Which gaps, and when. */
export interface GapScope {
  /** The present; default: that of the views. */
  readonly now?: string;
  /** A condition on the ledger key of a table by its alias, for a statement that seeks; default: every key. */
  readonly ofKey?: (alias: string) => string;
}

/** The settled ranges `g` of the key of `t`. */
const sameKey = (g: string, t: string) => `${g}.stream = ${t}.stream AND ${g}.series = ${t}.series`;

/** Where the live spans begin that receive the series: from there on a gap is `settling`. */
const liveFrom = ({ table }: SqlDialect) => `(SELECT min(l.from_ts) FROM ${table("live_spans")} l
      WHERE l.stream = e.stream AND l.index_type = e.index_type AND l.index_id IN ('', e.index_id) AND l.to_ts >= e.target_end AND e.blocked_reason IS NULL)`;

/**
 * Target − settled of all ledger keys, as common table expressions; the result is `parts`, whose empty rows the reader omits. A gap
 * begins where a target begins or a settled range ends, and lasts until the next settled range: one pass over the ledger, one seek for
 * each range. SQLite computes a row once: it flattens no compound with a DISTINCT term, and pushes no condition on `shortest` down.
 */
export function gapPartsSql(dialect: SqlDialect, { now = dialect.presentTs, ofKey }: GapScope = {}): string {
  const { table, integer, text, largest, smallest } = dialect;
  const isInScope = (alias: string) => (ofKey ? `AND ${ofKey(alias)}` : "");
  const settled = table("settled_ranges");
  const lastBefore = (ts: string) =>
    `(SELECT max(g.from_ts) FROM ${settled} g WHERE ${sameKey("g", "e")} AND g.from_ts <= ${ts})`;
  const gapEnd = (start: string, end: string) =>
    `coalesce((SELECT g.from_ts FROM ${settled} g WHERE ${sameKey("g", "t")} AND g.from_ts >= ${start} AND g.from_ts < ${end} ORDER BY g.from_ts LIMIT 1), ${end})`;
  const names = "t.stream, t.series, t.index_type, t.index_id, t.name";
  const afterRange = "CASE WHEN r.to_ts < t.start_ts THEN t.start_ts ELSE r.to_ts END";
  /** The settled ranges `r` of `t` that end before `end`; the first of them begins at `from`, if there is one. */
  const ranges = (from: string, end: string) =>
    `present_targets t CROSS JOIN ${settled} r WHERE ${sameKey("r", "t")} AND r.from_ts >= coalesce(${from}, t.start_ts) AND r.from_ts < ${end} AND r.to_ts < ${end}`;
  const lost = (
    start: string,
    after = start,
  ) => `SELECT ${names}, t.service_window, t.target_end, t.blocked_reason, 'lost' AS kind, ${start} AS from_ts,
    ${gapEnd(after, "t.lost_to")} AS to_ts, CASE WHEN t.is_snapshot = 1 THEN '${NOT_OBSERVED_REASON}' ELSE '${AGED_OUT_REASON}' END AS reason`;
  const openColumns = (
    start: string,
    after: string,
    isNotFound: string,
  ) => `${names}, t.service_window, t.target_end, t.blocked_reason, t.lost_until,
    t.silent_from, t.silent_to, t.absent_to, t.absent_reason, t.quiet_from, t.settle_delay, t.live_from, t.incidents, ${start} AS gap_from, ${gapEnd(after, "t.end_ts")} AS gap_to,
    CASE WHEN ${isNotFound} THEN 1 ELSE 0 END AS is_not_found`;
  const inside = (...bounds: readonly string[]) => largest("j.gap_from", "j.lost_until", ...bounds);
  const present = (...bounds: readonly string[]) => largest(inside(), "j.absent_to", ...bounds);
  const before = (...bounds: readonly string[]) => smallest("j.gap_to", ...bounds);
  return `present AS (SELECT ${now} AS now, 1 AS shortest),
claimed AS (
  SELECT m.stream, m.series, sum(CASE WHEN m.kind IN (${incidentKindsSql}) THEN 1 ELSE 0 END) AS incidents
  FROM ${table("pending_claims")} m WHERE m.accepted_at IS NULL ${isInScope("m")} GROUP BY m.stream, m.series
),
delays AS (
  SELECT w.*, p.now, s.index_type, s.index_id, s.name, ${targetStartSql(dialect, "p.now")} AS start_ts,
    ${largest("w.settle_delay", decayedLatenessSql(dialect, "p.now"))} AS delay, coalesce(u.quiet_margin, 0) AS quiet_margin,
    coalesce(CASE WHEN c.series = w.series THEN ${absenceSql(table, "to")} END, w.from_ts) AS absent_to,
    CASE WHEN c.series = w.series THEN ${absenceSql(table, "reason")} END AS absent_reason, coalesce(c.incidents, 0) AS incidents,
    u.published_to, u.asked_to, CASE WHEN u.quiet_margin > 0 THEN ${quietTimeSql(dialect, "p.now")} ELSE p.now END AS quiet_at
  FROM present p CROSS JOIN ${table("targets")} w CROSS JOIN ${table("series")} s LEFT JOIN ${table("stream_states")} h ON h.stream = w.stream
    LEFT JOIN ${table("publications")} u ON u.stream = w.stream AND u.series = w.series LEFT JOIN claimed c ON c.stream = w.stream AND c.series = w.series
  WHERE s.series = w.series ${isInScope("w")}
),
ends AS MATERIALIZED (
  SELECT d.*, CASE WHEN d.to_ts < d.now THEN d.to_ts ELSE d.now END AS end_ts, (d.now - d.delay) / d.step * d.step AS target_end,
    CASE WHEN d.is_snapshot = 1 THEN (d.now - d.delay) / d.step * d.step ELSE coalesce(d.now - d.service_window, d.start_ts) END AS lost_until
  FROM delays d
),
present_targets AS MATERIALIZED (
  SELECT e.stream, e.series, e.start_ts, e.end_ts, e.lost_until, ${smallest("e.end_ts", "e.lost_until")} AS lost_to, ${lastBefore("e.start_ts")} AS first_from,
    e.is_snapshot, e.index_type, e.index_id, e.name, e.target_end, e.service_window, e.blocked_reason, e.delay AS settle_delay, e.absent_to, e.absent_reason,
    (e.quiet_at - ${largest("e.delay", "e.quiet_margin")}) / e.step * e.step AS quiet_from,
    CASE WHEN e.quiet_margin = 0 AND e.published_to < e.asked_to THEN e.published_to ELSE e.now END AS silent_from,
    CASE WHEN e.quiet_margin = 0 AND e.published_to < e.asked_to THEN e.asked_to ELSE e.now END AS silent_to,
    ${lastBefore(largest("e.start_ts", "e.lost_until"))} AS open_from,
    ${liveFrom(dialect)} AS live_from, e.incidents
  FROM ends e WHERE e.start_ts < e.end_ts
),
open_gaps AS (
  SELECT DISTINCT ${openColumns("t.start_ts", "t.start_ts", "1 = 0")} FROM present_targets t WHERE t.open_from IS NULL AND t.lost_until < t.end_ts
  UNION ALL
  SELECT ${openColumns(afterRange, "r.to_ts", `r.reason = '${NOT_FOUND}' AND r.to_ts >= t.start_ts AND r.to_ts > t.target_end - ${NIGHTLY_INTERVAL_MICROS}`)}
  FROM ${ranges("t.open_from", "t.end_ts")} AND t.lost_until < t.end_ts
),
judged AS (
  SELECT o.*, CASE WHEN o.is_not_found = 1 THEN o.gap_from
      ELSE ${smallest("o.quiet_from", "CASE WHEN o.live_from - o.settle_delay <= o.gap_from THEN o.gap_from ELSE coalesce(o.live_from, o.target_end) END", "o.target_end")} END AS settling_from,
    CASE WHEN o.incidents > 0 THEN (SELECT count(*) FROM ${table("pending_claims")} m WHERE ${sameKey("m", "o")}
      AND m.accepted_at IS NULL AND m.kind IN (${incidentKindsSql}) AND m.to_ts > o.gap_from AND m.from_ts < o.gap_to) ELSE 0 END AS withdrawals
  FROM open_gaps o WHERE o.gap_from < o.gap_to AND o.gap_to > o.lost_until
),
kinds AS (SELECT 'absent' AS kind UNION ALL SELECT 'pending' UNION ALL SELECT 'unpublished' UNION ALL SELECT 'later' UNION ALL SELECT 'settling'),
parts AS (
  SELECT j.stream, j.series, j.index_type, j.index_id, j.name, j.service_window, j.target_end, j.blocked_reason, k.kind,
    CASE k.kind WHEN 'absent' THEN ${inside()} WHEN 'pending' THEN ${present()} WHEN 'unpublished' THEN ${present("j.silent_from")}
      WHEN 'later' THEN ${present("j.silent_to")} ELSE ${inside("j.settling_from")} END AS from_ts,
    CASE k.kind WHEN 'absent' THEN ${before("j.settling_from", "j.absent_to")} WHEN 'pending' THEN ${before("j.settling_from", "j.silent_from")}
      WHEN 'unpublished' THEN ${before("j.settling_from", "j.silent_to")} WHEN 'later' THEN ${before("j.settling_from")} ELSE j.gap_to END AS to_ts,
    CASE WHEN k.kind = 'settling' THEN '${SETTLING_REASON}' WHEN k.kind = 'unpublished' THEN coalesce(j.blocked_reason, '${NOT_PUBLISHED_REASON}')
      WHEN j.withdrawals > 0 THEN '${WITHDRAWAL_REASON}' WHEN k.kind = 'absent' THEN j.absent_reason ELSE coalesce(j.blocked_reason, 'pending') END AS reason
  FROM judged j CROSS JOIN kinds k
  UNION ALL
  ${lost("t.start_ts")} FROM present_targets t WHERE t.first_from IS NULL AND t.start_ts < t.lost_to
  UNION ALL
  ${lost(afterRange, "r.to_ts")} FROM ${ranges("t.first_from", "t.lost_to")}
  UNION ALL
  SELECT DISTINCT g.stream, g.series, s.index_type, s.index_id, s.name, ${integer("NULL")}, ${integer("NULL")}, ${text("NULL")}, 'settled', g.from_ts, g.to_ts, g.reason
  FROM ${settled} g CROSS JOIN ${table("series")} s WHERE s.series = g.series AND g.proof = 'lost' ${isInScope("g")}
)`;
}

/** FROM and WHERE: the parts that are not empty. */
export const longParts = (part: string) =>
  `parts ${part} CROSS JOIN present n WHERE ${part}.to_ts - ${part}.from_ts >= n.shortest`;

/** The state of a part. */
export const partStateSql = (part: string) =>
  `CASE WHEN ${part}.kind IN ('lost', 'settled') THEN 'lost' ELSE ${gapStateSql(`${part}.reason`)} END`;
