import type { Reject, UnknownField } from "../../model/records.ts";
import type { Stream } from "../../model/streams.ts";
import { formatInstant } from "../../model/time.ts";
import type { Transaction } from "../tables/transaction.ts";

/** Longer samples say no more. */
const SAMPLE_LENGTH = 500;

/** Keeps records that could not be read, verbatim. Returns how many were new. */
export function keepRejects(
  transaction: Transaction,
  stream: Stream,
  rejects: readonly Reject[],
  request: string | null,
): number {
  const insert = transaction.statement(
    `INSERT INTO rejects (stream, received_at, reason, raw, request) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  const receivedAt = formatInstant(transaction.now);
  let kept = 0;
  for (const { reason, raw } of rejects)
    kept += insert.run([stream, receivedAt, reason, raw, request]).changes;
  return kept;
}

export function countUnknownFields(
  transaction: Transaction,
  stream: Stream,
  fields: readonly UnknownField[],
): void {
  for (const field of fields) count(transaction, "unknown_fields", stream, field);
}

/** An event or message shape of the websocket that this version does not know. */
export function countUnknownEvent(transaction: Transaction, event: UnknownField): void {
  count(transaction, "unknown_events", "websocket", event);
}

function count(transaction: Transaction, table: string, where: string, unknown: UnknownField): void {
  transaction
    .statement(
      `INSERT INTO ${table} ("where", name, first_seen, count, sample) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT ("where", name) DO UPDATE SET count = count + excluded.count`,
    )
    .run([
      where,
      unknown.name,
      formatInstant(transaction.now),
      unknown.count,
      unknown.sample.slice(0, SAMPLE_LENGTH),
    ]);
}
