import type { StreamRecords } from "../../model/records.ts";
import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { hasSlotOfKey, storedTable } from "../tables/row-parts.ts";
import { encodeRow, hasSameValues, type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { keepPastRow, rowSql } from "./row-sql.ts";

/*
 * The service may list two records of one moment: a recalculation whose predecessor stays, two ticks within a microsecond,
 * an asset twice in a ranking. A row has one of them; the other is in `rejects` or `revisions`, and `quality` says so.
 */

/** The reason in `rejects`, and the remark in `quality` of the row. */
export const DUPLICATE_TIMESTAMP = "second record of one moment";

/** Adds the remark to the `quality` of a record or row. */
export function noteDuplicate(quality: string | null | undefined): string {
  if (quality?.includes(DUPLICATE_TIMESTAMP)) return quality;
  return quality ? `${quality}; ${DUPLICATE_TIMESTAMP}` : DUPLICATE_TIMESTAMP;
}

export function hasDuplicateNote(details: SqlValue | undefined): boolean {
  return typeof details === "string" && details.includes(DUPLICATE_TIMESTAMP);
}

/** Adds the remark to the `details` of a row. */
export function noteDuplicateInDetails(details: SqlValue | undefined): string {
  const parsed = typeof details === "string" ? (JSON.parse(details) as Record<string, string>) : {};
  const { quality, extra, ...digits } = parsed;
  return JSON.stringify({
    ...digits,
    quality: noteDuplicate(quality),
    ...(extra === undefined ? {} : { extra }),
  });
}

/** A record, and its text as received. */
export interface ListedRecord<R> {
  readonly record: R;
  readonly raw: string;
}

/**
 * Which of several records of one moment is the row: the one listed first, or the stored one if all the others are known to
 * be duplicates. So neither another order nor another reading of the same records changes the row.
 */
export function chooseRecord<S extends RowStream>(
  transaction: Transaction,
  stream: S,
  listed: readonly [ListedRecord<StreamRecords[S]>, ...ListedRecord<StreamRecords[S]>[]],
): ListedRecord<StreamRecords[S]> {
  const isKnown = listed.map(({ raw }) => isKnownDuplicate(transaction, stream, raw));
  const unknown = listed.filter((_, at) => !isKnown[at]);
  const candidates = unknown.length === 0 ? listed : unknown.length === 1 ? unknown : [];
  return candidates.find(({ record }) => isStored(transaction, stream, record) === true) ?? listed[0];
}

function isKnownDuplicate(transaction: Transaction, stream: RowStream, raw: string): boolean {
  const sql = "SELECT 1 FROM rejects WHERE stream = ? AND raw = ? AND reason = ?";
  return transaction.findRow(sql, [stream, raw, DUPLICATE_TIMESTAMP]) !== undefined;
}

/** Whether the row of the record's moment has its figures; undefined: there is no row. */
export function isStored<S extends RowStream>(transaction: Transaction, stream: S, record: StreamRecords[S]) {
  const table: RowTable<StreamRecords[S]> = rowTables[stream];
  const key = table.key(transaction, record);
  const stored = transaction.findTuple<readonly SqlValue[]>(rowSql[stream].selectOne, [key, record.ts]);
  return stored && hasSameValues(table, stored, encodeRow(table, record));
}

/** The `details` of a stored row with the remark; undefined: it has it, or there is no row. */
export function readNotedDetails(transaction: Transaction, stream: RowStream, key: number, ts: Micros) {
  const { table, keyColumn }: RowTable<never> = rowTables[stream];
  const sql = `SELECT details FROM ${table} WHERE ${keyColumn} = ? AND ts = ?`;
  const details = transaction.findValue<SqlValue>(sql, [key, ts]);
  return details === undefined || hasDuplicateNote(details) ? undefined : noteDuplicateInDetails(details);
}

/** Gives a stored row the remark. */
export function writeNotedDetails(
  transaction: Transaction,
  stream: RowStream,
  key: number,
  { ts, details }: { readonly ts: Micros; readonly details: string },
): void {
  keepPastRow(transaction, stream, { key, ts });
  const sql = `UPDATE ${storedTable(stream)} SET details = ?, since = ? WHERE ${hasSlotOfKey(stream)} AND ts = ?`;
  transaction.run(sql, [details, transaction.commit, key, ts]);
  transaction.journal.add(stream, "rows", key, { from: ts, to: ts + 1 });
}
