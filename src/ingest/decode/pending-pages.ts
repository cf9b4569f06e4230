import { Failure } from "../../model/failure.ts";
import type { StreamRecords } from "../../model/records.ts";
import type { ResponseBody } from "../../model/response-body.ts";
import { SecretRedactor } from "../../model/secret-redactor.ts";
import type { Series, Stream } from "../../model/streams.ts";
import { type TickColumns, toTicks } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import { type DecodedPage, decodeWithSource, truncateRaw } from "./page.ts";
import { isPlausible } from "./record-reader.ts";
import {
  type PageOrigin,
  type PendingPageSummary,
  type ReadPageOptions,
  readOrigin,
  readTimeLimits,
  type ScannedPage,
  scanPage,
  summarizePage,
  summarizeTimestamps,
} from "./scanned-page.ts";
import { type SeparatedRecords, separateSeconds } from "./second-records.ts";

type DecodedStreamPage = DecodedPage<StreamRecords[Stream]>;

/** A decoded page that waits for its commit. */
type PendingPage<S extends Stream> = DecodedPage<StreamRecords[S]> &
  SeparatedRecords<StreamRecords[S]> &
  PageTimestamps &
  PageOrigin & {
    /** The first record of a walk's page as received. */
    readonly firstRaw: () => string;
    /** All records in columns, if the page was scanned: then reading `records` creates them. */
    readonly columns: TickColumns | undefined;
  };

interface PageTimestamps {
  /** Timestamps of the requested series' records, in page order. */
  readonly timestamps: readonly Micros[];
  /** The plausible ones among them: only these prove something. */
  readonly plausibleTimestamps: readonly Micros[];
  /** The number of records of other series. */
  readonly foreign: number;
}

/** A walk has one pending page at a time. Pages of aborted walks are evicted beyond this number. */
export const MAX_WALK_PAGES = 128;
/** All pages of a list are pending until its commit. More than this is a pagination loop. */
const MAX_LIST_PAGES = 20_000;

/** A closure would keep the text of each page of a long list in memory. */
const noRaw = () => "";

/** Decoded pages that wait for their commit or drop. */
export class PendingPages {
  readonly #walkPages = new Map<number, PendingPage<Stream>>();
  readonly #listPages = new Map<number, PendingPage<Stream>>();
  readonly #redactor: SecretRedactor;
  #nextPageId = 1;

  constructor(redactor = new SecretRedactor("data")) {
    this.#redactor = redactor;
  }

  /** Decodes a body. Throws `malformed_body` if it is no page. */
  read(options: ReadPageOptions, body: ResponseBody): PendingPageSummary {
    const pageId = this.#nextPageId++;
    const { page, plain } = scanPage(options, body);
    if (page) {
      this.add(pageId, page);
      return { pageId, ...summarizePage(page) };
    }
    const { series, derivativeType } = options;
    const origin = readOrigin(body);
    const { latest, plausibleEnd } = readTimeLimits(origin.asOf, options.cadence);
    const { stream } = options;
    const redacted = this.#redactor.redactBody(plain);
    const { page: whole, rawOf } = decodeWithSource(stream, redacted, { derivativeType, latest });
    const decoded = { ...whole, ...separateSeconds(stream, whole.records, rawOf) };
    const timestamps = collectTimestamps(decoded, series, plausibleEnd);
    const [pages, maxPages] = series ? [this.#walkPages, MAX_WALK_PAGES] : [this.#listPages, MAX_LIST_PAGES];
    const firstRaw = series ? () => truncateRaw(rawOf(0)) : noRaw;
    keep(pages, maxPages, pageId, { ...decoded, firstRaw, ...origin, ...timestamps, columns: undefined });
    const { rawCount, nextId } = decoded;
    const { foreign } = timestamps;
    return {
      pageId,
      rows: rawCount - foreign,
      foreign,
      nextId,
      ...summarizeTimestamps(timestamps.plausibleTimestamps),
    };
  }

  /** Adds a page that another thread has scanned; its id must not be one of `read`. */
  add(pageId: number, { columns, firstRaw, ...rest }: ScannedPage): void {
    const timestamps = toArray(columns.ts);
    keep(this.#walkPages, MAX_WALK_PAGES, pageId, {
      ...rest,
      columns,
      get records() {
        return toTicks(columns);
      },
      seconds: [],
      firstRaw: () => this.#redactor.redact(firstRaw),
      rejects: [],
      unknownFields: [],
      ahead: 0,
      rawCount: timestamps.length,
      timestamps,
      plausibleTimestamps: timestamps,
      foreign: 0,
    });
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

  /** Frees the memory of the columns at once: the garbage collector would run three times a second for it. */
  drop(pageIds: readonly number[]): void {
    for (const id of pageIds) {
      this.#walkPages.get(id)?.columns?.ts.buffer.transfer(0);
      this.#walkPages.delete(id);
      this.#listPages.delete(id);
    }
  }
}

/** Ten times as fast as `Array.from`. */
function toArray(values: Float64Array): number[] {
  const array = new Array<number>(values.length);
  for (let i = 0; i < values.length; i++) array[i] = values[i] as number;
  return array;
}

function keep(
  pages: Map<number, PendingPage<Stream>>,
  maxPages: number,
  pageId: number,
  page: PendingPage<Stream>,
): void {
  pages.set(pageId, page);
  if (pages.size > maxPages) pages.delete(pages.keys().next().value ?? pageId);
}

function collectTimestamps(
  page: DecodedStreamPage,
  series: Series | undefined,
  plausibleEnd: Micros,
): PageTimestamps {
  const timestamps: Micros[] = [];
  if (!series) return { timestamps, plausibleTimestamps: timestamps, foreign: 0 };
  let foreign = 0;
  for (const record of page.records) {
    if ("indexId" in record && record.indexId === series.indexId && record.indexType === series.indexType)
      timestamps.push(record.ts);
    else foreign++;
  }
  const plausibleTimestamps = timestamps.filter((ts) => isPlausible(ts) && ts < plausibleEnd);
  return { timestamps, plausibleTimestamps, foreign };
}
