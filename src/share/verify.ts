import { hasHistory, type RowStream, rowStreams } from "../model/streams.ts";
import { intersect, normalise, subtract, type TimeRanges } from "../model/time-range.ts";
import { readStoredRanges } from "../warehouse/coverage/ledger.ts";
import {
  readRange,
  readRowKeys,
  readSettledKeys,
  readSubscriptions,
} from "../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { rangesOf } from "./ledger-difference.ts";
import type { ShareWriter, ShareWriterOptions } from "./share-writer.ts";
import { splitCopy } from "./tables/copy-format.ts";

const MAX_ROWS_PER_COMPARISON = 20_000;

export interface ComparisonResult {
  /** Rows that were compared. */
  readonly compared: number;
  /** Ranges that differed, and were replaced by what the SQLite file has. */
  readonly mended: number;
}

/**
 * Compares the rows of every range inside `within` that the SQLite file covers with those in PostgreSQL, byte by byte, and replaces the
 * ranges that differ. Ranges without local proof are left alone: PostgreSQL may have the only copy. A snapshot proves no
 * absence, so rows that another daemon has observed stay. Yields what each step has done.
 */
export async function* compareShared(
  writer: ShareWriter,
  { connection, lease, role }: ShareWriterOptions,
  within: TimeRanges,
): AsyncGenerator<ComparisonResult> {
  for (const stream of rowStreams) {
    const covered = readCoverage(connection, stream);
    const compared = subtract(within, writer.rows.months.detachedOf(stream));
    const mayHaveMore = !hasHistory(stream) && role === "pair";
    const isEqual = mayHaveMore ? containsRows : (found: Buffer, expected: Buffer) => found.equals(expected);
    for (const key of readRowKeys(connection, stream)) {
      if (!writer.knows(stream, key)) continue;
      for (const range of intersect(covered(key), compared)) {
        for (let { from } = range; from < range.to; ) {
          const rest = { from, to: range.to };
          const content = readRange(connection, { stream, key }, rest, MAX_ROWS_PER_COMPARISON);
          const part = { from, to: content.to };
          const expected = writer.rows.encode(stream, content.rows);
          const found = await writer.rows.readRows(stream, key, part);
          const isWrong = !isEqual(found, expected);
          if (isWrong)
            await writer.replaceRanges(stream, [
              { key, range: part, kind: mayHaveMore ? "merge" : "replace" },
            ]);
          await lease.renewIfDue();
          yield { compared: content.rows.length, mended: isWrong ? 1 : 0 };
          from = content.to;
        }
      }
    }
  }
}

export async function sumUp(
  comparison: AsyncIterable<ComparisonResult> | undefined,
): Promise<ComparisonResult> {
  let [compared, mended] = [0, 0];
  for await (const step of comparison ?? []) {
    compared += step.compared;
    mended += step.mended;
  }
  return { compared, mended };
}

function containsRows(found: Buffer, expected: Buffer): boolean {
  if (found.equals(expected)) return true;
  const rows = new Set([...splitCopy(found)].map((row) => row.toString("latin1")));
  return [...splitCopy(expected)].every((row) => rows.has(row.toString("latin1")));
}

/** The covered ranges of a row key: of its series, or of the subscriptions that deliver it. */
function readCoverage(connection: Connection, stream: RowStream): (key: number) => TimeRanges {
  const keys = readSettledKeys(connection).filter((each) => each.stream === stream);
  const read = connection.database.transaction(() => keys.map((key) => readStoredRanges(connection, key)));
  const ranges = read().map((ledger) => rangesOf(ledger, "rows", "empty"));
  const ledgers = new Map(keys.map(({ series }, i) => [series, ranges[i] ?? []]));
  if (hasHistory(stream)) return (key) => ledgers.get(key) ?? [];
  const subscriptions = readSubscriptions(connection, stream);
  return (key) =>
    normalise((subscriptions.get(key) ?? []).flatMap((series): TimeRanges => ledgers.get(series) ?? []));
}
