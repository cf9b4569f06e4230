import type { DailyBar, IndexTick } from "../../model/records.ts";
import type { HistoryStream, Series } from "../../model/streams.ts";
import { toTicks } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import { containsTimestamp, type TimeRange } from "../../model/time-range.ts";
import { findTouching, isMoved, type LedgerKey } from "../../warehouse/coverage/ledger.ts";
import {
  type RecordSource,
  type WriteRecordsResult,
  writeRecords,
  writeTickColumns,
} from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { PendingPages } from "../decode/pending-pages.ts";
import { hasUnprovenRecords, writeUnprovenRecords } from "./announced-page.ts";
import { splitForeign, storeForeignRecords } from "./foreign-records.ts";
import type { WalkPosition } from "./proven-range.ts";

export type SeriesKey = LedgerKey & { readonly stream: HistoryStream };
export type HistoryPage = ReturnType<PendingPages["get"]>;

/** The cast is safe: a page has only records of its own stream. */
export function recordsOf({ records }: HistoryPage): (DailyBar & IndexTick)[] {
  return records as (DailyBar & IndexTick)[];
}

/** Writes the records of a page, each where it may be written. */
export function writePage(
  transaction: Transaction,
  key: SeriesKey,
  { series, position }: { readonly series: Series; readonly position: WalkPosition },
  decoded: HistoryPage,
  source: RecordSource,
): WriteRecordsResult {
  const { announced, plausibleTimestamps } = decoded;
  if (announced && source === "rest" && hasUnprovenRecords(announced, plausibleTimestamps))
    return writeUnprovenRecords(transaction, series.stream, recordsOf(decoded), announced);
  const moved = findMovedBelow(transaction, key, position.gap, plausibleTimestamps.at(-1));
  if (decoded.columns && moved.length === 0) return writeTickColumns(transaction, decoded.columns, source);
  const received = decoded.columns ? toTicks(decoded.columns) : recordsOf(decoded);
  const records = received.filter((record) => !containsTimestamp(moved, record.ts));
  if (decoded.foreign === 0) return writeRecords(transaction, series.stream, records, source);
  const { own, foreign } = splitForeign(records, series);
  const written = writeRecords(transaction, series.stream, own, source);
  storeForeignRecords(transaction, series.stream, foreign);
  return written;
}

/** Ranges below the gap whose rows are in another store: a page that reaches into them must not bring some of them back. */
function findMovedBelow(
  transaction: Transaction,
  key: SeriesKey,
  { from: to }: TimeRange,
  oldest: Micros | undefined,
): TimeRange[] {
  if (key.stream !== "index_ticks" || oldest === undefined || oldest >= to) return [];
  return findTouching(transaction, key, { from: oldest, to }).filter(isMoved);
}
