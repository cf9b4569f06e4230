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

/** What a page may contain, by the service's clock: this machine's may be wrong. */
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
  const isUsual =
    scanned?.columns.indexId === series.indexId &&
    scanned.columns.indexType === series.indexType &&
    scanned.columns.ts.every((ts) => ts <= latest && ts < plausibleEnd);
  return { page: scanned && isUsual ? { ...scanned, ...origin } : undefined, plain };
}
