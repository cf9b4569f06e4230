import type { Connection } from "./connection.ts";

/** The newest tick of one index. */
export interface LatestTick {
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
  readonly price_exact: string | null;
  readonly time: string;
  readonly is_settled: 0 | 1;
}

/** One seek each: cheap for a handful, whatever the size of the warehouse. */
export function readLatestTicks(
  connection: Connection,
  indices: readonly { index_type: string; index_id: string }[],
): LatestTick[] {
  const newest = connection.statement(
    `SELECT index_type, index_id, name, price_exact, time, is_settled FROM latest_index_ticks
      WHERE index_type = ? AND index_id = ?`,
  );
  return indices.flatMap(({ index_type, index_id }) => newest.all([index_type, index_id]) as LatestTick[]);
}
