import type { StreamRecords } from "../../model/records.ts";
import { decodeBody, type ResponseBody } from "../../model/response-body.ts";
import { SecretRedactor } from "../../model/secret-redactor.ts";
import type { Series, Stream } from "../../model/streams.ts";
import type { TickColumns } from "../../model/tick-columns.ts";
import {
  isPlausible,
  MICROS_PER_DAY,
  MICROS_PER_MS,
  MICROS_PER_SECOND,
  type Micros,
} from "../../model/time.ts";
import {
  type DecodedPage,
  decodeWithSource,
  isDescending,
  type SeparatedRecords,
  separateDuplicates,
  truncateRaw,
} from "./decode-page.ts";
import { type ScannedTicks, scanTickPage } from "./fast-tick-scanner.ts";

export interface ReadPageOptions {
  readonly stream: Stream;
  /** For a history stream: the requested series. */
  readonly series?: Series;
  readonly derivativeType?: string;
  /** How often the service publishes a record; absent: at least every five minutes. */
  readonly cadence?: Micros;
}

interface PageOrigin {
  /** When the page was made, by the service's clock; undefined if unknown. */
  readonly asOf: Micros | undefined;
  /** A cache between the service and the client sent the page. */
  readonly isFromCache: boolean;
  /** When it was requested, on the boot clock. */
  readonly requestedAt: number;
}

