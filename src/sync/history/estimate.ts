import { select } from "../../model/selector.ts";
import { cadenceOf, isDaily, type Stream, streamTable } from "../../model/streams.ts";
import { type Micros, parseDayOrInstant } from "../../model/time.ts";
import { extent, intersect, normalise, subtract } from "../../model/time-range.ts";
import { indexKey, settledByIndex } from "../../warehouse/coverage/gaps.ts";
import { contractCount } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncSettings } from "../context/context.ts";
import type { Directory } from "../selection/directory.ts";
import { type SelectorNotice, type WantedStream, wantedSeries } from "../selection/targets.ts";
import { pagesFor, slicesOf } from "./slices.ts";

/** What a backfill would do for one stream. Rows, and what follows from them, are upper bounds. */
export interface StreamPlan {
  readonly stream: Stream;
  readonly series: number;
  readonly holes: number;
  readonly requests: number;
  readonly rows: number;
  readonly bytes: number;
  readonly minutes: number;
}

export interface Plan {
  readonly streams: readonly StreamPlan[];
  readonly notices: readonly SelectorNotice[];
}

/** What a request takes, and what the ingest thread writes, unless a rate is set. */
const SECONDS_A_REQUEST = 0.25;
const ROWS_A_SECOND = 50_000;
/** No daily bar of the service is older, so no row is to be expected before. */
const OLDEST_BAR = parseDayOrInstant("2014-04-01") ?? 0;
const LOOKUP_REQUESTS = 1;
const DERIVATIVE_EXCHANGES = 7;

export interface Planning {
  readonly settings: SyncSettings;
  readonly maxRequestsPerSecond: number;
  readonly directory: Directory;
  /** Undefined: there is no warehouse yet. */
  readonly reader: Connection | undefined;
  readonly now: Micros;
}

/** What a backfill would fetch at `now`, without fetching it. */
export function planBackfill(planning: Planning): Plan {
  const { settings, directory, now } = planning;
  const wanted = wantedSeries(settings, directory, now);
  const walked = wanted.streams
    .filter(({ stream }) => settings.streams[streamTable[stream].setting] !== false)
    .map((stream) => walkedPlan(planning, stream));
  return {
    streams: [...lookupPlans(planning), ...walked, ...snapshotPlans(planning)],
    notices: wanted.notices,
  };
}

function walkedPlan(planning: Planning, { stream, wants, rules }: WantedStream): StreamPlan {
  const { reader, now, settings } = planning;
  const known = reader ? settledByIndex(reader, stream) : new Map();
  const cadence = cadenceOf(stream, settings.refreshSeconds);
  const claim = Math.floor((now - rules.settleDelay) / rules.step) * rules.step;
  const edge = rules.keptFor === null ? undefined : now - rules.keptFor;
  let [holes, requests, rows] = [0, 0, 0];
  for (const want of wants) {
    const ledger = known.get(indexKey(want.indexType, want.indexId));
    const from = Math.max(Math.min(want.from, ledger?.wantedFrom ?? want.from), edge ?? want.from);
    const open = subtract(normalise([{ from, to: claim }]), normalise(ledger?.settled ?? []));
    const served = isDaily(stream)
      ? intersect(open, [{ from: OLDEST_BAR, to: Number.POSITIVE_INFINITY }])
      : open;
    holes += open.length;
    rows += Math.ceil(extent(served) / cadence);
    for (const { range } of slicesOf({ stream, open: served, claim, edge, cadence })) {
      requests += pagesFor(range, cadence);
    }
  }
  return priced(planning, stream, { series: wants.length, holes, requests, rows });
}

function lookupPlans(planning: Planning): StreamPlan[] {
  if (planning.settings.streams.lookups === false) return [];
  const { GWA, MWA, exchanges } = planning.directory;
  const list = (stream: Stream, rows: number) =>
    priced(planning, stream, { series: rows, holes: 0, requests: LOOKUP_REQUESTS, rows });
  return [list("assets", GWA.length), list("markets", MWA.length), list("exchanges", exchanges.length)];
}

function snapshotPlans(planning: Planning): StreamPlan[] {
  const { directory, settings } = planning;
  const { exchangeTickers, marketCap, derivatives } = settings.streams;
  const plans: StreamPlan[] = [];
  if (exchangeTickers !== false) {
    const isAll = exchangeTickers.exchanges.kind === "all";
    const chosen = select(exchangeTickers.exchanges, directory.exchanges, undefined).ids.length;
    const markets = select(exchangeTickers.markets, directory.MWA, directory.ranking).ids.length;
    const requests = isAll ? 1 : chosen;
    plans.push(
      priced(planning, "exchange_ticks", { series: requests, holes: 0, requests, rows: chosen * markets }),
    );
  }
  if (marketCap !== false) {
    const rows = directory.GWA.length;
    plans.push(priced(planning, "market_caps", { series: 1, holes: 0, requests: 1, rows }));
  }
  if (derivatives !== false) {
    const exchanges = select(derivatives.exchanges, directory.exchanges, undefined).ids.length;
    const supported = Math.min(DERIVATIVE_EXCHANGES, exchanges);
    const kinds = derivatives.types.length;
    // How many contracts there are is known once they have been looked up.
    const rows = planning.reader ? contractCount(planning.reader) : 0;
    const lists = { series: exchanges, holes: 0, requests: exchanges * kinds, rows };
    plans.push(priced(planning, "derivative_contracts", lists));
    const ticks = { series: supported, holes: 0, requests: supported * kinds, rows };
    plans.push(priced(planning, "derivative_ticks", ticks));
  }
  return plans;
}

function priced(
  { settings, maxRequestsPerSecond }: Planning,
  stream: Stream,
  counts: Pick<StreamPlan, "series" | "holes" | "requests" | "rows">,
): StreamPlan {
  const adaptive = settings.concurrency / SECONDS_A_REQUEST;
  const rate = maxRequestsPerSecond > 0 ? Math.min(maxRequestsPerSecond, adaptive) : adaptive;
  const seconds = Math.max(counts.requests / rate, counts.rows / ROWS_A_SECOND);
  return { stream, ...counts, bytes: counts.rows * streamTable[stream].bytesPerRow, minutes: seconds / 60 };
}

/** What the estimates rest on, in one sentence. */
export function assumptions({
  settings,
  maxRequestsPerSecond,
}: Pick<Planning, "settings" | "maxRequestsPerSecond">): string {
  const rate =
    maxRequestsPerSecond > 0
      ? `at most ${maxRequestsPerSecond} requests a second`
      : `${settings.concurrency} requests in flight`;
  return (
    `rows are upper bounds (a row each ${settings.refreshSeconds} s, a bar a day since April 2014); minutes assume ` +
    `${rate}, ${SECONDS_A_REQUEST} s each, and ${ROWS_A_SECOND.toLocaleString("en-US")} rows a second`
  );
}
