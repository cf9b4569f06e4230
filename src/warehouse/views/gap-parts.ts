import { gapStateSql, SETTLING_REASON } from "../../model/status/gap-state.ts";
import { streams, streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND } from "../../model/time.ts";
import { AGED_OUT_REASON, NOT_FOUND } from "../../rule/answer.ts";
import {
  absenceSql,
  incidentKindsSql,
  NIGHTLY_INTERVAL_MICROS,
  WITHDRAWAL_REASON,
} from "../coverage/pending-claims.ts";
import { decayedLatenessSql, NOT_PUBLISHED_REASON, quietTimeSql } from "../coverage/publication.ts";
import type { SqlDialect } from "./sql-dialect.ts";

/** The service's clock is known from its responses, and better after more of them: the window's start may seem to move back. */
const MAX_CLOCK_ERROR = 60 * MICROS_PER_SECOND;

/**
 * Where the target `w` begins. Until REST has proven its oldest part, it begins where the service's window does: the first
 * walk takes time, and what leaves the window meanwhile was never promised.
 */
export function targetStartSql({ table, largest }: Pick<SqlDialect, "table" | "largest">, now: string) {
  const firstSettled = `(SELECT min(f.from_ts) FROM ${table("settled_ranges")} f
    WHERE f.stream = w.stream AND f.series = w.series AND f.from_ts <= ${now} - w.service_window + ${MAX_CLOCK_ERROR})`;
  return `CASE WHEN w.is_snapshot = 1 OR w.service_window IS NULL THEN w.from_ts
    ELSE ${largest("w.from_ts", `coalesce(${firstSettled}, ${now} - w.service_window)`)} END`;
}

/** Reason of ranges that no snapshot covered. */
export const NOT_OBSERVED_REASON = "not observed";

/** Which gaps, and when. */
interface GapScope {
  /** The present; default: that of the views. */
  readonly now?: string;
  /** A condition on the ledger key of a table by its alias, for a statement that seeks; default: every key. */
  readonly ofKey?: (alias: string) => string;
}

const ledgerStreams = streams.filter((stream) => streamTable[stream].kind !== "lookup");

