import type { Ingest } from "../../../src/ingest/thread/ingest-thread.ts";
import { at, btc, pageOf, SECOND, ticks } from "../ingest/pages.ts";

export const ROWS_AN_HOUR = 120;
const HOUR = 3600 * SECOND;

/** Commits the n-th hour since the test's first moment: its rows, and the proof that they are all. */
export async function commitHour(ingest: Ingest, n: number): Promise<void> {
  const from = at("00:00:00") + n * HOUR;
  const hole = { from, to: from + HOUR };
  // A page that reaches beyond its hole; only below the first hour there is nothing.
  const body = pageOf(ticks(n === 0 ? hole.from : hole.from - 30 * SECOND, hole.to));
  const { held } = await ingest.call("readPage", { stream: "index_ticks", series: btc }, [body]);
  await ingest.call("commitWalkPage", {
    series: btc,
    position: { hole, upper: hole.to },
    ends: n === 0,
    settleDelay: 60 * SECOND,
    request: "GET /index-ticker",
    held,
  });
}
