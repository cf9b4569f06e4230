import { type Body, decodeBody, malformedBody } from "../../src/model/body.ts";
import { type Micros, parseInstant } from "../../src/model/instant.ts";
import type { PageFacts } from "../../src/service/backward-walk.ts";

interface Tick {
  id: string;
  indexId: string;
  timestamp: string;
}

/** Reads a page for one index: foreign rows are not counted, as the ingest thread does not. */
export const readTicks =
  (indexId: string, take: (moment: Micros) => void = () => {}) =>
  async (body: Body): Promise<PageFacts> => {
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
    for (const tick of page.content) {
      if (tick.indexId !== indexId) continue;
      const moment = parseInstant(tick.timestamp) as Micros;
      take(moment);
      if (moment > before) descending = false;
      before = moment;
      if (oldest === undefined || moment < oldest) oldest = moment;
      if (newest === undefined || moment > newest) newest = moment;
    }
    return { rows: page.content.length, nextId: page.nextId || undefined, oldest, newest, descending };
  };
