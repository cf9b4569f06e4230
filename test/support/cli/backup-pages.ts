import type { IngestThread } from "../../../src/ingest/thread/ingest-thread.ts";
import { commitPage } from "../ingest/ingest-harness.ts";
import { at, btc, makeTicks, SECOND, tickPage, walkSettings } from "../ingest/pages.ts";

export const ROWS_PER_HOUR = 120;
const HOUR = 3600 * SECOND;

/** Commits the n-th hour of the test: its rows and their coverage. */
export async function commitHour(ingest: IngestThread, n: number): Promise<void> {
  const from = at("00:00:00") + n * HOUR;
  const gap = { from, to: from + HOUR };
  // The page overlaps the hour before, except for the first hour, which has nothing below it.
  const body = tickPage(
    makeTicks(n === 0 ? gap.from : gap.from - 30 * SECOND, gap.to),
    n === 0 ? undefined : "more",
  );
  await commitPage(ingest, { series: btc, position: { gap, provenFrom: gap.to }, ...walkSettings }, body);
}