/** What a walk needs to continue; the page itself waits in the ingest thread for its commit. */
export interface ScanSummary {
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

/** A page of plausible ticks of the requested series alone. */
type ScannedPage = ScannedTicks & PageOrigin;

export interface Page<S extends Stream = Stream>
  extends DecodedPage<StreamRecords[S]>,
    SeparatedRecords<StreamRecords[S]>,
    PageTimestamps,
    PageOrigin {
  /** The first record of a walk's page as received. */
  readonly firstRaw: string;
  /** All records in columns, if the page was scanned: then `records` is empty. */
  readonly columns: TickColumns | undefined;
}

export type SentPage = ScannedPage | Page;

type PageTimestamps = ReturnType<typeof collectTimestamps>;

const DEFAULT_PERIOD_MICROS = 300 * MICROS_PER_SECOND;
/** Records further ahead of the service's clock prove nothing; further than this plus one period, they are rejected. */
export const MAX_CLOCK_SKEW_MICROS = 10 * MICROS_PER_SECOND;

/** An older response comes from a cache. */
export const MAX_FRESH_AGE_MS = 5_000;

/** Decodes a body, without the client's secrets. Throws `malformed_body` if it is no page. */
export function readPage(
  options: ReadPageOptions,
  body: ResponseBody,
  redactor = new SecretRedactor("data"),
): { readonly page: SentPage; readonly summary: ScanSummary } {
  const plain = decodeBody(body);
  const { stream, series, derivativeType, cadence = DEFAULT_PERIOD_MICROS } = options;
  const { requestedAt, ageMs } = body;
  const asOf = body.asOf === undefined ? undefined : body.asOf * MICROS_PER_MS;
  const origin = { asOf, isFromCache: ageMs > MAX_FRESH_AGE_MS, requestedAt };
  // What a page may contain, by the service's clock (docs/decisions/service-clock.md).
  const present = asOf ?? Number.POSITIVE_INFINITY;
  /** Later records are rejected: they would count as the latest until then. */
  const latest = present + cadence + MAX_CLOCK_SKEW_MICROS;
  /** Records from here on are implausible, and prove nothing. */
  const plausibleEnd = present + MICROS_PER_DAY;
  const scanned =
    stream === "index_ticks" && series && scanPage(series, plain, Math.min(latest + 1, plausibleEnd));
  if (scanned) {
    // To the garbage collector, a hundred bodies are a hundred small objects: free their memory at once, unless it is pooled.
    const isOwn = plain.buffer !== body.bytes.buffer && plain.buffer.byteLength > Buffer.poolSize;
    if (isOwn) (plain.buffer as ArrayBuffer).transfer(0);
    const { ts } = scanned.columns;
    const summary = { rows: ts.length, foreign: 0, nextId: scanned.nextId, ...summarizeTimestamps(ts) };
    return { page: { ...scanned, ...origin, firstRaw: redactor.redact(scanned.firstRaw) }, summary };
  }
  const redacted = redactor.redactBody(plain);
  const { page: whole, rawOf } = decodeWithSource(stream, redacted, { derivativeType, latest });
  const decoded = { ...whole, ...separateDuplicates(stream, whole.records, rawOf) };
  const timestamps = collectTimestamps(decoded, series, plausibleEnd);
  const firstRaw = series ? truncateRaw(rawOf(0)) : "";
  const { foreign, plausibleTimestamps } = timestamps;
  return {
    page: { ...decoded, firstRaw, ...origin, ...timestamps, columns: undefined },
    summary: {
      rows: decoded.rawCount - foreign,
      foreign,
      nextId: decoded.nextId,
      ...summarizeTimestamps(plausibleTimestamps),
    },
  };
}

export function receivePage(page: SentPage): Page {
  if ("timestamps" in page) return page;
  const timestamps = toArray(page.columns.ts);
  return {
    ...page,
    records: [],
    duplicates: [],
    rejects: [],
    unknownFields: [],
    ahead: 0,
    rawCount: timestamps.length,
    timestamps,
    plausibleTimestamps: timestamps,
    foreign: 0,
  };
}

/**
 * Nearly all pages are of index ticks. Returns undefined for any other page, and for one that is unusual: `decodePage` must
 * decode it. Only figures of a scanned page are stored, and the id that was requested, so nothing in it needs to be redacted.
 */
function scanPage(series: Series, plain: Uint8Array, end: Micros): ScannedTicks | undefined {
  const scanned = scanTickPage(plain);
  // Newest first, and no moment twice: `decodePage` separates duplicates.
  const isUsual =
    scanned?.columns.indexId === series.indexId &&
    scanned.columns.indexType === series.indexType &&
    isDescending(scanned.columns.ts, end);
  return isUsual ? scanned : undefined;
}

/** Of plausible timestamps, in page order. */
function summarizeTimestamps(timestamps: ArrayLike<Micros>) {
  let [oldest, newest] = [timestamps[0], timestamps[0]];
  let isNewestFirst = true;
  let [first, second, third] = [0, 0, 0];
  for (let i = 1; i < timestamps.length; i++) {
    const ts = timestamps[i] as Micros;
    const distance = (timestamps[i - 1] as Micros) - ts;
    if (distance < 0) isNewestFirst = false;
    else if (distance > third) {
      if (distance > first) [first, second, third] = [distance, first, second];
      else if (distance > second) [second, third] = [distance, second];
      else third = distance;
    }
    if (oldest === undefined || ts < oldest) oldest = ts;
    if (newest === undefined || ts > newest) newest = ts;
  }
  return { oldest, newest, isDescending: isNewestFirst, rowDistance: third > 0 ? third : undefined };
}

/** Ten times as fast as `Array.from`. */
function toArray(values: Float64Array): number[] {
  const array = new Array<number>(values.length);
  for (let i = 0; i < values.length; i++) array[i] = values[i] as number;
  return array;
}

function collectTimestamps(
  page: DecodedPage<StreamRecords[Stream]>,
  series: Series | undefined,
  plausibleEnd: Micros,
) {
  /** Of the requested series' records, in page order. */
  const timestamps: Micros[] = [];
  if (!series) return { timestamps, plausibleTimestamps: timestamps, foreign: 0 };
  /** The number of records of other series. */
  let foreign = 0;
  for (const record of page.records) {
    if ("indexId" in record && record.indexId === series.indexId && record.indexType === series.indexType)
      timestamps.push(record.ts);
    else foreign++;
  }
  /** Only these prove something. */
  const plausibleTimestamps = timestamps.filter((ts) => isPlausible(ts) && ts < plausibleEnd);
  return { timestamps, plausibleTimestamps, foreign };
}
