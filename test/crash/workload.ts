import { commitLive } from "../../src/ingest/commit/live.ts";
import { Listening } from "../../src/ingest/commit/live-coverage.ts";
import { AskedPages, commitWalkPage } from "../../src/ingest/commit/walk-page.ts";
import { HeldPages } from "../../src/ingest/decode/pending-pages.ts";
import { MICROS_PER_MS, type Micros } from "../../src/model/time.ts";
import { openWarehouse, type Warehouse } from "../../src/warehouse/writer.ts";
import { at, btc, liveMessage, pageOf, SECOND, ticks } from "../support/ingest/pages.ts";

/** What the service serves, and what the walk of this test is to prove. */
export const hole = { from: at("10:00:00"), to: at("11:00:00") };
export const truth: readonly Micros[] = ticks(hole.from, hole.to).map(({ ts }) => ts);

const ROWS_A_PAGE = 20;
const now = at("18:00:00");

export function open(path: string): Warehouse {
  return openWarehouse(path, { clock: { now: () => now / MICROS_PER_MS } });
}

/** Live rows from before the walk: some right, one with another price, one that the service never confirms. */
export function seedLiveRows(warehouse: Warehouse): void {
  const rows = [
    ...ticks(at("10:50:00"), hole.to),
    { ts: at("10:30:00"), price: "1" },
    { ts: at("10:40:00") + 7 * SECOND },
  ];
  commitLive(warehouse, rows.map(liveMessage), new Listening());
}

/** Walks the hole newest to oldest, a page a commit, and says after each that it is on disk. */
export function walk(warehouse: Warehouse, committed: (page: number) => void): void {
  const pages = new HeldPages();
  const asked = new AskedPages();
  const rows = ticks(hole.from, hole.to);
  let upper = hole.to;
  for (let page = 0; page * ROWS_A_PAGE < rows.length; page++) {
    const part = rows.slice(page * ROWS_A_PAGE, (page + 1) * ROWS_A_PAGE);
    const ends = (page + 1) * ROWS_A_PAGE >= rows.length;
    const { held } = pages.read(
      { stream: "index_ticks", series: btc },
      pageOf(part, ends ? undefined : `c${page}`),
    );
    const commit = commitWalkPage(
      warehouse,
      { pages, asked, now },
      { held, series: btc, position: { hole, upper }, ends, settleDelay: 60 * SECOND, request: "" },
    );
    upper = commit.proven?.from ?? upper;
    committed(page);
  }
}
