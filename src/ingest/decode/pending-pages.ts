import { Failure } from "../../model/failure.ts";
import type { StreamRecords } from "../../model/records.ts";
import { type Body, decodeBody } from "../../model/response-body.ts";
import type { Series, Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, parseInstant } from "../../model/time.ts";
import { scanTickPage } from "./fast-tick-scanner.ts";
import { type DecodedPage, decodePage } from "./page.ts";

export type AnyPage = DecodedPage<StreamRecords[Stream]>;

/** A page that was read, with what it says about the series that was asked for. */
export type ReadPage<S extends Stream> = DecodedPage<StreamRecords[S]> & PageSense;

interface PageSense {
  /** The moment, by the service's clock, at which the page was true; undefined where nobody said. */
  readonly asOf: Micros | undefined;
  /** A cache on the way had kept the page. */
  readonly isKept: boolean;
  /** When it was asked for, on the boot clock. */
  readonly askedAt: number;
  /** Moments of the asked series' records, in page order. */
  readonly present: readonly Micros[];
  /** Those of them that can be true: what the page is evidence of. */
  readonly moments: readonly Micros[];
  /** Records of other series. */
  readonly foreign: number;
}

/** A page as it was asked for. */
export interface PageQuestion {
  readonly stream: Stream;
  /** Of a walked stream: the series that was asked for. */
  readonly series?: Series;
  readonly derivativeType?: string;
}

/** What a walk must know of a page to go on; the page itself stays in the ingest thread until it is committed. */
export interface HeldPage {
  /** To be named when the page is committed. */
  readonly held: number;
  /** Elements of the page, readable or not. */
  readonly rows: number;
  readonly nextId: string | undefined;
  /** Of the asked series' believable records. */
  readonly oldest: Micros | undefined;
  readonly newest: Micros | undefined;
  /** Newest first, as promised. */
  readonly descending: boolean;
}

/** Nothing was traded before Bitcoin's first block. An older or a future moment is no evidence of anything. */
const EARLIEST: Micros = parseInstant("2009-01-03T00:00:00Z") ?? 0;

/** Each walk holds one page at a time; what a walk dropped without a word is forgotten when so many newer ones came. */
const MOST_WALK_PAGES = 128;
/** A list is held whole until its commit. More pages than this are no list but a loop. */
const MOST_LIST_PAGES = 20_000;

/** An answer may take so long on its way and still be fresh. */
const FRESH_MS = 5_000;

/** Pages that were read and wait for their walk, or their list, to say what becomes of them. */
export class HeldPages {
  readonly #ofWalks = new Map<number, ReadPage<Stream>>();
  readonly #ofLists = new Map<number, ReadPage<Stream>>();
  #next = 1;

  /** Reads a body. Throws `malformed_body` for what is no page. */
  read(question: PageQuestion, body: Body): HeldPage {
    const page = readPage(question, decodeBody(body));
    const asOf = body.asOf === undefined ? undefined : body.asOf * MICROS_PER_MS;
    const isKept = body.ageMs > FRESH_MS;
    const sense = { asOf, isKept, askedAt: body.askedAt, ...senseOf(page, question.series, asOf) };
    const held = this.#next++;
    const [pages, most] = question.series
      ? [this.#ofWalks, MOST_WALK_PAGES]
      : [this.#ofLists, MOST_LIST_PAGES];
    pages.set(held, { ...page, ...sense });
    if (pages.size > most) pages.delete(pages.keys().next().value ?? held);
    return { held, rows: page.rawCount, nextId: page.nextId, ...extremes(sense.moments) };
  }

  /** A page that was read. It stays until it is dropped, since its commit may have to be made again. */
  get<S extends Stream>(_stream: S, held: number): ReadPage<S> {
    const page = this.#ofWalks.get(held) ?? this.#ofLists.get(held);
    if (!page)
      throw new Failure("a page was forgotten before its commit", {
        family: "retry",
        code: "page_forgotten",
      });
    return page as ReadPage<S>;
  }

  drop(held: readonly number[]): void {
    for (const id of held) {
      this.#ofWalks.delete(id);
      this.#ofLists.delete(id);
    }
  }
}

/** Pages of index ticks are nearly all there is to read; the scanner leaves the odd ones among them alone. */
function readPage(question: PageQuestion, bytes: Uint8Array): AnyPage {
  const scanned = question.stream === "index_ticks" ? scanTickPage(bytes) : undefined;
  return scanned ?? decodePage(question.stream, bytes, question);
}

/** What can be true is judged by the service's own clock: this machine's may be set to anything. */
function senseOf(
  page: AnyPage,
  series: Series | undefined,
  asOf: Micros | undefined,
): Pick<PageSense, "present" | "moments" | "foreign"> {
  const present: Micros[] = [];
  if (!series) return { present, moments: present, foreign: 0 };
  const end = asOf === undefined ? Number.POSITIVE_INFINITY : asOf + MICROS_PER_DAY;
  let foreign = 0;
  let isBelievable = true;
  // A page's records share their texts, which are then equal without a look at them: the series' own are others.
  let ours: Pick<Series, "indexId" | "indexType"> = series;
  for (const record of page.records) {
    if (!("indexId" in record) || record.indexId !== ours.indexId || record.indexType !== ours.indexType)
      foreign++;
    else {
      ours = record;
      const moment = record.ts;
      if (moment < EARLIEST || moment >= end) isBelievable = false;
      present.push(moment);
    }
  }
  const moments = isBelievable ? present : present.filter((moment) => moment >= EARLIEST && moment < end);
  return { present, moments, foreign };
}

function extremes(moments: readonly Micros[]): Pick<HeldPage, "oldest" | "newest" | "descending"> {
  let oldest = moments[0];
  let newest = moments[0];
  let descending = true;
  for (let i = 1; i < moments.length; i++) {
    const moment = moments[i] as Micros;
    if (moment > (moments[i - 1] as Micros)) descending = false;
    if (oldest === undefined || moment < oldest) oldest = moment;
    if (newest === undefined || moment > newest) newest = moment;
  }
  return { oldest, newest, descending };
}
