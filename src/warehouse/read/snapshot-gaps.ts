import { historyStreams } from "../../model/streams.ts";
import { formatInstant, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import { presentTs } from "../views/sql-fragments.ts";
import { CellSums, type TimeGrid } from "./heatmap-grid.ts";
import { type LineRow, lineKey, type MissingPart } from "./heatmap-types.ts";

/** A line of a latest-only stream. */
export interface ObservedLine {
  readonly stream: string;
  readonly series: number;
}

/** A stretch of one: seen, missed for ever, or too young to be either. */
export interface ObservedStretch extends TimeRange {
  readonly state: "covered" | "lost" | "settling";
  /** Why it is lost. */
  readonly reason: string | null;
}

interface Claim extends ObservedLine, TimeRange {
  /** What lies after it is too young to be claimed. */
  readonly claimed: Micros;
}

/** For a condition on `stream`: lines of these have a history, and a ledger of few ranges. */
export const isWalkedSql = `stream IN (${historyStreams.map((stream) => `'${stream}'`).join(", ")})`;

/** Many at once are read in half the time of one by one; all at once would be a heap of them. */
const RANGES_AT_ONCE = 10_000;

const claimsSql = `SELECT w.stream, w.series, w.from_ts AS "from", min(coalesce(w.to_ts, m.now), m.now) AS "to",
    (m.now - w.settle_delay) / w.step * w.step AS claimed
  FROM (SELECT ${presentTs} AS now) m CROSS JOIN wanted_ranges w WHERE w.observed = 1
  ORDER BY w.stream, w.series, w.from_ts`;

const linesSql = `SELECT stream, series FROM wanted_ranges WHERE observed = 1
  UNION SELECT stream, series FROM settled_ranges WHERE NOT ${isWalkedSql}`;

const settledSql = `SELECT from_ts, to_ts, proof = 'lost', reason FROM settled_ranges
  WHERE stream = ? AND series = ? AND from_ts > ? ORDER BY from_ts LIMIT ${RANGES_AT_ONCE}`;

/**
 * Tells every stretch of every latest-only line, ascending per line: the same as `coverage` and `gaps` say, which a test
 * holds it to. Observations with jitter leave a sliver lost after each of them; with hundreds of thousands of those one
 * pass over the ledger takes a tenth of what the view needs, which seeks the end of each gap.
 */
export function walkObserved(
  connection: Connection,
  visit: (line: ObservedLine, stretch: ObservedStretch) => void,
): void {
  const claims = Map.groupBy(connection.statement(claimsSql).all() as Claim[], keyOf);
  for (const line of connection.statement(linesSql).all() as ObservedLine[]) {
    const own = claims.get(keyOf(line)) ?? [];
    let end = Number.NEGATIVE_INFINITY;
    for (const [from, to, isLost, reason] of settledRanges(connection, line)) {
      if (from > end) tellGap(own, { from: end, to: from }, visit);
      visit(line, { from, to, state: isLost ? "lost" : "covered", reason });
      end = to;
    }
    tellGap(own, { from: end, to: Number.POSITIVE_INFINITY }, visit);
  }
}

function keyOf({ stream, series }: ObservedLine): string {
  return `${stream} ${series}`;
}

type SettledRow = readonly [from: Micros, to: Micros, isLost: 0 | 1, reason: string | null];

function* settledRanges(connection: Connection, { stream, series }: ObservedLine): Generator<SettledRow> {
  const statement = connection.statement(settledSql).raw();
  let after: Micros = Number.MIN_SAFE_INTEGER;
  for (;;) {
    const rows = statement.all([stream, series, after]) as SettledRow[];
    yield* rows;
    if (rows.length < RANGES_AT_ONCE) return;
    after = rows.at(-1)?.[0] ?? after;
  }
}

function tellGap(
  claims: readonly Claim[],
  gap: TimeRange,
  visit: (line: ObservedLine, stretch: ObservedStretch) => void,
): void {
  for (const claim of claims) {
    const from = Math.max(gap.from, claim.from);
    const to = Math.min(gap.to, claim.to);
    const lostTo = Math.min(to, claim.claimed);
    if (from < lostTo) visit(claim, { from, to: lostTo, state: "lost", reason: "not observed" });
    const settlingFrom = Math.max(from, claim.claimed);
    if (settlingFrom < to) visit(claim, { from: settlingFrom, to, state: "settling", reason: "settling" });
  }
}

/** A latest-only line: too many stretches to keep, so only what they add up to. */
export interface ObservedCells {
  readonly cells: CellSums;
  /** What is lost, by reason. */
  readonly parts: Map<string, LossSum>;
}

export interface LossSum {
  readonly line: LineRow;
  readonly reason: string;
  ranges: number;
  micros: number;
  readonly from: Micros;
  to: Micros;
}

/** The latest-only lines by `lineKey`, each in the grid that it is shown in. */
export function readObserved(
  connection: Connection,
  lines: readonly LineRow[],
  gridOf: (line: LineRow) => TimeGrid,
): Map<string, ObservedCells> {
  const known = new Map(lines.map((line) => [`${line.stream} ${line.series}`, line]));
  const found = new Map<string, ObservedCells>();
  let [last, at]: [string, ObservedCells | undefined] = ["", undefined];
  walkObserved(connection, ({ stream, series }, { from, to, state, reason }) => {
    const key = `${stream} ${series}`;
    const line = known.get(key);
    if (!line) return;
    if (key !== last || !at) {
      at = { cells: new CellSums(gridOf(line)), parts: new Map() };
      last = key;
      found.set(lineKey(line), at);
    }
    at.cells.add({ from, to }, state);
    if (state !== "lost") return;
    const why = reason ?? "unknown";
    const sum = at.parts.get(why) ?? { line, reason: why, ranges: 0, micros: 0, from, to };
    sum.ranges++;
    sum.micros += to - from;
    sum.to = to;
    at.parts.set(why, sum);
  });
  return found;
}

export function partSeen({ line, reason, ranges, micros, from, to }: LossSum): MissingPart {
  return {
    stream: line.stream,
    index_type: line.index_type || null,
    index_id: line.index_id || null,
    name: line.name || null,
    state: "lost",
    reason,
    ranges,
    seconds: Math.round(micros / MICROS_PER_SECOND),
    from_time: formatInstant(from),
    to_time: formatInstant(to),
    lost_at: null,
  };
}
