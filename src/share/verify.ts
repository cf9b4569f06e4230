import { hasHistory, type RowStream, rowStreams } from "../model/streams.ts";
import { normalise, type TimeRange, type TimeRanges } from "../model/time-range.ts";
import type { SettledRange } from "../warehouse/coverage/ledger.ts";
import {
  readConsistently,
  readLedgerFingerprints,
  readRange,
  readRowKeys,
  readSubscriptions,
  readWholeLedger,
} from "../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import type { Forwarder } from "./forwarder.ts";

const MAX_ROWS_PER_COMPARISON = 20_000;

export interface ComparisonResult {
  /** Rows that were compared. */
  readonly compared: number;
  /** Ranges that differed, and were replaced by what the SQLite file has. */
  readonly mended: number;
}

/**
 * Compares the rows of every range that the SQLite file covers with those in PostgreSQL, byte by byte, and replaces the
 * ranges that differ. Ranges without local proof are left alone: PostgreSQL may have the only copy.
 */
export async function verifyShared(
  forwarder: Forwarder,
  connection: Connection,
  onProgress?: (compared: number) => void,
): Promise<ComparisonResult> {
  let compared = 0;
  let mended = 0;
  for (const stream of rowStreams) {
    const covered = readCoverage(connection, stream);
    for (const key of readRowKeys(connection, stream)) {
      for (const range of covered(key)) {
        for (let { from } = range; from < range.to; ) {
          const rest = { from, to: range.to };
          const content = readRange(connection, { stream, key }, rest, MAX_ROWS_PER_COMPARISON);
          const part = { from, to: content.to };
          if (forwarder.knows(stream, key)) {
            const expected = forwarder.rows.encode(stream, content.rows);
            const found = await forwarder.rows.readRows(stream, key, part);
            if (!found.equals(expected)) {
              await forwarder.replaceRanges(stream, [{ key, range: part, kind: "rows" }]);
              mended++;
            }
          }
          compared += content.rows.length;
          onProgress?.(compared);
          from = content.to;
        }
      }
    }
  }
  return { compared, mended };
}

/** The covered ranges of a row key: of its series, or of the subscriptions that deliver it. */
function readCoverage(connection: Connection, stream: RowStream): (key: number) => TimeRanges {
  const ledgers = readConsistently(
    connection,
    () =>
      new Map(
        readLedgerFingerprints(connection)
          .filter((each) => each.stream === stream)
          .map((each) => [each.series, coveredRanges(readWholeLedger(connection, each))]),
      ),
  );
  if (hasHistory(stream)) return (key) => ledgers.get(key) ?? [];
  const subscriptions = readSubscriptions(connection, stream);
  return (key) =>
    normalise((subscriptions.get(key) ?? []).flatMap((series): TimeRanges => ledgers.get(series) ?? []));
}

function coveredRanges(ledger: readonly SettledRange[]): TimeRanges {
  return normalise(
    ledger.filter(({ proof }) => proof !== "lost").map(({ from, to }): TimeRange => ({ from, to })),
  );
}
