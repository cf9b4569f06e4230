import { resolveSelector } from "../../model/selector.ts";
import {
  cadenceOf,
  computeTargetEnd,
  computeWindowStart,
  type HistoryStream,
  isDaily,
  type Stream,
  streamTable,
} from "../../model/streams.ts";
import { formatDay, type Micros, parseDateOrTimestamp } from "../../model/time.ts";
import { intersect, normalise, subtract, totalDuration, union } from "../../model/time-range.ts";
import { readDueRechecks } from "../../warehouse/coverage/rechecks.ts";
import { indexKey, readSeriesLedgers } from "../../warehouse/coverage/series-queries.ts";
import { countContracts } from "../../warehouse/lookups/lookup-queries.ts";
import { findOldestRow, readRowSpacing } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { readRequestRate } from "../../warehouse/tables/warehouse-state.ts";
import type { SyncSettings } from "../context/context.ts";
import { findUnselectedSeries, resolveIndexNames } from "../selection/named-series.ts";
import { findNotices } from "../selection/selectors.ts";
import { type Directory, resolveTargets, type StreamTargets } from "../selection/targets.ts";
import { planNight } from "./comparison-plan.ts";
import { isInRun, isWholeRun, type RunFilter, selectNameableStreams, toGapFilter } from "./run-filter.ts";
import type { HistoryExtent, SampledSeries } from "./sample-histories.ts";
import { isNightDue } from "./verify.ts";
import { countPages, type GapFilter, RECHECK_MICROS, type SliceWalk } from "./walk-planner.ts";

type StreamEstimate = Readonly<ReturnType<typeof addCosts>>;
export type BackfillEstimate = Awaited<ReturnType<typeof estimateBackfill>>;

/** Assumed duration of a request and write rate of the ingest thread, until a backfill has measured the rate. */
const SECONDS_PER_REQUEST = 0.25;
const ROWS_PER_SECOND = 50_000;
/** The service has no older daily bar, so no rows are expected before this day. */
const OLDEST_BAR_TS = parseDateOrTimestamp("2014-04-01") ?? 0;
const LOOKUP_REQUESTS = 1;
const DERIVATIVE_EXCHANGES = 7;
/** Three responses must agree that a series has no records. */
const EMPTY_SERIES_REQUESTS = 3;
/** To find where a history begins: an exploration and a confirmation, and one more exploration if it is long. */
const MIN_EXPLORED_PAGES = 4;

interface EstimateOptions {
  readonly settings: SyncSettings;
  readonly directory: Directory;
  /** Undefined if there is no warehouse yet. */
  readonly reader: Connection | undefined;
  readonly now: Micros;
  /** What the run is limited to; default: nothing. */
  readonly filter?: RunFilter | undefined;
  /** Finds out how far back series reach; absent: the estimate is an upper bound. */
  readonly sample?: (series: readonly SampledSeries[]) => Promise<ReadonlyMap<SampledSeries, HistoryExtent>>;
}

export async function estimateBackfill(options: EstimateOptions) {
  const { settings, directory, now, filter = {} } = options;
  const targets = resolveTargets(settings, directory, now);
  const named = filter.series && resolveIndexNames(filter.series, directory);
  const isIncluded = ({ stream }: { readonly stream: Stream }) =>
    isInRun(filter, stream) || (stream === "derivative_contracts" && isInRun(filter, "derivative_ticks"));
  const historyEstimates: StreamEstimate[] = [];
  for (const stream of targets.filter(isIncluded))
    if (settings.streams[streamTable[stream.stream].setting] !== false)
      historyEstimates.push(await estimateHistory(options, stream, toGapFilter(filter, named)));
  const snapshotEstimates = estimateSnapshots(options).filter(isIncluded);
  return {
    streams: [...estimateLookups(options), ...historyEstimates, ...snapshotEstimates],
    /** Named series that the settings do not select for some streams of the run. */
    notSelected: findUnselectedSeries(named ?? [], selectNameableStreams(targets, filter, settings)),
    notices: findNotices(settings, directory),
  };
}

