import type { Stream } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Transaction } from "../tables/transaction.ts";

/** Rows further in the future do not count as the newest of a stream. */
const MAX_FUTURE_MICROS = 300 * MICROS_PER_SECOND;

/** Updates a stream's row count and newest timestamp, so that `status` need not scan millions of rows. */
export function addRowCount(transaction: Transaction, stream: Stream, added: number, newest?: Micros): void {
  const credible = newest !== undefined && newest <= transaction.now + MAX_FUTURE_MICROS ? newest : null;
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

/** `error`: one line without secrets; null once the stream works again. */
export function recordStreamError(transaction: Transaction, stream: Stream, error: string | null): void {
  transaction
    .statement(
      `INSERT INTO stream_states (stream, rows, last_error, last_error_at, missing_scopes) VALUES (?, 0, ?, ?, '[]')
      ON CONFLICT (stream) DO UPDATE SET last_error = excluded.last_error,
        last_error_at = excluded.last_error_at WHERE last_error IS NOT excluded.last_error`,
    )
    .run([stream, error, error === null ? null : formatTimestamp(transaction.now)]);
}

/** A smaller change of the live offset is noise. */
const MIN_OFFSET_CHANGE_MICROS = 50 * MICROS_PER_MS;

/**
 * Stores how much later the websocket stamps the stream's ticks than REST; null: not at all. Returns whether that is new.
 */
export function recordLiveOffset(transaction: Transaction, stream: Stream, offset: Micros | null): boolean {
  const before = transaction
    .statement<Micros | null>("SELECT live_offset FROM stream_states WHERE stream = ?")
    .pluck()
    .get([stream]);
  if (before === undefined || before === offset) return false;
  const minChange = Math.max(MIN_OFFSET_CHANGE_MICROS, Math.abs(before ?? 0) / 2);
  if (before !== null && offset !== null && Math.abs(offset - before) < minChange) return false;
  transaction.statement("UPDATE stream_states SET live_offset = ? WHERE stream = ?").run([offset, stream]);
  return true;
}

export function recordMissingScopes(
  transaction: Transaction,
  stream: Stream,
  scopes: readonly string[],
): void {
  const text = JSON.stringify([...scopes].sort());
  transaction
    .statement(
      `INSERT INTO stream_states (stream, rows, missing_scopes) VALUES (?, 0, ?)
      ON CONFLICT (stream) DO UPDATE SET missing_scopes = excluded.missing_scopes
      WHERE missing_scopes <> excluded.missing_scopes`,
    )
    .run([stream, text]);
}

/** Lookups are small enough to count at every refresh; the refresh time is their newest timestamp. */
export function setRowCount(transaction: Transaction, stream: Stream, table: string): void {
  transaction
    .statement(
      `INSERT INTO stream_states (stream, rows, newest_ts, missing_scopes) VALUES (?, (SELECT count(*) FROM ${table}), ?, '[]')
      ON CONFLICT (stream) DO UPDATE SET rows = excluded.rows, newest_ts = excluded.newest_ts`,
    )
    .run([stream, transaction.now]);
}
