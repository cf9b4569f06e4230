import { type GapState, gapState, SETTLING_REASON } from "../../model/status/gap-state.ts";
import { historyStreams } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { subtract, type TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import { NOT_OBSERVED_REASON } from "./gaps.ts";
import { type KeyRanges, type LedgerKey, ledgerKeyText } from "./ledger.ts";
import { readSnapshotTargets, type SnapshotTarget } from "./series-gaps.ts";
import { readPresentTs } from "./targets.ts";

/** A range of a ledger key of a snapshot stream: received, lost, or too young to tell. */
interface SnapshotRange extends TimeRange {
  readonly state: "covered" | GapState;
  /** Why it is lost. */
  readonly reason: string | null;
}

type SettledRow = readonly [from: Micros, to: Micros, isLost: 0 | 1, reason: string | null];

/** Chunks take half the time of single rows; all rows at once would need much memory. */
const RANGES_PER_READ = 10_000;

const keysSql = `SELECT stream, series FROM targets WHERE is_snapshot = 1
  UNION SELECT stream, series FROM settled_ranges
    WHERE stream NOT IN (${historyStreams.map((stream) => `'${stream}'`).join(", ")})`;

const settledSql = `SELECT from_ts, to_ts, proof = 'lost', reason FROM settled_ranges
  WHERE stream = ? AND series = ? AND from_ts >= ? ORDER BY from_ts LIMIT ${RANGES_PER_READ}`;

/**
 * Every snapshot key with its ranges, ascending, in one or more parts. They equal the views `coverage` and `gaps` (a test
 * compares them). Snapshots with jitter leave hundreds of thousands of short lost ranges: this reads both in one pass.
 */
export function* readSnapshotRanges(connection: Connection): Generator<KeyRanges<SnapshotRange>> {
  const now = readPresentTs(connection);
  const targets = Map.groupBy(readSnapshotTargets(connection, now), ledgerKeyText);
  for (const key of connection.rows<LedgerKey>(keysSql)) {
    const own = targets.get(ledgerKeyText(key)) ?? [];
    for (const { part, settled } of readChunks(connection, key)) {
      const gaps = own.flatMap((target) => findGaps(target, part, settled));
      const ranges: SnapshotRange[] = [];
      let next = 0;
      for (const range of settled) {
        for (let gap = gaps[next]; gap && gap.from < range.from; gap = gaps[++next]) ranges.push(gap);
        ranges.push(range);
      }
      yield { key, ranges: [...ranges, ...gaps.slice(next)] };
    }
  }
}

/** What no snapshot covers of a part of a target. */
function findGaps(
  { from, to, lostUntil }: SnapshotTarget,
  part: TimeRange,
  settled: readonly TimeRange[],
): SnapshotRange[] {
  const clipped = { from: Math.max(from, part.from), to: Math.min(to, part.to) };
  if (clipped.from >= clipped.to) return [];
  const gaps: SnapshotRange[] = [];
  for (const gap of subtract([clipped], settled)) {
    if (gap.from < lostUntil) gaps.push({ from: gap.from, to: Math.min(gap.to, lostUntil), ...lost });
    if (gap.to > lostUntil) gaps.push({ from: Math.max(gap.from, lostUntil), to: gap.to, ...young });
  }
  return gaps;
}

const lost = { state: "lost", reason: NOT_OBSERVED_REASON } as const;
const young = { state: gapState(SETTLING_REASON), reason: SETTLING_REASON } as const;

interface LedgerChunk {
  /** All settled ranges of this part are in `settled`. The parts of a key are adjacent. */
  readonly part: TimeRange;
  readonly settled: readonly SnapshotRange[];
}

function* readChunks(connection: Connection, { stream, series }: LedgerKey): Generator<LedgerChunk> {
  const statement = connection.statement<SettledRow>(settledSql).raw();
  for (let from: Micros = Number.MIN_SAFE_INTEGER; ; ) {
    const rows = statement.all([stream, series, from]);
    const settled = rows.map(
      ([from, to, isLost, reason]): SnapshotRange => ({
        from,
        to,
        state: isLost ? "lost" : "covered",
        reason,
      }),
    );
    const last = settled.length < RANGES_PER_READ ? undefined : settled.at(-1);
    const to = last?.to ?? Number.POSITIVE_INFINITY;
    yield { part: { from, to }, settled };
    if (!last) return;
    from = to;
  }
}
