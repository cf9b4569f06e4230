import type { Reject, UnknownField } from "../../model/records.ts";
import type { Stream } from "../../model/streams.ts";
import type { Transaction } from "../tables/transaction.ts";

const MAX_SAMPLE_LENGTH = 500;

/** Stores records that could not be read, verbatim. Returns how many were new. */
export function storeRejects(
  transaction: Transaction,
  stream: Stream,
  rejects: readonly Reject[],
  request: string | null,
): number {
  const insert = transaction.statement(
    `INSERT INTO rejects (stream, received_at, reason, raw, request) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  let stored = 0;
  for (const { reason, raw } of rejects)
    stored += insert.run([stream, transaction.stamp(), reason, raw, request]).changes;
  return stored;
}

export function countUnknownFields(
  transaction: Transaction,
  stream: Stream,
  fields: readonly UnknownField[],
): void {
  for (const field of fields) countUnknown(transaction, "unknown_fields", stream, field);
}

/** Counts a websocket event or message shape that this version does not know. */
export function countUnknownEvent(transaction: Transaction, event: UnknownField): void {
  countUnknown(transaction, "unknown_events", "websocket", event);
}

function countUnknown(transaction: Transaction, table: string, where: string, unknown: UnknownField): void {
  transaction.run(
    `INSERT INTO ${table} ("where", name, first_seen, count, sample) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT ("where", name) DO UPDATE SET count = count + excluded.count`,
    [where, unknown.name, transaction.stamp(), unknown.count, unknown.sample.slice(0, MAX_SAMPLE_LENGTH)],
  );
}
