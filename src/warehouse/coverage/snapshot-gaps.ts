import { type GapState, gapState, SETTLING_REASON } from "../../model/status/gap-state.ts";
import { historyStreams } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { TargetRow } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import { findGaps, NOT_OBSERVED_REASON } from "./gaps.ts";
import { type KeyRanges, type LedgerKey, ledgerKeyText } from "./ledger.ts";
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

const targetsSql = `SELECT stream, series, from_ts AS "from", to_ts AS "to", settle_delay AS settleDelay, step,
    service_window AS serviceWindow
  FROM targets WHERE is_snapshot = 1 ORDER BY stream, series, from_ts`;

const keysSql = `SELECT stream, series FROM targets WHERE is_snapshot = 1
  UNION SELECT stream, series FROM settled_ranges
    WHERE stream NOT IN (${historyStreams.map((stream) => `'${stream}'`).join(", ")})`;

const settledSql = `SELECT from_ts, to_ts, proof = 'lost', reason FROM settled_ranges
  WHERE stream = ? AND series = ? AND from_ts >= ? ORDER BY from_ts LIMIT ${RANGES_PER_READ}`;

/**
 * Every snapshot key with its ranges, ascending, in one or more parts. They equal the views `coverage` and `gaps` (a test
 * compares them). Snapshots with jitter leave hundreds of thousands of short lost ranges: one pass over the ledger takes a
 * tenth of the time of the view, which seeks the end of each gap.
 */
export function* readSnapshotRanges(connection: Connection): Generator<KeyRanges<SnapshotRange>> {
  const now = readPresentTs(connection);
  const targets = Map.groupBy(
    connection.rows<Omit<TargetRow, "isSnapshot" | "blockedReason">>(targetsSql),
    ledgerKeyText,
  );
  for (const key of connection.rows<LedgerKey>(keysSql)) {
    const ownTargets = (targets.get(ledgerKeyText(key)) ?? []).map((row) => ({ ...row, isSnapshot: true }));
    for (const { part, settled } of readChunks(connection, key)) {
      const clipped = ownTargets.map((target) => ({
        ...target,
        from: Math.max(target.from, part.from),
        to: Math.min(target.to ?? part.to, part.to),
      }));
      const gaps = findGaps(clipped, settled, now);
      const ranges: SnapshotRange[] = [];
      let next = 0;
      const addGapsUntil = (end: Micros) => {
        for (let gap = gaps[next]; gap && gap.from < end; gap = gaps[++next]) {
          const { from, to } = gap;
          if (gap.state === "settling")
            ranges.push({ from, to, state: gapState(SETTLING_REASON), reason: SETTLING_REASON });
          else ranges.push({ from, to, state: "lost", reason: NOT_OBSERVED_REASON });
        }
      };
      for (const range of settled) {
        addGapsUntil(range.from);
        ranges.push(range);
      }
      addGapsUntil(part.to);
      yield { key, ranges };
    }
  }
}

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