/** The settled ranges `g` of the key of `t`. */
const sameKey = (g: string, t: string) => `${g}.stream = ${t}.stream AND ${g}.series = ${t}.series`;

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
    `(SELECT max(g.from_ts) FROM ${settled} g WHERE ${sameKey("g", "t")} AND g.from_ts <= ${ts})`;
  const gapEnd = (start: string, end: string) =>
    `coalesce((SELECT g.from_ts FROM ${settled} g WHERE ${sameKey("g", "t")} AND g.from_ts >= ${start} AND g.from_ts < ${end} ORDER BY g.from_ts LIMIT 1), ${end})`;
  const delay = largest("w.settle_delay", decayedLatenessSql(dialect, "p.now"));
  const targetEnd = `(p.now - ${delay}) / w.step * w.step`;
  const names =
    "t.stream, t.series, t.index_type, t.index_id, t.name, t.service_window, t.target_end, t.blocked_reason";
  const afterRange = "CASE WHEN r.to_ts < t.start_ts THEN t.start_ts ELSE r.to_ts END";
  /** The settled ranges `r` of `t` from the one at `from` on that end before `end`, if `isDue`. */
  const ranges = (from: string, end: string, joins: string, isDue: string) =>
    `present_targets t CROSS JOIN ${settled} r ${joins} WHERE ${isDue} AND ${sameKey("r", "t")} AND r.from_ts >= coalesce(${lastBefore(from)}, t.start_ts) AND r.from_ts < ${end} AND r.to_ts < ${end}`;
  const lost = (start: string, after = start) => `SELECT ${names}, 'lost' AS kind, ${start} AS from_ts,
    ${gapEnd(after, "t.lost_to")} AS to_ts, CASE WHEN t.is_snapshot = 1 THEN '${NOT_OBSERVED_REASON}' ELSE '${AGED_OUT_REASON}' END AS reason`;
  const isLostDue = "t.start_ts < t.lost_to";
  const shownJoins = `LEFT JOIN ${table("publications")} u ON ${sameKey("u", "t")} LEFT JOIN claimed c ON ${sameKey("c", "t")}`;
  const firstOpen = largest("t.start_ts", "t.lost_until");
  const isOpenDue = "t.lost_until < t.end_ts";
  const isSilent = "u.quiet_margin = 0 AND u.published_to < u.asked_to";
  const quietFrom = `(CASE WHEN u.quiet_margin > 0 THEN ${quietTimeSql(dialect, "t.now")} ELSE t.now END - ${largest("t.delay", "coalesce(u.quiet_margin, 0)")}) / t.step * t.step`;
  /** Where the live spans begin that receive the series: from there on a gap is `settling`. */
  const liveFrom = (
    start: string,
  ) => `(SELECT CASE WHEN min(l.from_ts) - t.delay <= ${start} THEN ${start} ELSE min(l.from_ts) END FROM ${table("live_spans")} l
      WHERE l.stream = t.stream AND l.index_type = t.index_type AND l.index_id IN ('', t.index_id) AND l.to_ts >= t.target_end AND t.blocked_reason IS NULL)`;
  const openColumns = (start: string, after: string, settlingFrom: string) => `${names}, t.lost_until,
    CASE WHEN ${isSilent} THEN u.published_to ELSE t.now END AS silent_from, CASE WHEN ${isSilent} THEN u.asked_to ELSE t.now END AS silent_to,
    coalesce(CASE WHEN c.series = t.series THEN ${absenceSql(table, "t", "to")} END, t.start_ts) AS absent_to, coalesce(c.incidents, 0) AS incidents,
    CASE WHEN c.series = t.series OR ${isSilent} THEN 1 ELSE 0 END AS is_unusual,
    ${start} AS gap_from, ${gapEnd(after, "t.end_ts")} AS gap_to, ${settlingFrom} AS settling_from`;
  const settlingFrom = (start: string) =>
    smallest(quietFrom, `coalesce(${liveFrom(start)}, t.target_end)`, "t.target_end");
  const isNotFound = `r.reason = '${NOT_FOUND}' AND r.to_ts >= t.start_ts AND r.to_ts > t.target_end - ${NIGHTLY_INTERVAL_MICROS}`;
  /** A condition on a name, which users have, seeks the ranges of its series in each stream. */
  const lostOf = ofKey
    ? `${settled} g CROSS JOIN ${table("series")} s WHERE ${ofKey("g")}`
    : `${table("series")} s CROSS JOIN ledgers k CROSS JOIN ${settled} g WHERE g.stream = k.stream`;
  const inside = (...bounds: readonly string[]) => largest("j.gap_from", "j.lost_until", ...bounds);
  const present = (...bounds: readonly string[]) => largest(inside(), "j.absent_to", ...bounds);
  const before = (...bounds: readonly string[]) => smallest("j.gap_to", ...bounds);
  return `present AS (SELECT ${now} AS now, 1 AS shortest),
claimed AS (
  SELECT m.stream, m.series, sum(CASE WHEN m.kind IN (${incidentKindsSql}) THEN 1 ELSE 0 END) AS incidents
  FROM ${table("pending_claims")} m WHERE m.accepted_at IS NULL ${isInScope("m")} GROUP BY m.stream, m.series
),
started AS MATERIALIZED (
  SELECT w.stream, w.series, s.index_type, s.index_id, s.name, p.now, w.step, w.service_window, w.is_snapshot, w.blocked_reason, ${delay} AS delay,
    ${targetStartSql(dialect, "p.now")} AS start_ts, CASE WHEN w.to_ts < p.now THEN w.to_ts ELSE p.now END AS end_ts, ${targetEnd} AS target_end,
    CASE WHEN w.is_snapshot = 1 THEN ${targetEnd} ELSE coalesce(p.now - w.service_window, w.from_ts) END AS lost_until
  FROM present p CROSS JOIN ${table("targets")} w CROSS JOIN ${table("series")} s LEFT JOIN ${table("stream_states")} h ON h.stream = w.stream
  WHERE s.series = w.series ${isInScope("w")}
),
present_targets AS (SELECT t.*, ${smallest("t.end_ts", "t.lost_until")} AS lost_to FROM started t),
open_gaps AS (
  SELECT DISTINCT ${openColumns("t.start_ts", "t.start_ts", settlingFrom("t.start_ts"))} FROM present_targets t ${shownJoins} WHERE ${isOpenDue} AND ${lastBefore(firstOpen)} IS NULL
  UNION ALL
  SELECT ${openColumns(afterRange, "r.to_ts", `CASE WHEN ${isNotFound} THEN r.to_ts ELSE ${settlingFrom(afterRange)} END`)}
  FROM ${ranges(firstOpen, "t.end_ts", shownJoins, isOpenDue)}
),
ledgers AS (${ledgerStreams.map((stream) => `SELECT '${stream}' AS stream`).join(" UNION ALL ")}),
kinds AS (SELECT 'pending' AS kind, 0 AS is_unusual UNION ALL SELECT 'settling', 0 UNION ALL SELECT 'absent', 1 UNION ALL SELECT 'unpublished', 1 UNION ALL SELECT 'later', 1),
parts AS (
  SELECT j.stream, j.series, j.index_type, j.index_id, j.name, j.service_window, j.target_end, j.blocked_reason, k.kind,
    CASE k.kind WHEN 'settling' THEN ${inside("j.settling_from")} WHEN 'pending' THEN ${present()} WHEN 'absent' THEN ${inside()}
      WHEN 'unpublished' THEN ${present("j.silent_from")} ELSE ${present("j.silent_to")} END AS from_ts,
    CASE k.kind WHEN 'settling' THEN j.gap_to WHEN 'pending' THEN ${before("j.settling_from", "j.silent_from")} WHEN 'absent' THEN ${before("j.settling_from", "j.absent_to")}
      WHEN 'unpublished' THEN ${before("j.settling_from", "j.silent_to")} ELSE ${before("j.settling_from")} END AS to_ts,
    CASE WHEN k.kind = 'settling' THEN '${SETTLING_REASON}' WHEN k.kind = 'unpublished' THEN coalesce(j.blocked_reason, '${NOT_PUBLISHED_REASON}')
      WHEN j.incidents > 0 AND EXISTS (SELECT 1 FROM ${table("pending_claims")} m WHERE ${sameKey("m", "j")} AND m.accepted_at IS NULL
        AND m.kind IN (${incidentKindsSql}) AND m.to_ts > j.gap_from AND m.from_ts < j.gap_to) THEN '${WITHDRAWAL_REASON}'
      WHEN k.kind = 'absent' THEN ${absenceSql(table, "j", "reason")} ELSE coalesce(j.blocked_reason, 'pending') END AS reason
  FROM open_gaps j CROSS JOIN kinds k CROSS JOIN present n WHERE k.is_unusual <= j.is_unusual AND j.gap_to - j.gap_from >= n.shortest
  UNION ALL
  ${lost("t.start_ts")} FROM present_targets t WHERE ${isLostDue} AND ${lastBefore("t.start_ts")} IS NULL
  UNION ALL
  ${lost(afterRange, "r.to_ts")} FROM ${ranges("t.start_ts", "t.lost_to", "", isLostDue)}
  UNION ALL
  SELECT DISTINCT g.stream, g.series, s.index_type, s.index_id, s.name, ${integer("NULL")}, ${integer("NULL")}, ${text("NULL")}, 'settled', g.from_ts, g.to_ts, g.reason
  FROM ${lostOf} AND s.series = g.series AND g.proof = 'lost'
)`;
}

/** FROM and WHERE: the parts that are not empty. */
export const longParts = (part: string) =>
  `parts ${part} CROSS JOIN present n WHERE ${part}.to_ts - ${part}.from_ts >= n.shortest`;

export const partStateSql = (part: string) =>
  `CASE WHEN ${part}.kind IN ('lost', 'settled') THEN 'lost' ELSE ${gapStateSql(`${part}.reason`)} END`;
