import { Failure } from "../../model/failure.ts";
import type { StreamRecords } from "../../model/records.ts";
import { decodeBody, type ResponseBody } from "../../model/response-body.ts";
import type { Series, Stream } from "../../model/streams.ts";

import { MICROS_PER_DAY, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { BodyRedactor } from "./body-redactor.ts";

import { scanTickPage } from "./fast-tick-scanner.ts";
import { type DecodedPage, decodePage, isAhead } from "./page.ts";
import { isPlausible } from "./record-reader.ts";

type DecodedStreamPage = DecodedPage<StreamRecords[Stream]>;

/** A decoded page that waits for its commit. */
type PendingPage<S extends Stream> = DecodedPage<StreamRecords[S]> & PageContext;

interface PageContext {
  /** When the page was made, by the service's clock; undefined if unknown. */
  readonly asOf: Micros | undefined;
  /** A cache between the service and the client sent the page. */
  readonly isFromCache: boolean;
  /** When it was requested, on the boot clock. */
  readonly requestedAt: number;
  /** Timestamps of the requested series' records, in page order. */
  readonly timestamps: readonly Micros[];
  /** The plausible ones among them: only these prove something. */
  readonly plausibleTimestamps: readonly Micros[];
  /** The number of records of other series. */
  readonly foreign: number;
}

export interface ReadPageOptions {
  readonly stream: Stream;
  /** For a history stream: the requested series. */
  readonly series?: Series;
  readonly derivativeType?: string;
  /** How often the service publishes a record; absent: at least every five minutes. */
  readonly cadence?: Micros;
}

/** What a walk needs to continue; the page itself stays in the ingest thread until its commit. */
interface PendingPageSummary {
  /** Identifies the page in its commit. */
  readonly pageId: number;
  /** The number of elements, readable or not. */
  readonly rows: number;
  readonly nextId: string | undefined;
  /** Of the requested series' plausible records. */
  readonly oldest: Micros | undefined;
  readonly newest: Micros | undefined;
  /** Newest first, as documented. */
  readonly isDescending: boolean;
  /** The distance of neighbouring records: the third largest, so that two holes do not count. */
  readonly rowDistance: Micros | undefined;
}

/** A walk has one pending page at a time. Pages of aborted walks are evicted beyond this number. */
const MAX_WALK_PAGES = 128;
/** All pages of a list are pending until its commit. More than this is a pagination loop. */
const MAX_LIST_PAGES = 20_000;

const DEFAULT_PERIOD_MICROS = 300 * MICROS_PER_SECOND;
/** Records further ahead of the service's clock prove nothing; further than this plus one period, they are rejected. */
export const MAX_CLOCK_SKEW_MICROS = 10 * MICROS_PER_SECOND;

/** An older response comes from a cache. */
const MAX_FRESH_AGE_MS = 5_000;

/** Decoded pages that wait for their commit or drop. */
export class PendingPages {
  readonly #walkPages = new Map<number, PendingPage<Stream>>();
  readonly #listPages = new Map<number, PendingPage<Stream>>();
  readonly #redactor: BodyRedactor;
  #nextPageId = 1;

  constructor(redactor = new BodyRedactor()) {
    this.#redactor = redactor;
  }

  /** Decodes a body. Throws `malformed_body` if it is no page. */
  read(options: ReadPageOptions, body: ResponseBody): PendingPageSummary {
    const asOf = body.asOf === undefined ? undefined : body.asOf * MICROS_PER_MS;
    const page = decodeStreamPage(options, decodeBody(body), { asOf, redactor: this.#redactor });
    const isFromCache = body.ageMs > MAX_FRESH_AGE_MS;
    const context = {
      asOf,
      isFromCache,
      requestedAt: body.requestedAt,
      ...collectTimestamps(page, options.series, asOf),
    };
    const pageId = this.#nextPageId++;
    const [pages, maxPages] = options.series
      ? [this.#walkPages, MAX_WALK_PAGES]
      : [this.#listPages, MAX_LIST_PAGES];
    pages.set(pageId, { ...page, ...context });
    if (pages.size > maxPages) pages.delete(pages.keys().next().value ?? pageId);
    return {
      pageId,
      rows: page.rawCount,
      nextId: page.nextId,
      ...summarizeTimestamps(context.plausibleTimestamps),
    };
  }

  /** The page stays until it is dropped, since its commit may be retried. */
  get<S extends Stream>(_stream: S, pageId: number): PendingPage<S> {
    const page = this.#walkPages.get(pageId) ?? this.#listPages.get(pageId);
    if (!page)
      throw new Failure("a page was evicted before its commit", {
        code: "page_forgotten",
      });
    return page as PendingPage<S>;
  }

  drop(pageIds: readonly number[]): void {
    for (const id of pageIds) {
      this.#walkPages.delete(id);
      this.#listPages.delete(id);
    }
  }
}

/**
 * Nearly all pages are of index ticks; the scanner leaves unusual ones to `decodePage`. Rejects records from beyond the
 * time at which the page was made plus one period: they would count as the latest until then. Of a scanned page only
 * figures and the index id are stored, so nothing in it needs to be redacted unless the index is not the requested one.
 */
function decodeStreamPage(
  { stream, series, derivativeType, cadence = DEFAULT_PERIOD_MICROS }: ReadPageOptions,
  bytes: Uint8Array,
  { asOf = Number.POSITIVE_INFINITY, redactor }: { asOf: Micros | undefined; redactor: BodyRedactor },
): DecodedStreamPage {
  const latest = asOf + cadence + MAX_CLOCK_SKEW_MICROS;
  const scanned = stream === "index_ticks" ? scanTickPage(bytes) : undefined;
  const isPlain = scanned?.records[0]?.indexId === series?.indexId;
  if (scanned && isPlain && !scanned.records.some((record) => isAhead(record, latest))) return scanned;
  return decodePage(stream, redactor.redactBody(bytes), { derivativeType, latest });
}

/** A future timestamp is implausible too, and proves nothing. The service's clock decides: this machine's may be wrong. */
function collectTimestamps(
  page: DecodedStreamPage,
  series: Series | undefined,
  asOf: Micros | undefined,
): Pick<PageContext, "timestamps" | "plausibleTimestamps" | "foreign"> {
  const timestamps: Micros[] = [];
  if (!series) return { timestamps, plausibleTimestamps: timestamps, foreign: 0 };
  const end = asOf === undefined ? Number.POSITIVE_INFINITY : asOf + MICROS_PER_DAY;
  let foreign = 0;
  const isCredible = (ts: Micros) => isPlausible(ts) && ts < end;
  let areAllPlausible = true;
  // The records of a page share their strings, so comparing with the previous record is cheaper than with
  // `series`.
  let previous: Pick<Series, "indexId" | "indexType"> = series;
  for (const record of page.records) {
    if (
      !("indexId" in record) ||
      record.indexId !== previous.indexId ||
      record.indexType !== previous.indexType
    )
      foreign++;
    else {
      previous = record;
      const ts = record.ts;
      if (!isCredible(ts)) areAllPlausible = false;
      timestamps.push(ts);
    }
  }
  const plausibleTimestamps = areAllPlausible ? timestamps : timestamps.filter(isCredible);
  return { timestamps, plausibleTimestamps, foreign };
}

function summarizeTimestamps(
  timestamps: readonly Micros[],
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
