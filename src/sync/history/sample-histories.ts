import { Failure } from "../../model/failure.ts";
import { type HistoryStream, MAX_PAGE_SIZE, streamTable } from "../../model/streams.ts";
import { formatToMillisecond, type Micros } from "../../model/time.ts";
import type { TimeRanges } from "../../model/time-range.ts";
import type { ServiceClient } from "../../service/client/client.ts";
import { requestPriority } from "../../service/http/request.ts";
import { anchorForRow } from "../../service/pagination/request-page.ts";
import { runConcurrently } from "../context/context.ts";
import { fetchPage } from "../fetch/fetch-records.ts";

/** A series with gaps, and what the warehouse knows about it. */
export interface SampledSeries {
  readonly stream: HistoryStream;
  readonly indexType: string;
  readonly indexId: string;
  /** Ascending, not empty. */
  readonly open: TimeRanges;
  readonly cadence: Micros;
  /** The average distance of its stored rows. */
  readonly spacing: Micros | undefined;
  readonly oldestRow: Micros | undefined;
}

/** What the service has of a series. */
export interface HistoryExtent {
  /** Undefined: the service has no records. */
  readonly beginsAt: Micros | undefined;
  /** The average distance of its records. */
  readonly spacing: Micros;
}

interface SampleOptions {
  readonly client: Pick<ServiceClient, "request">;
  readonly series: readonly SampledSeries[];
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

/** More series of a stream are not asked for: their average stands for the others. */
const MAX_SAMPLED_SERIES = 40;
/** Enough records to see how far apart they are. */
const SPACING_RECORDS = 200;
/** Where a history begins is searched as closely as this, in pages and relative to its length. */
const MAX_PAGES_OFF = 0.4;
const MAX_FRACTION_OFF = 0.04;
const MAX_SEARCH_REQUESTS = 14;

/**
 * Finds out with a few small requests how far back the history of some series reaches. A series whose request fails
 * is left out.
 */
export async function sampleHistories(options: SampleOptions): Promise<Map<SampledSeries, HistoryExtent>> {
  const { series, concurrency, signal } = options;
  const extents = new Map<SampledSeries, HistoryExtent>();
  const step = Math.max(1, series.length / MAX_SAMPLED_SERIES);
  const sampled = series.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step));
  await runConcurrently(sampled, concurrency, async (each) => {
    try {
      extents.set(each, await findExtent(options, each));
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Failure)) throw error;
      if (error.code === "not_found") extents.set(each, { beginsAt: undefined, spacing: each.cadence });
    }
  });
  return extents;
}

async function findExtent(options: SampleOptions, series: SampledSeries): Promise<HistoryExtent> {
  const { open, cadence, oldestRow } = series;
  const bottom = open[0]?.from ?? 0;
  const top = open.at(-1)?.to ?? 0;
  let { spacing } = series;
  // Gaps above a stored row are inside the history.
  if (oldestRow !== undefined && spacing !== undefined && oldestRow <= bottom)
    return { beginsAt: bottom, spacing };
  const newest = await requestTimestamps(options, series, top, SPACING_RECORDS);
  const [first, last] = [newest[0], newest.at(-1)];
  if (first === undefined || last === undefined) return { beginsAt: undefined, spacing: cadence };
  spacing ??= newest.length > 1 ? (first - last) / (newest.length - 1) : cadence;
  const pageLength = spacing * MAX_PAGE_SIZE;
  let known = Math.min(last, oldestRow ?? last);
  let emptyUntil = Math.min(bottom + pageLength, (bottom + top) / 2);
  if (known <= emptyUntil || (await requestTimestamps(options, series, emptyUntil, 1)).length > 0)
    return { beginsAt: bottom, spacing };
  for (let requests = 0; requests < MAX_SEARCH_REQUESTS; requests++) {
    const maxOff = Math.max(MAX_PAGES_OFF * pageLength, MAX_FRACTION_OFF * (top - known));
    if (known - emptyUntil <= maxOff) break;
    // Half as a ratio, not as a difference: most young histories are much shorter than the window.
    const age = Math.sqrt(Math.max(top - known, pageLength / 8) * (top - emptyUntil));
    const middle = Math.min(known - 1, Math.max(emptyUntil + 1, top - age));
    const [row] = await requestTimestamps(options, series, middle, 1);
    if (row === undefined) emptyUntil = middle;
    else known = Math.min(known, row);
  }
  return { beginsAt: (known + emptyUntil) / 2, spacing };
}

/** The timestamps of the newest records up to `ts`, newest first. */
async function requestTimestamps(
  { client, signal }: SampleOptions,
  { stream, indexType, indexId }: SampledSeries,
  ts: Micros,
  size: number,
): Promise<readonly Micros[]> {
  const { endpoint } = streamTable[stream];
  const timestamp = formatToMillisecond(anchorForRow(endpoint, Math.floor(ts)));
  const query = { indexType, indexId, timestamp, size };
  const { records } = await fetchPage(client, stream, { query, priority: requestPriority.history, signal });
  return records.filter((record) => record.indexId === indexId).map((record) => record.ts);
}
