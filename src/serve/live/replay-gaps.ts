import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SettledRange } from "../../rule/answer.ts";
import { NOT_OBSERVED_REASON } from "../../warehouse/coverage/gaps.ts";
import type { LedgerKey } from "../../warehouse/coverage/ledger.ts";
import { NOT_FOLLOWED_REASON } from "../../warehouse/read/gap-report.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { findHistoryStart } from "../rest/page-coverage.ts";
import type { Gap, TickSource } from "./tick-sources.ts";

/** The part of the ledger that tells about a source. Markets of an exchange share theirs. */
export interface GapKey extends LedgerKey {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const subscriptionSql = `SELECT s.series FROM series s WHERE s.index_type = '' AND s.index_id = ? AND EXISTS
  (SELECT 1 FROM settled_ranges g WHERE g.stream = 'exchange_ticks' AND g.series = s.series)`;

/** Undefined: the ledger knows nothing about it. */
export function gapKeyOf(connection: Connection, { stream, key, labels }: TickSource): GapKey | undefined {
  if (stream === "index_ticks") return { stream, series: key, name: `${stream} ${key}`, labels };
  const { exchangeId = "" } = labels;
  const find = (id: string) => connection.findValue<number>(subscriptionSql, [id]);
  const ofExchange = find(exchangeId);
  const series = ofExchange ?? find("");
  if (series === undefined) return undefined;
  return {
    stream,
    series,
    name: `${stream} ${series}`,
    labels: ofExchange === undefined ? {} : { exchangeId },
  };
}

interface GapWindow {
  readonly at: Micros;
  readonly end: Micros;
  /** Also returns the gap that `at` is inside of. */
  readonly isFirst: boolean;
  /** Gaps end here at the latest. */
  readonly replayTo: Micros;
  readonly now: Micros;
}

const columns = 'from_ts AS "from", to_ts AS "to", proof, reason';
const ofKey = "FROM settled_ranges WHERE stream = ? AND series = ?";
const beforeSql = `SELECT ${columns} ${ofKey} AND from_ts < ? ORDER BY from_ts DESC LIMIT 1`;
const insideSql = `SELECT ${columns} ${ofKey} AND from_ts >= ? AND from_ts < ? ORDER BY from_ts`;
const afterSql = `SELECT min(from_ts) ${ofKey} AND from_ts >= ?`;

/** The gaps of a ledger key that begin in `[at, end)`, ascending. */
export function findGapStarts(connection: Connection, key: GapKey, window: GapWindow): Gap[] {
  const { at, end, isFirst, replayTo } = window;
  const { stream, series } = key;
  const before = connection.findRow<SettledRange>(beforeSql, [stream, series, at]);
  const inside = connection.rows<SettledRange>(insideSql, [stream, series, at, end]);
  const settled = before ? [before, ...inside] : inside;
  const gaps: Gap[] = [];
  let settledTo = before ? before.from : 0;
  for (const { from, to, proof, reason } of settled) {
    if (settledTo < from)
      gaps.push(...describeUnsettled(connection, key, { from: settledTo, to: from }, window));
    if (proof === "lost") gaps.push({ from, to, state: "lost", reason: reason ?? "lost" });
    settledTo = to;
  }
  if (settledTo < end) {
    const next = connection.value<Micros | null>(afterSql, [stream, series, end]) ?? replayTo;
    gaps.push(...describeUnsettled(connection, key, { from: settledTo, to: next }, window));
  }
  // A gap that begins earlier was announced where it begins.
  return gaps
    .filter(({ from, to }) => (from >= at || (isFirst && to > at)) && from < end && to > from)
    .map((gap) => ({ ...gap, from: Math.max(gap.from, at), to: Math.min(gap.to, replayTo) }));
}

/** Nothing of a snapshot stream can be fetched later; history before the first target was never followed. */
function describeUnsettled(
  connection: Connection,
  key: GapKey,
  { from, to }: TimeRange,
  { now }: GapWindow,
): Gap[] {
  if (key.stream !== "index_ticks") return [{ from, to, state: "lost", reason: NOT_OBSERVED_REASON }];
  const start = Math.min(to, Math.max(from, findHistoryStart(connection, key, now) ?? 0));
  return [
    { from, to: start, state: "lost", reason: NOT_FOLLOWED_REASON },
    { from: start, to, state: "open", reason: "not covered" },
  ];
}
