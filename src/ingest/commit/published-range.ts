import {
  type HistoryStream,
  isDaily,
  type Series,
  streamDefinition,
  streamTable,
} from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { computeTargetEnd } from "../../warehouse/coverage/gaps.ts";
import { findTouching, type LedgerKey, retract } from "../../warehouse/coverage/ledger.ts";
import {
  extendSettleDelay,
  hasOtherPublished,
  MAX_LATENESS_MICROS,
  readLateness,
  readPublication,
  recordHeadPage,
  recordLateness,
  recordLowerPage,
  recordRunningDay,
  servesRunningDay,
} from "../../warehouse/coverage/publication.ts";
import {
  findNewestLiveRow,
  findNewestServedRow,
  readStoredTimestamps,
} from "../../warehouse/rows/row-queries.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import { findQuietMargin, type WalkPosition } from "./proven-range.ts";

/** The service's clock is known to about a second, and the `Date` header has whole seconds. */
export const DATE_HEADER_SLACK_MICROS = 5 * MICROS_PER_SECOND;

type SeriesKey = LedgerKey & { readonly stream: HistoryStream };

/** A page of a walk, and when the service made it. */
interface ReceivedPage {
  readonly series: Series;
  readonly position: WalkPosition;
  readonly cadence: Micros;
  readonly isHead: boolean;
  readonly isSilenceConfirmed: boolean;
  readonly quietMargin: Micros;
  /** Of the page's records, newest first. */
  readonly timestamps: readonly Micros[];
  readonly asOf: Micros;
}

/**
 * A page proves nothing above the newest record that REST has shown plus one period, unless the series is quiet. Stores what
 * the page has shown. A page of the head counts alone: another server may have shown more.
 */
export function clampToPublished(
  transaction: Transaction,
  key: SeriesKey,
  proven: TimeRange | undefined,
  page: ReceivedPage,
): TimeRange | undefined {
  const { gap, provenFrom } = page.position;
  if (provenFrom < gap.to) return proven;
  const { isHead, cadence, asOf, quietMargin } = page;
  // A record from the future shows nothing.
  const newest = page.timestamps.find((ts) => ts <= asOf + cadence);
  const isNewestFinal = !hasRunningBar(transaction, key, { newest, asOf, cadence });
  const period = isNewestFinal ? findShortestPeriod(page) : 0;
  const shownTo = newest === undefined ? 0 : newest + period;
  const end = proven?.to ?? gap.to;
  if (!isHead && shownTo >= end) return proven;
  const publishedTo = isHead ? shownTo : Math.max(shownTo, findPublishedTo(transaction, key, end, period));
  const { step } = streamTable[page.series.stream];
  const findQuietTo = (margin: Micros) =>
    computeTargetEnd({ settleDelay: margin, step }, asOf + DATE_HEADER_SLACK_MICROS);
  const margin =
    publishedTo >= end
      ? undefined
      : findQuietMargin({
          // A bar is due at the end of its day.
          nextDue: publishedTo === 0 ? undefined : publishedTo + (isDaily(page.series.stream) ? cadence : 0),
          asOf,
          quietMargin,
          // The walk itself confirms silence in the middle of the history, where it looks suspicious.
          isConfirmed: page.isSilenceConfirmed || !isHead,
          // A newer live tick shows that REST lags for this series.
          hasOtherPublished: () =>
            !hasLiveRows(transaction, key, { from: publishedTo, to: end }) &&
            hasOtherPublished(transaction, key, page.series.indexType, findQuietTo(quietMargin)),
        });
  if (isHead)
    recordHeadPage(transaction, key, {
      publishedTo,
      askedAt: asOf,
      askedTo: end,
      quietMargin: margin ?? 0,
    });
  else recordLowerPage(transaction, key, { publishedTo: shownTo, askedTo: end });
  const to = Math.min(end, margin === undefined ? publishedTo : Math.max(publishedTo, findQuietTo(margin)));
  return proven && proven.from < to ? { from: proven.from, to } : undefined;
}

/** Ticks that are refreshed every 30 seconds may be some milliseconds less apart: the next one may come that early too. */
function findShortestPeriod({ timestamps, cadence }: Pick<ReceivedPage, "timestamps" | "cadence">): Micros {
  let shortest = cadence;
  for (let i = 1; i < timestamps.length; i++) {
    const distance = Math.abs((timestamps[i - 1] as Micros) - (timestamps[i] as Micros));
    // A record in between is no sign of the cadence.
    if (distance < shortest && distance > cadence / 2) shortest = distance;
  }
  return shortest;
}