async function estimateHistory(
  options: EstimateOptions,
  { stream, targets: all, rules }: StreamTargets,
  { indexIds, range }: GapFilter,
): Promise<StreamEstimate> {
  const { reader, now, settings, filter = {} } = options;
  const targets = all.filter(({ indexId }) => indexIds?.has(indexId) ?? true);
  const ledgers = new Map(
    (reader ? readSeriesLedgers(reader, stream) : []).map((ledger) => [
      indexKey(ledger.indexType, ledger.indexId),
      ledger,
    ]),
  );
  const cadence = cadenceOf(stream, settings.refreshSeconds);
  const targetEnd = computeTargetEnd(rules, now);
  const rechecks = new Set(
    (reader && !range ? readDueRechecks(reader, stream, formatDay(now)) : []).map((due) =>
      indexKey(due.indexType, due.indexId),
    ),
  );
  const openSeries: SampledSeries[] = [];
  let holes = 0;
  for (const { indexType, indexId, from: selectedFrom } of targets) {
    const ledger = ledgers.get(indexKey(indexType, indexId));
    // A stored target keeps its start if it starts earlier than the settings say.
    const from = Math.min(selectedFrom, ledger?.targetFrom ?? selectedFrom);
    // The settings may select what no stored target has yet.
    const selected = { from: Math.max(from, computeWindowStart(rules.serviceWindow, now)), to: targetEnd };
    const allGaps = subtract(normalise([selected]), normalise(ledger?.settled ?? []));
    const gaps = range ? intersect(allGaps, [range]) : allGaps;
    holes += gaps.length;
    const recheck = { from: Math.max(from, targetEnd - RECHECK_MICROS), to: targetEnd };
    const open = rechecks.has(indexKey(indexType, indexId)) ? union(gaps, [recheck]) : gaps;
    const fetchable = isDaily(stream)
      ? intersect(open, [{ from: OLDEST_BAR_TS, to: Number.POSITIVE_INFINITY }])
      : open;
    if (fetchable.length === 0) continue;
    const key = ledger?.key;
    openSeries.push({
      stream,
      indexType,
      indexId,
      open: fetchable,
      cadence,
      spacing: reader && key && readRowSpacing(reader, key),
      oldestRow: reader && key && findOldestRow(reader, key),
    });
  }
  const extents = await options.sample?.(openSeries);
  const isCounted = (series: SampledSeries) => !extents?.size || extents.has(series);
  const counted = openSeries.filter(isCounted).map((series) => countWork(series, extents?.get(series)));
  // The average of those that were sampled stands for the others.
  const weight = openSeries.length / Math.max(1, counted.length);
  let requests = weight * counted.reduce((sum, work) => sum + work.requests, 0);
  const rows = weight * counted.reduce((sum, work) => sum + work.rows, 0);
  if (reader && isWholeRun(filter))
    requests += countNightlyRequests(reader, stream, settings.refreshSeconds, now);
  const counts = { holes, requests: Math.round(requests), rows: Math.round(rows) };
  return addCosts(options, stream, { series: targets.length, ...counts });
}

/** What `backfill` asks once more on a day: it fetches no new rows. */
function countNightlyRequests(
  reader: Connection,
  stream: HistoryStream,
  refreshSeconds: number,
  now: Micros,
): number {
  if (!isNightDue(reader, now)) return 0;
  const { ends, slices } = planNight(reader, refreshSeconds, now);
  const isOfStream = ({ series }: SliceWalk) => series.key.stream === stream;
  return slices.filter(isOfStream).reduce((sum, { series, range: { from, to } }) => {
    const oldest = Math.min(to, findOldestRow(reader, series.key) ?? to);
    return sum + countPages({ from: Math.max(from, oldest), to }, series.cadence);
  }, ends.filter(isOfStream).length);
}

/** The requests and rows of one series; without an extent, at most. */
function countWork(
  { stream, open, cadence, spacing: storedSpacing }: SampledSeries,
  extent: HistoryExtent | undefined,
): { requests: number; rows: number } {
  const spacing = Math.max(1, extent?.spacing ?? storedSpacing ?? cadence);
  if (extent && extent.beginsAt === undefined) return { requests: EMPTY_SERIES_REQUESTS, rows: 0 };
  const beginsAt = extent?.beginsAt ?? Number.NEGATIVE_INFINITY;
  const ranges = intersect(open, [{ from: beginsAt, to: Number.POSITIVE_INFINITY }]);
  const pages = ranges.reduce((sum, range) => sum + countPages(range, spacing), 0);
  const isBeginInside = beginsAt > (open[0]?.from ?? 0) + spacing;
  const searchRequests = isDaily(stream) ? 1 : pages < MIN_EXPLORED_PAGES ? 2 : 3;
  return {
    requests: pages + (isBeginInside ? searchRequests : 0),
    rows: Math.ceil(totalDuration(ranges) / spacing),
  };
}

