import type { Stream } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { StreamStateRow } from "../schema/coverage.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";

/** Rows further in the future do not count as the newest of a stream. */
const MAX_FUTURE_MICROS = 300 * MICROS_PER_SECOND;

/** A stream of which nothing was stored yet is not in it. */
export function readStreamStates(connection: Connection): StreamStateRow[] {
  const sql = `SELECT stream, rows, newest_ts AS newestTs, last_error AS lastError, last_error_at AS lastErrorAt,
      missing_scopes AS missingScopes, ${timing} FROM stream_states`;
  return connection.rows<StreamStateRow>(sql);
}

const timingColumns = {
  lateBy: "late_by",
  lateAt: "late_at",
  servesRunningDay: "serves_running_day",
  liveOffset: "live_offset",
} as const;
const timing = Object.entries(timingColumns)
  .map(([name, column]) => `${column} AS ${name}`)
  .join(", ");

/** What pages have shown of the times of a stream. */
export type StreamTiming = Pick<StreamStateRow, keyof typeof timingColumns>;

export function readStreamTiming(connection: SqlRunner, stream: Stream): StreamTiming | undefined {
  return connection.findRow<StreamTiming>(`SELECT ${timing} FROM stream_states WHERE stream = ?`, [stream]);
}

export function recordStreamTiming(transaction: Transaction, stream: Stream, set: Partial<StreamTiming>) {
  const sets = (Object.keys(set) as (keyof StreamTiming)[]).map(
    (name) => `${timingColumns[name]} = @${name}`,
  );
  transaction.run(
    `INSERT INTO stream_states (stream, rows, missing_scopes) VALUES (@stream, 0, '[]') ON CONFLICT DO NOTHING`,
    { stream },
  );
  transaction.run(`UPDATE stream_states SET ${sets.join(", ")} WHERE stream = @stream`, { ...set, stream });
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
  const sql = `INSERT INTO stream_states (stream, rows, last_error, last_error_at, missing_scopes) VALUES (@stream, 0, @error, @at, @scopes)
    ON CONFLICT (stream) DO UPDATE SET last_error = @error, missing_scopes = @scopes,
        last_error_at = CASE WHEN last_error IS @error THEN last_error_at ELSE @at END
      WHERE last_error IS NOT @error OR missing_scopes <> @scopes`;
  for (const { stream, error, missingScopes } of streams) {
    const at = error === null ? null : formatTimestamp(transaction.now);
    transaction.run(sql, { stream, error, at, scopes: JSON.stringify([...missingScopes].sort()) });
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
