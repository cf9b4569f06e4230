import type { HistoryStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { NOTHING_OLDER } from "../../rule/claim.ts";
import { findTouching, hasRowsInRange, settle } from "../coverage/ledger.ts";
import { findHoles } from "../coverage/pending-claims.ts";
import { findOldestRow } from "../rows/row-queries.ts";
import type { SqlRunner } from "../sqlite/connection.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import {
  type KeyMergePlan,
  type MergeCounts,
  type MergePiece,
  type MergeStep,
  planKeyMerge,
} from "./merge-plan.ts";
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
  withdrawForeignRows,
} from "./merge-tables.ts";

type Counts = MergeCounts[HistoryStream];

/** Merges a history stream, series by series: every step is one transaction with rows and their proof. */
export function* mergeHistory(
  reader: SqlRunner,
  stream: HistoryStream,
  counts: Counts,
): Generator<MergeStep> {
  const table: RowTable<never> = rowTables[stream];
  for (const pair of readKeyPairs(reader, stream)) {
    const { pieces, unproven } = planSeries(reader, stream, pair);
    yield { stream, rows: 0, work: (transaction) => mergeTargets(transaction, stream, asOurs(pair)) };
    for (const piece of pieces) {
      if (piece.reason === NOTHING_OLDER && hasRowBefore(reader, stream, pair, piece.to)) continue;
      counts.micros += piece.to - piece.from;
      for (const chunk of cutIntoChunks(reader, table, pair.theirs, piece)) {
        counts.rows += countNewRows(reader, table, pair, chunk);
        yield {
          stream,
          rows: chunk.rows,
          work: (transaction) => mergePiece(transaction, table, asOurs(pair), { ...piece, ...chunk }, counts),
        };
      }
    }
    for (const range of unproven)
      for (const chunk of cutIntoChunks(reader, table, pair.theirs, range)) {
        if (chunk.rows === 0) continue;
        counts.rows += countNewRows(reader, table, pair, chunk);
        yield {
          stream,
          rows: chunk.rows,
          work: (transaction) => void addMissingRows(transaction, table, asOurs(pair), chunk),
        };
      }
  }
}

function planSeries(reader: SqlRunner, stream: HistoryStream, { theirs, ours }: KeyPair): KeyMergePlan {
  const theirRanges = readRanges(reader, "other", { stream, series: theirs });
  if (ours === null) return planKeyMerge([], theirRanges);
  const key = { stream, series: ours };
  return planKeyMerge(readRanges(reader, "main", key), theirRanges, findHoles(reader, key));
}

/** One older row of ours disproves that the service has nothing older. */
function hasRowBefore(reader: SqlRunner, stream: HistoryStream, { ours }: KeyPair, to: Micros): boolean {
  const oldest = ours === null ? undefined : findOldestRow(reader, { stream, series: ours });
  return oldest !== undefined && oldest < to;
}

function mergePiece(
  transaction: Transaction,
  table: RowTable<never>,
  pair: ReturnType<typeof asOurs>,
  piece: MergePiece & { readonly rows: number },
  counts: Counts,
): void {
  const key = { stream: table.stream, series: pair.ours };
  if (hasRowsInRange(transaction, key, piece)) {
    counts.withdrawn += withdrawForeignRows(transaction, table, pair, piece);
    counts.replaced += replaceDifferingRows(transaction, table, pair, piece, () => true);
  }
  addMissingRows(transaction, table, pair, piece);
  transaction.markWritten(table.stream, pair.ours);
  // A part of a range with rows may have none; then it must continue one of ours with rows, or it is empty.
  const continuesRows = findTouching(transaction, key, piece).some(
    ({ proof }) => proof === "rows" || proof === "moved",
  );
  const hasRows = piece.rows > 0 || (piece.proof === "rows" && continuesRows);
  settle(transaction, key, piece, hasRows ? "rows" : "empty", hasRows ? null : piece.reason);
}