function estimateLookups(options: EstimateOptions): StreamEstimate[] {
  if (options.settings.streams.lookups === false) return [];
  const { GWA, MWA, exchanges } = options.directory;
  const list = (stream: Stream, rows: number) =>
    addCosts(options, stream, { series: rows, holes: 0, requests: LOOKUP_REQUESTS, rows });
  return [list("assets", GWA.length), list("markets", MWA.length), list("exchanges", exchanges.length)];
}

function estimateSnapshots(options: EstimateOptions): StreamEstimate[] {
  const { directory, settings } = options;
  const { exchangeTickers, marketCap, derivatives } = settings.streams;
  const estimates: StreamEstimate[] = [];
  const add = (stream: Stream, series: number, requests: number, rows: number) =>
    estimates.push(addCosts(options, stream, { series, holes: 0, requests, rows }));
  if (exchangeTickers !== false) {
    const isEveryExchange = exchangeTickers.exchanges.kind === "all";
    const exchangeCount = resolveSelector(exchangeTickers.exchanges, directory.exchanges, undefined).ids
      .length;
    const marketCount = resolveSelector(exchangeTickers.markets, directory.MWA, directory.ranking).ids.length;
    const requests = isEveryExchange ? 1 : exchangeCount;
    add("exchange_ticks", requests, requests, exchangeCount * marketCount);
  }
  if (marketCap !== false) add("market_caps", 1, 1, directory.GWA.length);
  if (derivatives !== false) {
    const exchanges = resolveSelector(derivatives.exchanges, directory.exchanges, undefined).ids.length;
    const supported = Math.min(DERIVATIVE_EXCHANGES, exchanges);
    const kinds = derivatives.types.length;
    // The number of contracts is unknown until they have been looked up once.
    const rows = options.reader ? countContracts(options.reader) : 0;
    add("derivative_contracts", exchanges, exchanges * kinds, rows);
    add("derivative_ticks", supported, supported * kinds, rows);
  }
  return estimates;
}

/** What a backfill would do for one stream. `holes`: its gaps, as the JSON output of `plan` names them. */
function addCosts(
  options: EstimateOptions,
  stream: Stream,
  counts: { series: number; holes: number; requests: number; rows: number },
) {
  const { settings } = options;
  const measuredRate = options.reader && readRequestRate(options.reader);
  const rate = limitRate(measuredRate ?? settings.concurrency / SECONDS_PER_REQUEST, settings);
  const writeSeconds = measuredRate === undefined ? counts.rows / ROWS_PER_SECOND : 0;
  const seconds = Math.max(counts.requests / rate, writeSeconds);
  return { stream, ...counts, bytes: counts.rows * streamTable[stream].bytesPerRow, minutes: seconds / 60 };
}

function limitRate(rate: number, { maxRequestsPerSecond }: SyncSettings): number {
  return maxRequestsPerSecond > 0 ? Math.min(maxRequestsPerSecond, rate) : rate;
}

/** States the assumptions of the estimate in one sentence. */
export function describeAssumptions(
  options: Pick<EstimateOptions, "settings" | "reader">,
  isSampled: boolean,
): string {
  const { settings } = options;
  const { maxRequestsPerSecond } = settings;
  const measuredRate = options.reader && readRequestRate(options.reader);
  const rate =
    measuredRate !== undefined
      ? `${limitRate(measuredRate, settings).toFixed(1)} requests a second, as the last backfill measured`
      : `${maxRequestsPerSecond > 0 ? `at most ${maxRequestsPerSecond} requests a second` : `${settings.concurrency} requests in flight`}, ${SECONDS_PER_REQUEST} s each, and ${ROWS_PER_SECOND.toLocaleString("en-US")} rows a second`;
  const rows = isSampled
    ? "the service was asked how far back a sample of the series reaches"
    : `rows are upper bounds (a row each ${settings.refreshSeconds} s, a bar a day since April 2014)`;
  return `${rows}; minutes assume ${rate}`;
}
