import type { Stream } from "../../model/streams.ts";
import { formatInstant, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Transaction } from "../tables/transaction.ts";

/** Rows further ahead of our clock than this come from the future and say nothing about how fresh a stream is. */
const FUTURE_SLACK = 300 * MICROS_PER_SECOND;

/** Keeps the count and the newest moment of a stream in step with its rows, so that no status scans millions of them. */
export function countRows(transaction: Transaction, stream: Stream, added: number, newest?: Micros): void {
  const credible = newest !== undefined && newest <= transaction.now + FUTURE_SLACK ? newest : null;
  if (added === 0 && credible === null) return;
  transaction
    .statement(
      `INSERT INTO stream_states (stream, rows, newest_ts, missing_scopes) VALUES (?, ?, ?, '[]')
      ON CONFLICT (stream) DO UPDATE SET rows = rows + excluded.rows,
        newest_ts = CASE WHEN newest_ts IS NULL OR newest_ts < excluded.newest_ts THEN excluded.newest_ts ELSE newest_ts END
      WHERE excluded.rows <> 0 OR newest_ts IS NULL OR newest_ts < excluded.newest_ts`,
    )
    .run([stream, added, credible]);
}

/** The stream's last error in one line without secrets; null once it works again. */
export function noteError(transaction: Transaction, stream: Stream, error: string | null): void {
  transaction
    .statement(
      `INSERT INTO stream_states (stream, rows, last_error, last_error_at, missing_scopes) VALUES (?, 0, ?, ?, '[]')
      ON CONFLICT (stream) DO UPDATE SET last_error = excluded.last_error,
        last_error_at = excluded.last_error_at WHERE last_error IS NOT excluded.last_error`,
    )
    .run([stream, error, error === null ? null : formatInstant(transaction.now)]);
}

export function noteMissingScopes(transaction: Transaction, stream: Stream, scopes: readonly string[]): void {
  const text = JSON.stringify([...scopes].sort());
  transaction
    .statement(
      `INSERT INTO stream_states (stream, rows, missing_scopes) VALUES (?, 0, ?)
      ON CONFLICT (stream) DO UPDATE SET missing_scopes = excluded.missing_scopes
      WHERE missing_scopes <> excluded.missing_scopes`,
    )
    .run([stream, text]);
}

/** Lookups are small: counted when refreshed, and as fresh as their last refresh. */
export function setRowCount(transaction: Transaction, stream: Stream, table: string): void {
  transaction
    .statement(
      `INSERT INTO stream_states (stream, rows, newest_ts, missing_scopes) VALUES (?, (SELECT count(*) FROM ${table}), ?, '[]')
      ON CONFLICT (stream) DO UPDATE SET rows = excluded.rows, newest_ts = excluded.newest_ts`,
    )
    .run([stream, transaction.now]);
}
