import type { Micros } from "../model/instant.ts";
import type { WalkedStream } from "../model/series.ts";
import type { TimeRange } from "../model/time-range.ts";
import type { Connection } from "./connection.ts";
import type { LedgerLine } from "./ledger.ts";

/** A line that is wanted, and what is proven of it. */
export interface SettledLine {
  readonly line: LedgerLine & { readonly stream: WalkedStream };
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly keptFor: Micros | null;
  readonly settleDelay: Micros;
  /** What has rows or is empty; what is lost cannot be compared with anything. */
  readonly proven: readonly TimeRange[];
}

interface Row extends TimeRange {
  readonly series: number;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly keptFor: Micros | null;
  readonly settleDelay: Micros;
}

export function settledLines(connection: Connection, stream: WalkedStream): SettledLine[] {
  const rows = connection
    .statement(
      `SELECT g.series, s.index_type AS indexType, s.index_id AS indexId, s.name, w.kept_for AS keptFor,
        w.settle_delay AS settleDelay, g.from_ts AS "from", g.to_ts AS "to"
      FROM settled_ranges g JOIN series s ON s.series = g.series
        JOIN wanted_ranges w ON w.stream = g.stream AND w.series = g.series AND w.to_ts IS NULL
      WHERE g.stream = ? AND g.proof <> 'lost' ORDER BY g.series, g.from_ts`,
    )
    .all([stream]) as Row[];
  return [...Map.groupBy(rows, ({ series }) => series)].map(([series, own]) => {
    const { indexType, indexId, name, keptFor, settleDelay } = own[0] as Row;
    const proven = own.map(({ from, to }) => ({ from, to }));
    return { line: { stream, series }, indexType, indexId, name, keptFor, settleDelay, proven };
  });
}
