import { type Body, decodeBody } from "../model/body.ts";
import { Failure } from "../model/failure.ts";
import type { Micros } from "../model/instant.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, parseInstant } from "../model/instant.ts";
import type { StreamRecords } from "../model/records.ts";
import type { Series, Stream } from "../model/series.ts";
import { type DecodedPage, decodePage } from "./decode-page.ts";
import { scanTickPage } from "./scan-tick-page.ts";

export type AnyPage = DecodedPage<StreamRecords[Stream]>;

/** A page that was read, with the moment by the service's clock at which it was true; undefined where nobody said. */
export type ReadPage<S extends Stream> = DecodedPage<StreamRecords[S]> & {
  readonly asOf: Micros | undefined;
};

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
const MOST_HELD = 128;

/** Pages that were read and wait for their walk to say what they prove. */
export class HeldPages {
  readonly #pages = new Map<number, ReadPage<Stream>>();
  #next = 1;

  /** Reads a body. Throws `malformed_body` for what is no page. */
  read(question: PageQuestion, body: Body, now: Micros): HeldPage {
    const page = readPage(question, decodeBody(body));
    const held = this.#next++;
    const asOf = body.asOf === undefined ? undefined : body.asOf * MICROS_PER_MS;
    this.#pages.set(held, { ...page, asOf });
    if (this.#pages.size > MOST_HELD) this.#pages.delete(this.#pages.keys().next().value ?? held);
    const { moments } = question.series ? believable(page, question.series, now) : { moments: [] };
    return { held, rows: page.rawCount, nextId: page.nextId, ...extremes(moments) };
  }

  /** A page that was read. It stays until it is dropped, since its commit may have to be made again. */
  get<S extends Stream>(_stream: S, held: number): ReadPage<S> {
    const page = this.#pages.get(held);
    if (!page)
      throw new Failure("a page was forgotten before its commit", {
        family: "retry",
        code: "page_forgotten",
      });
    return page as ReadPage<S>;
  }

  drop(held: readonly number[]): void {
    for (const id of held) this.#pages.delete(id);
  }
}

/** Pages of index ticks are nearly all there is to read; the scanner leaves the odd ones among them alone. */
function readPage(question: PageQuestion, bytes: Uint8Array): AnyPage {
  const scanned = question.stream === "index_ticks" ? scanTickPage(bytes) : undefined;
  return scanned ?? decodePage(question.stream, bytes, question);
}

/** The moments of the asked series' records that can be true, in page order, and how many records are another's. */
export function believable(
  page: AnyPage,
  series: Series,
  now: Micros,
): { moments: Micros[]; foreign: number } {
  const moments: Micros[] = [];
  let foreign = 0;
  // A page's records share their texts, which are then equal without a look at them: the series' own are others.
  let ours: Pick<Series, "indexId" | "indexType"> = series;
  for (const record of page.records) {
    if (!("indexId" in record) || record.indexId !== ours.indexId || record.indexType !== ours.indexType)
      foreign++;
    else {
      ours = record;
      const moment = "ts" in record ? record.ts : record.start;
      if (moment >= EARLIEST && moment < now + MICROS_PER_DAY) moments.push(moment);
    }
  }
  return { moments, foreign };
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
