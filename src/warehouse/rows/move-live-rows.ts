import { keyColumns, type SnapshotStream, streamTable } from "../../model/streams.ts";
import { findPartMove, type PartMove, partedStreams, slotOf, storedTable } from "../tables/row-parts.ts";
import { storedColumns } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/** About as long as the commit of a page of a history. */
const MAX_ROWS_PER_CALL = 10_000;

/** How far the rows of some parts have been moved. */
export interface MovePosition extends PartMove {
  readonly stream: SnapshotStream;
  readonly key: number;
}

/**
 * Moves live rows of closed parts to one part or to the history, key by key, if there are so many parts: the same rows, so neither
 * the journal nor the past has an entry. Returns where to go on; undefined: the move is done, or none is due.
 */
export function moveLiveRows(transaction: Transaction, from?: MovePosition, maxRows = MAX_ROWS_PER_CALL) {
  const move: PartMove | undefined = from ?? findPartMove(transaction, transaction.at);
  if (move === undefined) return undefined;
  const { first, last, into } = move;
  let moved = 0;
  for (const stream of partedStreams.slice(from ? partedStreams.indexOf(from.stream) : 0)) {
    const { dictionary } = streamTable[stream];
    const key = keyColumns[dictionary];
    const firstKey = stream === from?.stream ? from.key : 0;
    const keysSql = `SELECT ${key} FROM ${dictionary} WHERE ${key} >= ? ORDER BY ${key}`;
    for (const each of transaction.values<number>(keysSql, [firstKey])) {
      if (moved >= maxRows) return { first, last, into, stream, key: each };
      moved += moveKey(transaction, stream, { key: each, first, last, into });
    }
  }
  transaction.run("DELETE FROM row_parts WHERE part BETWEEN ? AND ? AND part <> ?", [first, last, into]);
  return undefined;
}

function moveKey(
  transaction: Transaction,
  stream: SnapshotStream,
  bound: Readonly<Record<"key" | keyof PartMove, number>>,
): number {
  const table = storedTable(stream);
  const columns = storedColumns(stream).join(", ");
  const parts = "FROM row_parts p";
  const isMoved = "p.part BETWEEN @first AND @last AND p.part <> @into";
  const moved = transaction.run(
    `INSERT INTO ${table} (slot, ${columns}) SELECT ${slotOf("@into", "@key")}, ${columns} ${parts} CROSS JOIN ${table} r
      WHERE ${isMoved} AND r.slot = ${slotOf("p.part", "@key")} ORDER BY p.part, r.ts`,
    bound,
  );
  if (moved > 0)
    transaction.run(
      `DELETE FROM ${table} WHERE slot IN (SELECT ${slotOf("p.part", "@key")} ${parts} WHERE ${isMoved})`,
      bound,
    );
  return moved;
}
