import { type SnapshotStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { containsTimestamp, normalise, subtract, type TimeRange, union } from "../../model/time-range.ts";
import { createRowSeeks } from "../audit/row-seeks.ts";
import { findTouching, settle } from "../coverage/ledger.ts";
import { NOTHING_LISTED_REASON } from "../coverage/snapshot-coverage.ts";
import { RETENTION_REASON } from "../rows/retention.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { type MergeCounts, type MergePiece, type MergeStep, planKeyMerge } from "./merge-plan.ts";
import {
  addMissingRows,
  asOurs,
  countNewRows,
  cutIntoChunks,
  type KeyPair,
  mergeTargets,
  readKeyPairs,
  readRanges,
  replaceDifferingRows,
} from "./merge-tables.ts";

/** A subscription that the other warehouse has in its ledger; its exchange is empty for all. */
interface SubscriptionPlan extends KeyPair {
  readonly pieces: readonly MergePiece[];
  /** Lost there for a reason, and not settled here. */
  readonly lost: readonly (TimeRange & { readonly reason: string })[];
}

/** A ledger may have hundreds of thousands of short ranges. */
const RANGES_PER_STEP = 2_000;

/**
 * Merges a snapshot stream. A snapshot does not prove that there are no other rows: the settings may have selected fewer
 * markets. So every row that we lack is added, and all rows are stored before the first range is settled.
 */
export function* mergeSnapshots(
  connection: Connection,
  stream: SnapshotStream,
  counts: MergeCounts[SnapshotStream],
): Generator<MergeStep> {
  // Read first: the other warehouse may be in use, and its rows are stored before their coverage.
  const plans = readSubscriptions(connection, stream).map((each) =>
    planSubscription(connection, stream, each),
  );
  const proven = new Map(plans.map(({ exchangeId, pieces }) => [exchangeId, normalise(pieces)]));
  const table: RowTable<never> = rowTables[stream];
  const kept = { from: readRetentionEnd(connection, stream), to: Number.MAX_SAFE_INTEGER };
  for (const pair of readKeyPairs(connection, stream)) {
    const ranges = union(proven.get("") ?? [], proven.get(pair.exchangeId) ?? []);
    for (const chunk of cutIntoChunks(connection, table, pair.theirs, kept)) {
      if (chunk.rows === 0) continue;
      counts.rows += countNewRows(connection, table, pair, chunk);
      yield {
        stream,
        rows: chunk.rows,
        work(transaction) {
          const isProven = (ts: Micros) => containsTimestamp(ranges, ts);
          counts.replaced += replaceDifferingRows(transaction, table, asOurs(pair), chunk, isProven);
          addMissingRows(transaction, table, asOurs(pair), chunk);
        },
      };
    }
  }
  for (const plan of plans) {
    yield { stream, rows: 0, work: (transaction) => mergeTargets(transaction, stream, asOurs(plan)) };
    counts.micros += plan.pieces.reduce((sum, { from, to }) => sum + to - from, 0);
    for (let at = 0; at < plan.pieces.length; at += RANGES_PER_STEP) {
      const part = plan.pieces.slice(at, at + RANGES_PER_STEP);
      yield {
        stream,
        rows: 0,
        work: (transaction) => settlePieces(transaction, connection, stream, plan, part),
      };
    }
    if (plan.lost.length > 0)
      yield {
        stream,
        rows: 0,
        work(transaction) {
          for (const { from, to, reason } of plan.lost)
            settle(transaction, { stream, series: asOurs(plan).ours }, { from, to }, "lost", reason);
        },
      };
  }
}

function readSubscriptions(reader: SqlRunner, stream: SnapshotStream): KeyPair[] {
  return reader.rows<KeyPair>(
    `SELECT o.series AS theirs, m.series AS ours, o.index_id AS exchangeId FROM other.series o
        LEFT JOIN main.series m ON m.index_type = '' AND m.index_id = o.index_id
      WHERE o.index_type = '' AND EXISTS (SELECT 1 FROM other.settled_ranges r WHERE r.stream = ? AND r.series = o.series)
      ORDER BY o.series`,
    [stream],
  );
}

function planSubscription(
  reader: SqlRunner,
  stream: SnapshotStream,
  subscription: KeyPair,
): SubscriptionPlan {
  const { theirs, ours } = subscription;
  const theirRanges = readRanges(reader, "other", { stream, series: theirs });
  const ourRanges = ours === null ? [] : readRanges(reader, "main", { stream, series: ours });
  const { pieces } = planKeyMerge(ourRanges, theirRanges);
  const settled = normalise([...ourRanges, ...pieces]);
  const lost = theirRanges
    .filter(({ proof }) => proof === "lost")
    .flatMap(({ reason, ...range }) =>
      subtract([range], settled).map((rest) => ({ ...rest, reason: reason ?? "unknown" })),
    );
  return { ...subscription, pieces, lost };
}

/** Rows before this timestamp were deleted on purpose. */
function readRetentionEnd(reader: SqlRunner, stream: SnapshotStream): Micros {
  const sql = "SELECT max(to_ts) FROM main.settled_ranges WHERE stream = ? AND proof = 'lost' AND reason = ?";
  return reader.value<Micros | null>(sql, [stream, RETENTION_REASON]) ?? 0;
}

function settlePieces(
  transaction: Transaction,
  connection: Connection,
  stream: SnapshotStream,
  plan: SubscriptionPlan,
  pieces: readonly MergePiece[],
): void {
  const key = { stream, series: asOurs(plan).ours };
  const names = { indexType: "", indexId: plan.exchangeId, name: "" };
  const cadence = streamTable[stream].step;
  const seeks = createRowSeeks(connection, { key, names, targets: [], settled: [], cadence });
  transaction.markWritten(stream, key.series);
  for (const piece of pieces) {
    const hasRows =
      piece.proof === "rows" &&
      (seeks.first(piece) !== undefined ||
        findTouching(transaction, key, piece).some(({ proof }) => proof === "rows"));
    if (hasRows) settle(transaction, key, piece, "rows");
    else settle(transaction, key, piece, "empty", piece.reason ?? NOTHING_LISTED_REASON);
  }
}
