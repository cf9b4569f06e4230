import { NOT_AT_SOURCE_REASON } from "../../api-server/history.ts";
import type { CoverageSegment } from "../../api-server/source.ts";
import { gapState } from "../../model/status/gap-state.ts";
import type { Micros } from "../../model/time.ts";
import { intersect, normalise, type TimeRange } from "../../model/time-range.ts";
import type { PendingClaim, SettledRange } from "../../rule/answer.ts";
import { isIncident } from "../../rule/confirm.ts";
import type { LedgerKey } from "../../warehouse/coverage/ledger.ts";
import { pendingReasons, readPendingClaims } from "../../warehouse/coverage/pending-claims.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { targetStartSql } from "../../warehouse/views/gap-parts.ts";
import { sqliteDialect } from "../../warehouse/views/sqlite-dialect.ts";

const settledSql = `SELECT from_ts AS "from", to_ts AS "to", proof, reason FROM settled_ranges
  WHERE stream = ? AND series = ? AND from_ts < ? ORDER BY from_ts DESC`;

const startSql = `SELECT min(l.from_ts) FROM (
    SELECT ${targetStartSql(sqliteDialect, "CAST(@now AS INTEGER)")} AS from_ts FROM targets w WHERE w.stream = @stream AND w.series = @series
    UNION ALL SELECT min(g.from_ts) FROM settled_ranges g WHERE g.stream = @stream AND g.series = @series) l`;

/** Where the history of a series begins in this warehouse; undefined: nothing of it was ever selected or settled. */
function findHistoryStart(
  connection: Connection,
  { stream, series }: LedgerKey,
  now: Micros,
): Micros | undefined {
  return connection.value<Micros | null>(startSql, { stream, series, now }) ?? undefined;
}

/** The segments of a series below `end`, newest first, without a gap between them, down to the smallest timestamp. */
export function* readSegments(
  connection: Connection,
  { stream, series }: LedgerKey,
  end: Micros,
  now: Micros,
): Generator<CoverageSegment> {
  const start = findHistoryStart(connection, { stream, series }, now);
  const open = function* (from: Micros, to: Micros): Generator<CoverageSegment> {
    // Nothing is known about a series that was never selected: all of it is open.
    const openFrom = start === undefined ? from : Math.max(from, start);
    if (openFrom < to) yield* splitOpen(claims, { from: openFrom, to });
    const lostTo = Math.min(to, openFrom);
    if (from < lostTo) yield { from, to: lostTo, state: "lost", reason: NOT_AT_SOURCE_REASON };
  };
  const claims = readPendingClaims(connection, stream, series).get(series) ?? [];
  let at = end;
  for (const { from, to, proof, reason } of connection.rows<SettledRange>(settledSql, [stream, series, at])) {
    if (to < at) yield* open(to, at);
    const state = proof === "rows" ? "covered" : proof;
    yield { from, to: Math.min(to, at), state, reason };
    at = from;
  }
  if (at > 0) yield* open(0, at);
}

/** An open range, newest part first: with a reason where the service has claimed something that it must repeat. */
function* splitOpen(claims: readonly PendingClaim[], { from, to }: TimeRange): Generator<CoverageSegment> {
  let at = to;
  // Of an end, everything below is claimed: see `absenceSql`.
  const claimed = claims.map(({ kind, range }) => ({
    kind,
    ...range,
    from: isIncident(kind) ? range.from : 0,
  }));
  for (const { kind, ...range } of claimed.sort((a, b) => b.from - a.from)) {
    const [part] = intersect([range], normalise([{ from, to: at }]));
    if (!part) continue;
    const reason = pendingReasons[kind] ?? "";
    if (part.to < at) yield { from: part.to, to: at, state: "open", reason: null };
    yield { ...part, state: gapState(reason), reason };
    at = part.from;
  }
  if (from < at) yield { from, to: at, state: "open", reason: null };
}

/** Where the oldest intraday history of any series begins; undefined: there is none. */
export function findWindowStart(connection: Connection): Micros | undefined {
  const sql = "SELECT min(from_ts) FROM settled_ranges WHERE stream = 'index_ticks'";
  return connection.value<Micros | null>(sql) ?? undefined;
}
