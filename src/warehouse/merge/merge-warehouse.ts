import { hasHistory, type RowStream, rowStreams, type Stream, streams } from "../../model/streams.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { WarehouseWriter } from "../writer.ts";
import { mergeHistory } from "./merge-history.ts";
import { countNewEntries, type MergedRecords, mergeLookups, mergeRecords } from "./merge-lookups.ts";
import type { MergeCounts, MergeStep, StreamCounts } from "./merge-plan.ts";
import { mergeSnapshots } from "./merge-snapshots.ts";

export interface MergeProgress {
  readonly stream: Stream;
  /** Rows of the stream in the other warehouse, and how many of them are done. */
  readonly done: number;
  readonly planned: number;
}

export interface MergeReport extends MergedRecords {
  readonly streams: MergeCounts;
}

/**
 * Brings what the attached warehouse `other` has and this one lacks: rows with their proof. Nothing that is covered here
 * changes. Yields after each transaction, and returns what was brought.
 */
export function* mergeWarehouse(warehouse: WarehouseWriter): Generator<MergeProgress, MergeReport> {
  const { connection } = warehouse;
  const counts = countStreams(connection);
  warehouse.transaction(mergeLookups);
  for (const stream of rowStreams) {
    const planned = countTheirRows(connection, stream);
    let done = 0;
    for (const { rows, work } of mergeStream(connection, stream, counts)) {
      warehouse.transaction(work);
      done += rows;
      yield { stream, done: Math.min(done, planned), planned };
    }
    yield { stream, done: planned, planned };
  }
  const records = warehouse.transaction(mergeRecords);
  return { streams: counts, ...records };
}

/** What `mergeWarehouse` would bring. Only reads, so it works beside a writer. */
export function planMerge(connection: Connection): MergeCounts {
  const counts = countStreams(connection);
  for (const stream of rowStreams) for (const _ of mergeStream(connection, stream, counts));
  return counts;
}

function mergeStream(connection: Connection, stream: RowStream, counts: MergeCounts): Generator<MergeStep> {
  return hasHistory(stream)
    ? mergeHistory(connection, stream, counts[stream])
    : mergeSnapshots(connection, stream, counts[stream]);
}

function countStreams(connection: Connection): MergeCounts {
  const entries = countNewEntries(connection);
  return Object.fromEntries(
    streams.map((stream): [Stream, StreamCounts] => [
      stream,
      { rows: entries.get(stream) ?? 0, replaced: 0, withdrawn: 0, micros: 0 },
    ]),
  ) as MergeCounts;
}

function countTheirRows(connection: Connection, stream: Stream): number {
  const sql = "SELECT coalesce((SELECT rows FROM other.stream_states WHERE stream = ?), 0)";
  return connection.value<number>(sql, [stream]);
}
