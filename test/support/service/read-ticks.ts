import type { ResponseBody } from "../../../src/model/response-body.ts";
import type { Micros } from "../../../src/model/time.ts";
import { readPage } from "./client-harness.ts";

/** Reads a page of one index. Ignores rows of other indices, as the ingest thread does. */
export const readTicks =
  (indexId: string, onTick: (ts: Micros) => void = () => {}) =>
  async (body: ResponseBody) => {
    const page = await readPage(body, (row) => row.indexId === indexId);
    for (const ts of page.timestamps) onTick(ts);
    // The time of the page by the service's clock.
    return { ...page, asOf: body.asOf === undefined ? undefined : body.asOf * 1000 };
  };
