import { commitLiveMessages, LiveState } from "../../../src/ingest/commit/live.ts";
import { CommittedPages, commitWalkPage, type WalkPage } from "../../../src/ingest/commit/walk-page.ts";
import { readPage, receivePage } from "../../../src/ingest/decode/read-page.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import type { Micros } from "../../../src/model/time.ts";
import { openTestWarehouse, queryRows } from "../warehouse/open-warehouse.ts";
import { makeEmptyWarehouse, onlyPage } from "./ingest-harness.ts";
import { at } from "./pages.ts";

/** A warehouse to which this thread commits pages of walks, at first at 18:00. */
export function openPages({ path = makeEmptyWarehouse(), now = at("18:00:00") } = {}) {
  let time = now;
  const warehouse = openTestWarehouse({ path, clock: { now: () => time / 1000 } });
  const committedPages = new CommittedPages();
  const live = new LiveState();
  return {
    warehouse,
    advance: (duration: Micros) => {
      time += duration;
    },
    /** Decodes and commits a page, by default the only one of its walk. */
    commit(body: ResponseBody, more: Partial<Omit<WalkPage, "isLast">> = {}) {
      const page = { ...onlyPage, ...more };
      const { stream } = page.series;
      const read = readPage({ stream, series: page.series }, body);
      const walkPage = { ...page, isLast: read.page.nextId === undefined };
      return commitWalkPage(warehouse, committedPages, walkPage, receivePage(read.page));
    },
    receive: (...messages: string[]) => commitLiveMessages(warehouse, live, messages),
    query: (sql: string) => queryRows(warehouse, sql),
    /** Times of day, proof and reason of each settled range. */
    coverage: () =>
      queryRows(
        warehouse,
        "SELECT substr(from_time, 12, 8), substr(to_time, 12, 8), proof, reason FROM coverage ORDER BY from_ts",
      ).map((row) => Object.values(row)),
  };
}
