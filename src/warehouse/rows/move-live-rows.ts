import { keyColumns, type SnapshotStream, streamTable } from "../../model/streams.ts";
import { findFullParts, partedStreams, slotOf, storedTable } from "../tables/row-parts.ts";
import { storedColumns } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/** About as long as the commit of a page of a history. */
const MAX_ROWS_PER_CALL = 10_000;

/** How far the rows of some parts have been moved. */
export interface MovePosition {
  /** The last of them. */
  readonly upTo: number;
  readonly stream: SnapshotStream;
  readonly key: number;
}

/**
 * Moves live rows of closed parts to the history, key by key, if there are so many parts: the same rows, so neither the journal nor
 * the past has an entry. Returns where to go on; undefined: nothing is left.
 */
export function moveLiveRows(
  transaction: Transaction,
  from?: MovePosition,
  maxRows = MAX_ROWS_PER_CALL,
): MovePosition | undefined {
  const upTo = from?.upTo ?? findFullParts(transaction, transaction.at);
  if (upTo === undefined) return undefined;
  let moved = 0;
  for (const stream of partedStreams.slice(from ? partedStreams.indexOf(from.stream) : 0)) {
    const { dictionary } = streamTable[stream];
    const key = keyColumns[dictionary];
    const first = stream === from?.stream ? from.key : 0;
    const keysSql = `SELECT ${key} FROM ${dictionary} WHERE ${key} >= ? ORDER BY ${key}`;
    for (const each of transaction.values<number>(keysSql, [first])) {
      if (moved >= maxRows) return { upTo, stream, key: each };
      moved += moveKey(transaction, stream, { key: each, upTo });
    }
  }
  transaction.run("DELETE FROM row_parts WHERE part BETWEEN 1 AND ?", [upTo]);
  return undefined;
}

function moveKey(
  transaction: Transaction,
  stream: SnapshotStream,
  bound: { readonly key: number; readonly upTo: number },
): number {
  const table = storedTable(stream);
  const columns = storedColumns(stream).join(", ");
  const parts = "FROM row_parts p";
  const isMoved = "p.part BETWEEN 1 AND @upTo";
  const moved = transaction.run(
    `INSERT INTO ${table} (slot, ${columns}) SELECT @key, ${columns} ${parts} CROSS JOIN ${table} r
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
