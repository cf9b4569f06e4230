import { historyStreams } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import { presentTs } from "../views/sql-fragments.ts";
import { CellSums, type TimeGrid } from "../read/heatmap-grid.ts";
import { type GapSummary, type HeatmapKey, heatmapKeyText } from "../read/heatmap-types.ts";

/** A ledger key of a snapshot stream. */
interface SnapshotKey {
  readonly stream: string;
  readonly series: number;
}

/** A range of such a key: received, lost, or too young to tell. */
interface SnapshotRange extends TimeRange {
  readonly state: "covered" | "lost" | "settling";
  /** Why it is lost. */
  readonly reason: string | null;
}

interface TargetRow extends SnapshotKey, TimeRange {
  /** Now − settle delay: what is younger may still be received. */
  readonly lostTo: Micros;
}

/** SQL condition on `stream`. The ledger of a history stream has few ranges, that of a snapshot stream may have many. */
export const isHistoryStreamSql = `stream IN (${historyStreams.map((stream) => `'${stream}'`).join(", ")})`;

/** Chunks take half the time of single rows; all rows at once would need much memory. */
const RANGES_PER_READ = 10_000;

const targetsSql = `SELECT w.stream, w.series, w.from_ts AS "from", min(coalesce(w.to_ts, m.now), m.now) AS "to",
    (m.now - w.settle_delay) / w.step * w.step AS lostTo
  FROM (SELECT ${presentTs} AS now) m CROSS JOIN wanted_ranges w WHERE w.observed = 1
  ORDER BY w.stream, w.series, w.from_ts`;

const keysSql = `SELECT stream, series FROM wanted_ranges WHERE observed = 1
  UNION SELECT stream, series FROM settled_ranges WHERE NOT ${isHistoryStreamSql}`;

const settledSql = `SELECT from_ts, to_ts, proof = 'lost', reason FROM settled_ranges
  WHERE stream = ? AND series = ? AND from_ts > ? ORDER BY from_ts LIMIT ${RANGES_PER_READ}`;

/**
 * Calls `visit` for every range of every snapshot key, ascending per key. The result equals the views `coverage` and
 * `gaps` (a test compares them). Snapshots with jitter leave hundreds of thousands of short lost ranges: one pass over
 * the ledger takes a tenth of the time of the view, which seeks the end of each gap.
 */
export function forEachSnapshotRange(
  connection: Connection,
  visit: (key: SnapshotKey, range: SnapshotRange) => void,
): void {
  const targets = Map.groupBy(connection.statement(targetsSql).all() as TargetRow[], keyText);
  for (const key of connection.statement(keysSql).all() as SnapshotKey[]) {
    const ownTargets = targets.get(keyText(key)) ?? [];
    let end = Number.NEGATIVE_INFINITY;
    for (const [from, to, isLost, reason] of readRangeChunks(connection, key)) {
      if (from > end) visitGap(ownTargets, { from: end, to: from }, visit);
      visit(key, { from, to, state: isLost ? "lost" : "covered", reason });
      end = to;
    }
    visitGap(ownTargets, { from: end, to: Number.POSITIVE_INFINITY }, visit);
  }
}

function keyText({ stream, series }: SnapshotKey): string {
  return `${stream} ${series}`;
}

type SettledRow = readonly [from: Micros, to: Micros, isLost: 0 | 1, reason: string | null];

function* readRangeChunks(connection: Connection, { stream, series }: SnapshotKey): Generator<SettledRow> {
  const statement = connection.statement(settledSql).raw();
  let after: Micros = Number.MIN_SAFE_INTEGER;
  for (;;) {
    const rows = statement.all([stream, series, after]) as SettledRow[];
    yield* rows;
    if (rows.length < RANGES_PER_READ) return;
    after = rows.at(-1)?.[0] ?? after;
  }
}

function visitGap(
  targets: readonly TargetRow[],
  gap: TimeRange,
  visit: (key: SnapshotKey, range: SnapshotRange) => void,
): void {
  for (const target of targets) {
    const from = Math.max(gap.from, target.from);
    const to = Math.min(gap.to, target.to);
    const lostTo = Math.min(to, target.lostTo);
    if (from < lostTo) visit(target, { from, to: lostTo, state: "lost", reason: "not observed" });
    const settlingFrom = Math.max(from, target.lostTo);
    if (settlingFrom < to) visit(target, { from: settlingFrom, to, state: "settling", reason: "settling" });
  }
}

/** The sums of a snapshot key: it may have too many ranges to hold in memory. */
export interface SnapshotCells {
  readonly cells: CellSums;
  /** The lost ranges by reason. */
  readonly losses: Map<string, LossSummary>;
}

interface LossSummary {
  readonly key: HeatmapKey;
  readonly reason: string;
  ranges: number;
  micros: number;
  readonly from: Micros;
  to: Micros;
}

/** The sums of all snapshot keys by `heatmapKeyText`, each on the grid that `gridOf` returns. */
export function readSnapshotCells(
  connection: Connection,
  keys: readonly HeatmapKey[],
  gridOf: (key: HeatmapKey) => TimeGrid,
): Map<string, SnapshotCells> {
  const known = new Map(keys.map((key) => [keyText(key), key]));
  const found = new Map<string, SnapshotCells>();
  let [lastText, current]: [string, SnapshotCells | undefined] = ["", undefined];
  forEachSnapshotRange(connection, (snapshotKey, { from, to, state, reason }) => {
    const text = keyText(snapshotKey);
    const key = known.get(text);
    if (!key) return;
    if (text !== lastText || !current) {
      current = { cells: new CellSums(gridOf(key)), losses: new Map() };
      lastText = text;
      found.set(heatmapKeyText(key), current);
    }
    current.cells.add({ from, to }, state);
    if (state !== "lost") return;
    const lossReason = reason ?? "unknown";
    const sum = current.losses.get(lossReason) ?? { key, reason: lossReason, ranges: 0, micros: 0, from, to };
    sum.ranges++;
    sum.micros += to - from;
    sum.to = to;
    current.losses.set(lossReason, sum);
  });
  return found;
}

export function toGapSummary({ key, reason, ranges, micros, from, to }: LossSummary): GapSummary {
  return {
    stream: key.stream,
    index_type: key.index_type || null,
    index_id: key.index_id || null,
    name: key.name || null,
    state: "lost",
    reason,
    ranges,
    seconds: Math.round(micros / MICROS_PER_SECOND),
    from_time: formatTimestamp(from),
    to_time: formatTimestamp(to),
    lost_at: null,
  };
}
