import {
  computeWindowStart,
  fetchableFrom,
  type HistoryStream,
  isDaily,
  streamTable,
  WINDOW_MARGIN_MICROS,
} from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { PageAnswer, SeriesRules, SettledRange, StoredSeries } from "../../rule/answer.ts";
import { findPrevious, previewTolerance } from "../../rule/provable-until.ts";
import {
  findEndsAbove,
  findTargetStart,
  findTouching,
  type SeriesKey,
} from "../../warehouse/coverage/ledger.ts";
import {
  hasOtherPublished,
  type Lateness,
  learnLateness,
  MAX_LATENESS_MICROS,
  readLateness,
  readPublication,
} from "../../warehouse/coverage/publication.ts";
import { findRowsBeside } from "../../warehouse/rows/previews.ts";
import { findNewestRow, readStoredTimestamps } from "../../warehouse/rows/row-queries.ts";
import { rowSql } from "../../warehouse/rows/row-sql.ts";
import { readStreamTiming, type StreamTiming } from "../../warehouse/rows/stream-stats.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { Page } from "../decode/read-page.ts";

/** What the settings and the service say about the series of an answer. */
export interface SeriesTiming extends Pick<SeriesRules, "period" | "settleDelay" | "quietMargin"> {
  /** Length of the history that the service serves; null: unlimited. */
  readonly serviceWindow: Micros | null;
}

/** What the rule needs to know about a series at this time. */
export function toRules(
  { now, at: present }: Transaction,
  stream: HistoryStream,
  { period, settleDelay, quietMargin, serviceWindow }: SeriesTiming,
  lateness: Micros,
): SeriesRules {
  const windowStart = computeWindowStart(serviceWindow, now) + WINDOW_MARGIN_MICROS;
  const floor = fetchableFrom(serviceWindow, now);
  const { step } = streamTable[stream];
  const answer = { windowStart, floor, present, lateness };
  return { period, settleDelay, quietMargin, step, isDaily: isDaily(stream), ...answer };
}

/** Whether any row lies where the page may have records, beside the last one of the page before: usually none in a first backfill. */
export function readAround(
  transaction: Transaction,
  { stream, series }: SeriesKey,
  answer: PageAnswer,
  { timestamps, columns }: Page,
  timing: SeriesTiming,
) {
  const { gap, provenFrom, isLast } = answer;
  const tolerance = stream === "index_ticks" ? previewTolerance(timing) : 0;
  const ordered = columns ? timestamps : timestamps.toSorted((a, b) => b - a);
  const [newest = gap.from, oldest = provenFrom] = [ordered[0], ordered.at(-1)];
  const extent = {
    from: Math.min(oldest - tolerance, isLast ? gap.from : oldest),
    to: Math.max(newest + tolerance + 1, provenFrom),
  };
  const shown = findPrevious(answer);
  // A page that repeats the last row of the one before meets that row.
  const previous = shown !== undefined && newest < shown ? shown : undefined;
  const span = [series, extent.from, extent.to - 1, previous ?? null];
  const isVacant = transaction.findRow(rowSql[stream].selectAny, span) === undefined;
  return {
    /** From the oldest record, or the end of the gap, to the newest. */
    extent,
    previous,
    /** It has no row but that of the page before, `previous`. */
    isVacant,
  };
}

/** What a page has shown before the rule asks: it saves a query for each question. */
interface AroundPage extends ReturnType<typeof readAround> {
  /** The previews that the page replaces: they do not count. */
  readonly replaced: readonly Micros[];
  readonly learned: StreamTiming | undefined;
}

/** What the warehouse has of a series before the answer is written. Read where the rule asks for it. */
export function readStoredSeries(
  transaction: Transaction,
  key: SeriesKey,
  indexType: string,
  page?: AroundPage,
): StoredSeries {
  const { stream } = key;
  let nearby: readonly SettledRange[] | undefined;
  const readNearby = ({ extent }: AroundPage) => {
    nearby ??= findTouching(transaction, key, extent);
    return nearby;
  };
  return {
    settledRanges: (range) =>
      page && isWithin(range, page.extent)
        ? readNearby(page).filter(({ from, to }) => from <= range.to && to >= range.from)
        : findTouching(transaction, key, range),
    rowsBeside(range, timestamps) {
      const isPrevious = page?.previous === undefined || timestamps[0] === page.previous;
      if (page?.isVacant && isPrevious && isWithin(range, page.extent)) return [];
      const replaced = page?.replaced ?? [];
      return findRowsBeside(
        transaction,
        key,
        range,
        replaced.length > 0 ? [...timestamps, ...replaced] : timestamps,
      );
    },
    newestRow: (ts) => findNewestRow(transaction, key, { from: Number.MIN_SAFE_INTEGER, to: ts }),
    newestServed: (range) => findNewestRow(transaction, key, range, "served"),
    newestLive: (range) => findNewestRow(transaction, key, range, "live"),
    endsAbove: (ts) => findEndsAbove(transaction, key, ts),
    get targetStart() {
      return findTargetStart(transaction, key);
    },
    get publication() {
      return readPublication(transaction, key);
    },
    hasOtherPublished: (ts) => hasOtherPublished(transaction, key, indexType, ts),
    servesRunningDay: (page ? page.learned : readStreamTiming(transaction, stream))?.servesRunningDay === 1,
  };
}

function isWithin(range: TimeRange, extent: TimeRange): boolean {
  return extent.from <= range.from && range.to <= extent.to;
}

type HeadMember = "timestamps" | "asOf" | "settleDelay" | "period";

/** Records may appear still later than the latest so far. */
const LATENESS_MARGIN = 1.25;

/** How late the records of a head page are that an earlier page lacked; undefined: no later than is known. */
export function findLateness(
  transaction: Transaction,
  key: SeriesKey,
  { timestamps, asOf, settleDelay, period }: Pick<PageAnswer & SeriesTiming, HeadMember>,
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
