import { NOT_AT_SOURCE_REASON } from "../../api-server/history.ts";
import type { CoverageSegment, HistoryRecord } from "../../api-server/source.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { LedgerKey } from "../../warehouse/coverage/ledger.ts";
import { NOT_FOLLOWED_REASON } from "../../warehouse/read/gap-report.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { NOT_OBSERVED_REASON } from "../../warehouse/views/gap-parts.ts";
import { readSegments } from "../records/page-coverage.ts";
import { type Gap, type GapSubject, gapText, type TickSource } from "./tick-sources.ts";

const subscriptionSql = `SELECT s.series FROM series s WHERE s.index_type = '' AND s.index_id = ? AND EXISTS
  (SELECT 1 FROM settled_ranges g WHERE g.stream = 'exchange_ticks' AND g.series = s.series)`;

type GapKey = GapSubject & LedgerKey;

/** The ledger key of a source; undefined: none. Markets of an exchange share theirs. */
function findGapKey(connection: Connection, { stream, key, labels }: TickSource): GapKey | undefined {
  if (stream === "index_ticks") return { stream, series: key, labels };
  const { exchangeId = "" } = labels;
  const find = (id: string) => connection.findValue<number>(subscriptionSql, [id]);
  const ofExchange = find(exchangeId);
  if (ofExchange !== undefined) return { stream, series: ofExchange, labels: { exchangeId } };
  const series = find("");
  return series === undefined ? undefined : { stream, series, labels: {} };
}

/** The messages about ranges of the replay in which ticks may be missing. */
export function findGapMessages(
  connection: Connection,
  sources: readonly TickSource[],
  range: TimeRange,
  now: Micros,
): HistoryRecord[] {
  const keys = new Map<string, GapKey>();
  for (const source of sources) {
    const key = findGapKey(connection, source);
    if (key) keys.set(`${key.stream} ${key.series}`, key);
  }
  return [...keys.values()].flatMap((key) => {
    const segments = readSegments(connection, key, range.to, now);
    return describeGaps(key, segments, range.from).map((gap) => ({ ts: gap.from, text: gapText(key, gap) }));
  });
}

/** `segments`: newest first. */
function describeGaps({ stream }: GapSubject, segments: Iterable<CoverageSegment>, start: Micros): Gap[] {
  const gaps: Gap[] = [];
  for (const { from, to, state, reason } of segments) {
    if (to <= start) break;
    if (state === "covered" || state === "empty") continue;
    const gap: Gap = { from: Math.max(from, start), to, ...describe(stream, state === "lost", reason) };
    const above = gaps.at(-1);
    if (above?.from === to && above.state === gap.state && above.reason === gap.reason)
      gaps[gaps.length - 1] = { ...gap, to: above.to };
    else gaps.push(gap);
  }
  return gaps;
}

/** Nothing of a snapshot stream can be fetched later; history before the first target was never followed. */
function describe(stream: string, isLost: boolean, reason: string | null): Pick<Gap, "state" | "reason"> {
  const isBefore = reason === NOT_AT_SOURCE_REASON;
  if (stream !== "index_ticks" && (!isLost || isBefore))
    return { state: "lost", reason: NOT_OBSERVED_REASON };
  if (!isLost) return { state: "open", reason: "not covered" };
  return { state: "lost", reason: isBefore ? NOT_FOLLOWED_REASON : (reason ?? "lost") };
}
