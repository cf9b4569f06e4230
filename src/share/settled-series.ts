import { bucketOf } from "../model/buckets.ts";
import type { SharedSeries } from "../model/status/share-status.ts";
import { type HistoryStream, historyStreams } from "../model/streams.ts";
import type { TimeRange } from "../model/time-range.ts";
import { LEDGER_TABLE } from "./schema/tables.ts";
import type { SharedSession } from "./server/session.ts";

/** What PostgreSQL has settled of the series of some buckets. */
export async function readSettledOf(
  session: SharedSession,
  buckets: readonly number[],
): Promise<SharedSeries[]> {
  const rows = await session.query<{
    stream: HistoryStream;
    indexType: string;
    indexId: string;
    from: number;
    to: number;
  }>(
    `SELECT g.stream, s.index_type AS "indexType", s.index_id AS "indexId",
      g.from_ts::double precision AS "from", g.to_ts::double precision AS "to"
    FROM mds.${LEDGER_TABLE} g JOIN mds.series s ON s.series = g.series
    WHERE g.stream IN (${historyStreams.map((stream) => `'${stream}'`).join(", ")}) ORDER BY g.stream, g.series, g.from_ts`,
  );
  const found = new Map<string, SharedSeries & { readonly settled: TimeRange[] }>();
  for (const { stream, indexType, indexId, from, to } of rows) {
    if (!buckets.includes(bucketOf(indexType, indexId))) continue;
    const key = `${stream} ${indexType} ${indexId}`;
    const series = found.get(key) ?? { stream, indexType, indexId, settled: [] };
    series.settled.push({ from, to });
    found.set(key, series);
  }
  return [...found.values()];
}
