import type { Stream } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { type StreamStateRow, streamStates } from "../schema/coverage.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";
import { eq } from "../sqlite/drizzle.ts";
import type { Transaction } from "../tables/transaction.ts";

/** Rows further in the future do not count as the newest of a stream. */
const MAX_FUTURE_MICROS = 300 * MICROS_PER_SECOND;

/** Undefined: nothing of the stream was stored yet. */
function readStreamState(connection: SqlRunner, stream: Stream) {
  return connection.orm.select().from(streamStates).where(eq(streamStates.stream, stream)).get();
}

export function readStreamStates({ orm }: Connection): StreamStateRow[] {
  return orm.select().from(streamStates).all();
}

/** What pages have shown of the times of a stream. */
export type StreamTiming = Pick<StreamStateRow, "lateBy" | "lateAt" | "servesRunningDay" | "liveOffset">;

/** Every page asks: a query of drizzle would cost more than all others of a page. */
export function readStreamTiming(connection: SqlRunner, stream: Stream): StreamTiming | undefined {
  const sql = `SELECT late_by AS lateBy, late_at AS lateAt, serves_running_day AS servesRunningDay, live_offset AS liveOffset
    FROM stream_states WHERE stream = ?`;
  return connection.findRow<StreamTiming>(sql, [stream]);
}

export function recordStreamState(
  { orm }: Transaction,
  stream: Stream,
  set: Partial<Omit<StreamStateRow, "stream">>,
): void {
  const row = { stream, rows: 0, missingScopes: "[]", ...set };
  orm.insert(streamStates).values(row).onConflictDoUpdate({ target: streamStates.stream, set }).run();
}

/** Updates a stream's row count and newest timestamp, so that `status` need not scan millions of rows. */
export function addRowCount(transaction: Transaction, stream: Stream, added: number, newest?: Micros): void {
  const credible = newest !== undefined && newest <= transaction.now + MAX_FUTURE_MICROS ? newest : null;
  if (added === 0 && credible === null) return;
  transaction.run(
    `INSERT INTO stream_states (stream, rows, newest_ts, missing_scopes) VALUES (?, ?, ?, '[]')
      ON CONFLICT (stream) DO UPDATE SET rows = rows + excluded.rows,
        newest_ts = CASE WHEN newest_ts IS NULL OR newest_ts < excluded.newest_ts THEN excluded.newest_ts ELSE newest_ts END
      WHERE excluded.rows <> 0 OR newest_ts IS NULL OR newest_ts < excluded.newest_ts`,
    [stream, added, credible],
  );
}

export interface StreamHealth {
  readonly stream: Stream;
  /** In one line, without secrets; null: healthy. */
  readonly error: string | null;
  readonly missingScopes: readonly string[];
}

/** Stored for `status`. */
export function recordStreamHealth(transaction: Transaction, streams: readonly StreamHealth[]): void {
  for (const { stream, error: lastError, missingScopes: scopes } of streams) {
    const known = readStreamState(transaction, stream);
    const lastErrorAt = lastError === null ? null : formatTimestamp(transaction.now);
    const missingScopes = JSON.stringify([...scopes].sort());
    if (known?.lastError !== lastError) recordStreamState(transaction, stream, { lastError, lastErrorAt });
    if (known?.missingScopes !== missingScopes) recordStreamState(transaction, stream, { missingScopes });
  }
}

/** Lookups are small enough to count at every refresh; the refresh time is their newest timestamp. */
export function setRowCount(transaction: Transaction, stream: Stream, table: string): void {
  transaction.run(
    `INSERT INTO stream_states (stream, rows, newest_ts, missing_scopes) SELECT ?, count(*), ?, '[]' FROM (SELECT 1 FROM ${table}) WHERE true
      ON CONFLICT (stream) DO UPDATE SET rows = excluded.rows, newest_ts = excluded.newest_ts`,
    [stream, transaction.now],
  );
}
