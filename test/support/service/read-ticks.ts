import { decodeBody, malformedBodyFailure, type ResponseBody } from "../../../src/model/response-body.ts";
import { type Micros, parseTimestamp } from "../../../src/model/time.ts";
import type { PageSummary } from "../../../src/service/pagination/page.ts";

interface Tick {
  id: string;
  indexId: string;
  timestamp: string;
}

export interface TickPage extends PageSummary {
  /** In page order. */
  readonly timestamps: readonly Micros[];
  /** Time of the page by the service's clock. */
  readonly asOf: Micros | undefined;
}

/** Reads a page of one index. Ignores rows of other indices, as the ingest thread does. */
export const readTicks =
  (indexId: string, onTick: (ts: Micros) => void = () => {}) =>
  async (body: ResponseBody): Promise<TickPage> => {
    let page: { content: Tick[]; nextId?: string | null };
    try {
      page = JSON.parse(new TextDecoder().decode(decodeBody(body)));
    } catch {
      throw malformedBodyFailure("not JSON");
    }
    if (!Array.isArray(page?.content)) throw malformedBodyFailure("no content");
    let oldest: Micros | undefined;
    let newest: Micros | undefined;
    let previousTs = Number.POSITIVE_INFINITY;
    let isDescending = true;
    const timestamps: Micros[] = [];
    for (const tick of page.content) {
      if (tick.indexId !== indexId) continue;
      const ts = parseTimestamp(tick.timestamp) as Micros;
      onTick(ts);
      timestamps.push(ts);
      if (ts > previousTs) isDescending = false;
      previousTs = ts;
      if (oldest === undefined || ts < oldest) oldest = ts;
      if (newest === undefined || ts > newest) newest = ts;
    }
    const asOf = body.asOf === undefined ? undefined : body.asOf * 1000;
    const rows = page.content.length;
    return { rows, nextId: page.nextId || undefined, oldest, newest, isDescending, timestamps, asOf };
  };