/** A bar is served this long before its day ends, or it is not known to be that of a running day: clocks differ. */
const MIN_RUNNING_MICROS = 3600 * MICROS_PER_SECOND;

/**
 * Whether the newest bar may be an earlier state of it. A service that serves the bar of a running day, and lags, serves
 * that bar after the day has ended too: it is final once a newer bar is shown.
 */
function hasRunningBar(
  transaction: Transaction,
  { stream }: SeriesKey,
  { newest, asOf, cadence }: { newest: Micros | undefined; asOf: Micros; cadence: Micros },
): boolean {
  if (!isDaily(stream)) return false;
  if (servesRunningDay(transaction, stream)) return true;
  const isRunning = (newest ?? 0) + cadence > asOf + MIN_RUNNING_MICROS;
  if (isRunning) recordRunningDay(transaction, stream);
  return isRunning;
}

/** Up to where REST has shown records of a series: on a page of the head, or on another one that stored or settled something. */
function findPublishedTo(transaction: Transaction, key: SeriesKey, end: Micros, period: Micros): Micros {
  const publishedTo = readPublication(transaction, key)?.publishedTo ?? 0;
  if (publishedTo >= end) return publishedTo;
  const above = findTouching(transaction, key, { from: end + 1, to: Number.MAX_SAFE_INTEGER });
  const all = { from: Number.MIN_SAFE_INTEGER, to: Number.MAX_SAFE_INTEGER };
  const newest = findNewestServedRow(transaction, key, all) ?? -period;
  return Math.max(publishedTo, newest + period, above.findLast(({ proof }) => proof === "rows")?.to ?? 0);
}

function hasLiveRows(transaction: Transaction, { stream, series }: LedgerKey, range: TimeRange): boolean {
  return (
    streamDefinition(stream).event !== null && findNewestLiveRow(transaction, series, range) !== undefined
  );
}

/** Records may appear still later than the latest so far. */
const LATENESS_MARGIN = 1.25;

/** Finds the records of a head page that an earlier page lacked, and stores how late they are. Call it before the write. */
export function recordLateRecords(
  transaction: Transaction,
  key: SeriesKey,
  page: Pick<ReceivedPage, "timestamps" | "asOf" | "cadence"> & { readonly settleDelay: Micros },
): void {
  const { timestamps, asOf, settleDelay } = page;
  const before = readPublication(transaction, key);
  const oldest = timestamps.at(-1);
  if (!before || oldest === undefined || isDaily(key.stream)) return;
  // REST had shown a newer record, and the settle delay of these had passed.
  const to = Math.min(before.publishedTo, before.askedAt - settleDelay);
  const from = Math.max(oldest, asOf - MAX_LATENESS_MICROS);
  const stored = new Set(readStoredTimestamps(transaction, key, { from, to }));
  const unknown = timestamps.filter((ts) => from <= ts && ts < to && !stored.has(ts));
  if (unknown.length === 0) return;
  const requested = findTouching(transaction, key, { from, to: Number.MAX_SAFE_INTEGER });
  const headFrom = requested.at(-1)?.to ?? Number.POSITIVE_INFINITY;
  const isLate = (ts: Micros) =>
    ts >= headFrom || requested.some((range) => range.from <= ts && ts < range.to);
  const oldestLate = unknown.findLast(isLate);
  if (oldestLate === undefined) return;
  const lateBy = Math.min(MAX_LATENESS_MICROS, Math.ceil((asOf - oldestLate) * LATENESS_MARGIN));
  recordLateness(transaction, key.stream, { lateBy, lateAt: asOf }, page);
}

/** The settle delay for a head page: what is younger may still get late records, so it is not covered any more. */
export function applyLateness(
  transaction: Transaction,
  key: LedgerKey,
  { settleDelay, asOf }: { readonly settleDelay: Micros; readonly asOf: Micros },
): Micros {
  const extended = extendSettleDelay({ settleDelay }, readLateness(transaction, key.stream), asOf);
  if (extended > settleDelay && !isDaily(key.stream))
    retract(transaction, key, { from: asOf - extended, to: Number.MAX_SAFE_INTEGER });
  return extended;
}
