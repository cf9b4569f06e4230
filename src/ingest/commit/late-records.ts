import { isDaily } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { findTouching, type SeriesKey } from "../../warehouse/coverage/ledger.ts";
import {
  type Lateness,
  learnLateness,
  MAX_LATENESS_MICROS,
  readLateness,
  readPublication,
} from "../../warehouse/coverage/publication.ts";
import { readStoredTimestamps } from "../../warehouse/rows/row-queries.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";

interface HeadPage {
  /** Of the page's records, newest first. */
  readonly timestamps: readonly Micros[];
  readonly asOf: Micros;
  readonly settleDelay: Micros;
  readonly period: Micros;
}

/** Records may appear still later than the latest so far. */
const LATENESS_MARGIN = 1.25;

/** How late the records of a head page are that an earlier page lacked; undefined: no later than is known. */
export function findLateness(
  transaction: Transaction,
  key: SeriesKey,
  { timestamps, asOf, settleDelay, period }: HeadPage,
): Lateness | undefined {
  const before = readPublication(transaction, key);
  const oldest = timestamps.at(-1);
  if (!before || oldest === undefined || isDaily(key.stream)) return undefined;
  // REST had shown a newer record, and the settle delay of these had passed.
  const to = Math.min(before.publishedTo, before.askedAt - settleDelay);
  const from = Math.max(oldest, asOf - MAX_LATENESS_MICROS);
  const stored = new Set(readStoredTimestamps(transaction, key, { from, to }));
  const unknown = timestamps.filter((ts) => from <= ts && ts < to && !stored.has(ts));
  if (unknown.length === 0) return undefined;
  const requested = findTouching(transaction, key, { from, to: Number.MAX_SAFE_INTEGER });
  const headFrom = requested.at(-1)?.to ?? Number.POSITIVE_INFINITY;
  const isLate = (ts: Micros) =>
    ts >= headFrom || requested.some((range) => range.from <= ts && ts < range.to);
  const oldestLate = unknown.findLast(isLate);
  if (oldestLate === undefined) return undefined;
  const lateBy = Math.min(MAX_LATENESS_MICROS, Math.ceil((asOf - oldestLate) * LATENESS_MARGIN));
  const known = readLateness(transaction, key.stream);
  return learnLateness(known, { lateBy, lateAt: asOf }, { settleDelay, cadence: period });
}
