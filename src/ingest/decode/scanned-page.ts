import { decodeBody, type ResponseBody } from "../../model/response-body.ts";
import type { Series, Stream } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { type ScannedTicks, scanTickPage } from "./fast-tick-scanner.ts";

export interface ReadPageOptions {
  readonly stream: Stream;
  /** For a history stream: the requested series. */
  readonly series?: Series;
  readonly derivativeType?: string;
  /** How often the service publishes a record; absent: at least every five minutes. */
  readonly cadence?: Micros;
}

/** How and when a page was received. */
export interface PageOrigin {
  /** When the page was made, by the service's clock; undefined if unknown. */
  readonly asOf: Micros | undefined;
  /** A cache between the service and the client sent the page. */
  readonly isFromCache: boolean;
  /** When it was requested, on the boot clock. */
  readonly requestedAt: number;
}

/** A page of plausible ticks of the requested series alone. */
export type ScannedPage = ScannedTicks & PageOrigin;

/** What a walk needs to continue; the page itself stays in the ingest thread until its commit. */
export interface PendingPageSummary {
  /** Identifies the page in its commit. */
  readonly pageId: number;
  /** The number of elements, readable or not, without those of other series. */
  readonly rows: number;
  /** The number of records of other series. */
  readonly foreign: number;
  readonly nextId: string | undefined;
  /** Of the requested series' plausible records. */
  readonly oldest: Micros | undefined;
  readonly newest: Micros | undefined;
  /** Newest first, as documented. */
  readonly isDescending: boolean;
  /** The distance of neighbouring records: the third largest, so that two holes do not count. */
  readonly rowDistance: Micros | undefined;
}

const DEFAULT_PERIOD_MICROS = 300 * MICROS_PER_SECOND;
/** Records further ahead of the service's clock prove nothing; further than this plus one period, they are rejected. */
export const MAX_CLOCK_SKEW_MICROS = 10 * MICROS_PER_SECOND;

/** An older response comes from a cache. */
const MAX_FRESH_AGE_MS = 5_000;

export function readOrigin({ asOf, ageMs, requestedAt }: ResponseBody): PageOrigin {
  return {
    asOf: asOf === undefined ? undefined : asOf * MICROS_PER_MS,
    isFromCache: ageMs > MAX_FRESH_AGE_MS,
    requestedAt,
  };
}

/** What a page may contain, by the service's clock (docs/decisions/service-clock.md). */
export function readTimeLimits(asOf = Number.POSITIVE_INFINITY, cadence: Micros = DEFAULT_PERIOD_MICROS) {
  return {
    /** Later records are rejected: they would count as the latest until then. */
    latest: asOf + cadence + MAX_CLOCK_SKEW_MICROS,
    /** Records from here on are implausible, and prove nothing. */
    plausibleEnd: asOf + MICROS_PER_DAY,
  };
}

/**
 * Nearly all pages are of index ticks. Returns undefined for any other page, and for one that is unusual: `decodePage` must
 * decode it. Only figures of a scanned page are stored, and the id that was requested, so nothing in it needs to be redacted.
 */
export function scanPage(
  { stream, series, cadence }: ReadPageOptions,
  body: ResponseBody,
): { readonly page: ScannedPage | undefined; readonly plain: Uint8Array } {
  const plain = decodeBody(body);
  if (stream !== "index_ticks" || !series) return { page: undefined, plain };
  const scanned = scanTickPage(plain);
  const origin = readOrigin(body);
  const { latest, plausibleEnd } = readTimeLimits(origin.asOf, cadence);
  // Newest first, and no moment twice: `decodePage` separates second records.
  const isUsual =
    scanned?.columns.indexId === series.indexId &&
    scanned.columns.indexType === series.indexType &&
    isDescending(scanned.columns.ts, Math.min(latest + 1, plausibleEnd));
  return { page: scanned && isUsual ? { ...scanned, ...origin } : undefined, plain };
}

/** Whether every timestamp is below the one before, and all are below `end`. */
function isDescending(timestamps: Float64Array, end: Micros): boolean {
  let previous = end;
  for (let i = 0; i < timestamps.length; i++) {
    const ts = timestamps[i] as Micros;
    if (ts >= previous) return false;
    previous = ts;
  }
  return true;
}

export function summarizePage({ columns: { ts }, nextId }: ScannedPage): Omit<PendingPageSummary, "pageId"> {
  return { rows: ts.length, foreign: 0, nextId, ...summarizeTimestamps(ts) };
}

/** Of plausible timestamps, in page order. */
export function summarizeTimestamps(
  timestamps: ArrayLike<Micros>,
): Pick<PendingPageSummary, "oldest" | "newest" | "isDescending" | "rowDistance"> {
  let oldest = timestamps[0];
  let newest = timestamps[0];
  let isDescending = true;
  let [first, second, third] = [0, 0, 0];
  for (let i = 1; i < timestamps.length; i++) {
    const ts = timestamps[i] as Micros;
    const distance = (timestamps[i - 1] as Micros) - ts;
    if (distance < 0) isDescending = false;
    else if (distance > third) {
      if (distance > first) [first, second, third] = [distance, first, second];
      else if (distance > second) [second, third] = [distance, second];
      else third = distance;
    }
    if (oldest === undefined || ts < oldest) oldest = ts;
    if (newest === undefined || ts > newest) newest = ts;
  }
  return { oldest, newest, isDescending, rowDistance: third > 0 ? third : undefined };
}
