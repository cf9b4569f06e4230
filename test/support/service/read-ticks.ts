import { type Body, decodeBody, malformedBody } from "../../../src/model/response-body.ts";
import { type Micros, parseInstant } from "../../../src/model/time.ts";
import type { PageFacts } from "../../../src/service/pagination/page.ts";

interface Tick {
  id: string;
  indexId: string;
  timestamp: string;
}

export interface ReadTicks extends PageFacts {
  /** In page order. */
  readonly moments: readonly Micros[];
  /** The page's moment by the service's clock. */
  readonly asOf: Micros | undefined;
}

/** Reads a page for one index: foreign rows are not counted, as the ingest thread does not. */
export const readTicks =
  (indexId: string, take: (moment: Micros) => void = () => {}) =>
  async (body: Body): Promise<ReadTicks> => {
    let page: { content: Tick[]; nextId?: string | null };
    try {
      page = JSON.parse(new TextDecoder().decode(decodeBody(body)));
    } catch {
      throw malformedBody("not JSON");
    }
    if (!Array.isArray(page?.content)) throw malformedBody("no content");
    let oldest: Micros | undefined;
    let newest: Micros | undefined;
    let before = Number.POSITIVE_INFINITY;
    let descending = true;
    const moments: Micros[] = [];
    for (const tick of page.content) {
      if (tick.indexId !== indexId) continue;
      const moment = parseInstant(tick.timestamp) as Micros;
      take(moment);
      moments.push(moment);
      if (moment > before) descending = false;
      before = moment;
      if (oldest === undefined || moment < oldest) oldest = moment;
      if (newest === undefined || moment > newest) newest = moment;
    }
    const asOf = body.asOf === undefined ? undefined : body.asOf * 1000;
    const rows = page.content.length;
    return { rows, nextId: page.nextId || undefined, oldest, newest, descending, moments, asOf };
  };
