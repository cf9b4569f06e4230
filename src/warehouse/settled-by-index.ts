import type { Micros } from "../model/instant.ts";
import type { WalkedStream } from "../model/series.ts";
import type { TimeRange } from "../model/time-range.ts";
import type { Connection } from "./connection.ts";

/** What stands in the ledger about one index, for those who only look ahead. */
export interface IndexLedger {
  readonly settled: readonly TimeRange[];
  /** Where what is wanted of it began so far; undefined: it is not followed. */
  readonly wantedFrom: Micros | undefined;
}

export function indexKey(indexType: string, indexId: string): string {
  return `${indexType} ${indexId}`;
}

/** The ledger of a stream by index, under `indexKey`. Indices that it knows nothing of are left out. */
export function settledByIndex(connection: Connection, stream: WalkedStream): Map<string, IndexLedger> {
  const ranges = connection
    .statement(
      `SELECT s.index_type AS indexType, s.index_id AS indexId, g.from_ts AS "from", g.to_ts AS "to"
      FROM settled_ranges g JOIN series s ON s.series = g.series WHERE g.stream = ? ORDER BY g.series, g.from_ts`,
    )
    .all([stream]) as (TimeRange & { indexType: string; indexId: string })[];
  const wanted = connection
    .statement(
      `SELECT s.index_type AS indexType, s.index_id AS indexId, w.from_ts AS wantedFrom
      FROM wanted_ranges w JOIN series s ON s.series = w.series
      WHERE w.stream = ? AND w.to_ts IS NULL AND w.observed = 0`,
    )
    .all([stream]) as { indexType: string; indexId: string; wantedFrom: Micros }[];
  const found = new Map<string, IndexLedger>();
  for (const { indexType, indexId, wantedFrom } of wanted) {
    found.set(indexKey(indexType, indexId), { settled: [], wantedFrom });
  }
  for (const [key, own] of Map.groupBy(ranges, (range) => indexKey(range.indexType, range.indexId))) {
    const settled = own.map(({ from, to }) => ({ from, to }));
    found.set(key, { settled, wantedFrom: found.get(key)?.wantedFrom });
  }
  return found;
}
