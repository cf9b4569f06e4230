import { resolveSelector } from "../../model/selector.ts";
import { cadenceOf, isDaily, type Stream, streamTable } from "../../model/streams.ts";
import { type Micros, parseDateOrTimestamp } from "../../model/time.ts";
import { intersect, normalise, totalDuration } from "../../model/time-range.ts";
import {
  computeTargetEnd,
  computeWindowStart,
  findGaps,
  selectRanges,
} from "../../warehouse/coverage/gaps.ts";
import { indexKey, readIndexLedgers } from "../../warehouse/coverage/series-queries.ts";
import { countContracts } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import type { Directory } from "../selection/directory.ts";
import { resolveTargets, type SelectorNotice, type StreamTargets } from "../selection/targets.ts";
import { countPages, cutIntoSlices } from "./slices.ts";

/** What a backfill would do for one stream. Rows, bytes and minutes are upper bounds. */
interface StreamEstimate {
  readonly stream: Stream;
  readonly series: number;
  /** Number of gaps; named by the JSON output of `plan`. */
  readonly holes: number;
  readonly requests: number;
  readonly rows: number;
  readonly bytes: number;
  readonly minutes: number;
}

export interface BackfillEstimate {
  readonly streams: readonly StreamEstimate[];
  readonly notices: readonly SelectorNotice[];
}

/** Assumed duration of a request and write rate of the ingest thread. */
const SECONDS_PER_REQUEST = 0.25;
const ROWS_PER_SECOND = 50_000;
/** The service has no older daily bar, so no rows are expected before this day. */
const OLDEST_BAR_TS = parseDateOrTimestamp("2014-04-01") ?? 0;
const LOOKUP_REQUESTS = 1;
const DERIVATIVE_EXCHANGES = 7;

interface EstimateOptions {
  readonly settings: SyncSettings;
  readonly maxRequestsPerSecond: number;
  readonly directory: Directory;
  /** Undefined if there is no warehouse yet. */
  readonly reader: Connection | undefined;
  readonly now: Micros;
}

/** Estimates what a backfill at `now` would fetch. Sends no requests. */
export function estimateBackfill(options: EstimateOptions): BackfillEstimate {
  const { settings, directory, now } = options;
  const targets = resolveTargets(settings, directory, now);
  const historyEstimates = targets.streams
    .filter(({ stream }) => settings.streams[streamTable[stream].setting] !== false)
    .map((stream) => estimateHistory(options, stream));
  return {
    streams: [...estimateLookups(options), ...historyEstimates, ...estimateSnapshots(options)],
    notices: targets.notices,
  };
}

function estimateHistory(
  options: EstimateOptions,
  { stream, targets, rules }: StreamTargets,
): StreamEstimate {
  const { reader, now, settings } = options;
  const ledgers = reader && readIndexLedgers(reader, stream);
  const cadence = cadenceOf(stream, settings.refreshSeconds);
  const targetEnd = computeTargetEnd(rules, now);
  const windowStart = computeWindowStart(rules.serviceWindow, now);
  let [holes, requests, rows] = [0, 0, 0];
  for (const target of targets) {
    const ledger = ledgers?.get(indexKey(target.indexType, target.indexId));
    // A stored target keeps its start if it starts earlier than the settings say.
    const from = Math.min(target.from, ledger?.targetFrom ?? target.from);
    const effectiveTarget = { ...rules, from, to: null, isSnapshot: false };
    const open = selectRanges(findGaps([effectiveTarget], normalise(ledger?.settled ?? []), now), "open");
    const fetchable = isDaily(stream)
      ? intersect(open, [{ from: OLDEST_BAR_TS, to: Number.POSITIVE_INFINITY }])
      : open;
    holes += open.length;
    rows += Math.ceil(totalDuration(fetchable) / cadence);
    for (const { range } of cutIntoSlices({
      stream,
      open: fetchable,
      targetEnd,
      windowStart,
      cadence,
    })) {
      requests += countPages(range, cadence);
    }
  }
  return addCosts(options, stream, { series: targets.length, holes, requests, rows });
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
  if (exchangeTickers !== false) {
    const isEveryExchange = exchangeTickers.exchanges.kind === "all";
    const exchangeCount = resolveSelector(exchangeTickers.exchanges, directory.exchanges, undefined).ids
      .length;
    const marketCount = resolveSelector(exchangeTickers.markets, directory.MWA, directory.ranking).ids.length;
    const requests = isEveryExchange ? 1 : exchangeCount;
    estimates.push(
      addCosts(options, "exchange_ticks", {
        series: requests,
        holes: 0,
        requests,
        rows: exchangeCount * marketCount,
      }),
    );
  }
  if (marketCap !== false) {
    const rows = directory.GWA.length;
    estimates.push(addCosts(options, "market_caps", { series: 1, holes: 0, requests: 1, rows }));
  }
  if (derivatives !== false) {
    const exchanges = resolveSelector(derivatives.exchanges, directory.exchanges, undefined).ids.length;
    const supported = Math.min(DERIVATIVE_EXCHANGES, exchanges);
    const kinds = derivatives.types.length;
    // The number of contracts is unknown until they have been looked up once.
    const rows = options.reader ? countContracts(options.reader) : 0;
    const lists = { series: exchanges, holes: 0, requests: exchanges * kinds, rows };
    estimates.push(addCosts(options, "derivative_contracts", lists));
    const ticks = { series: supported, holes: 0, requests: supported * kinds, rows };
    estimates.push(addCosts(options, "derivative_ticks", ticks));
  }
  return estimates;
}

function addCosts(
  { settings, maxRequestsPerSecond }: EstimateOptions,
  stream: Stream,
  counts: Pick<StreamEstimate, "series" | "holes" | "requests" | "rows">,
): StreamEstimate {
  const unlimitedRate = settings.concurrency / SECONDS_PER_REQUEST;
  const rate = maxRequestsPerSecond > 0 ? Math.min(maxRequestsPerSecond, unlimitedRate) : unlimitedRate;
  const seconds = Math.max(counts.requests / rate, counts.rows / ROWS_PER_SECOND);
  return { stream, ...counts, bytes: counts.rows * streamTable[stream].bytesPerRow, minutes: seconds / 60 };
}

/** States the assumptions of the estimate in one sentence. */
export function describeAssumptions({
  settings,
  maxRequestsPerSecond,
}: Pick<EstimateOptions, "settings" | "maxRequestsPerSecond">): string {
  const rate =
    maxRequestsPerSecond > 0
      ? `at most ${maxRequestsPerSecond} requests a second`
      : `${settings.concurrency} requests in flight`;
  return (
    `rows are upper bounds (a row each ${settings.refreshSeconds} s, a bar a day since April 2014); minutes assume ` +
    `${rate}, ${SECONDS_PER_REQUEST} s each, and ${ROWS_PER_SECOND.toLocaleString("en-US")} rows a second`
  );
}
