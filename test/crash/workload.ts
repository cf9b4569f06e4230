import { commitLiveMessages, LiveState } from "../../src/ingest/commit/live.ts";
import { CommittedPages, commitWalkPage } from "../../src/ingest/commit/walk-page.ts";
import { readPage, receivePage } from "../../src/ingest/decode/read-page.ts";
import { MICROS_PER_MS, type Micros } from "../../src/model/time.ts";
import { type MovePosition, moveLiveRows } from "../../src/warehouse/rows/move-live-rows.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";
import { at, btc, liveMessage, makeTicks, SECOND, tickPage, walkSettings } from "../support/ingest/pages.ts";
import { exchangeTick } from "../support/warehouse/records.ts";
import { writeRecords } from "../support/warehouse/write-records.ts";

/** The gap that the walk fills, and the timestamps of all records that the service has in it. */
export const gap = { from: at("10:00:00"), to: at("11:00:00") };
export const expectedTimestamps: readonly Micros[] = makeTicks(gap.from, gap.to).map(({ ts }) => ts);

const ROWS_PER_PAGE = 20;
const now = at("18:00:00");
/** When the ledger is audited after a crash. */
export const auditedAt = now;

export function openTestWriter(path: string, clock = { now: () => now / MICROS_PER_MS }): WarehouseWriter {
  return openWriter(path, { clock });
}

/** Live rows from before the walk: some correct, one with a wrong price, one that the service does not have. */
export function seedLiveRows(warehouse: WarehouseWriter): void {
  const rows = [
    ...makeTicks(at("10:50:00"), gap.to),
    { ts: at("10:30:00"), price: "1" },
    { ts: at("10:40:00") + 7 * SECOND },
  ];
  commitLiveMessages(warehouse, new LiveState(), rows.map(liveMessage));
}

const POLL_SECONDS = 120;
const POLLS_PER_MERGE = 12;
const POLLS = 21 * POLLS_PER_MERGE;
const pollTimes = Array.from({ length: POLLS }, (_, poll) => now - (POLLS - poll) * POLL_SECONDS * SECOND);
const MARKETS = ["a", "b", "c"];

/** The market and the time of each live row, in order. */
export const expectedPolls = MARKETS.flatMap((market) => pollTimes.map((ts) => `${market} ${ts}`));

/** Writes exchange ticks, each poll into a part of its own: so many merged parts that they are to be moved, and some to be merged. */
export function seedPolls(path: string): void {
  let ts: Micros = now;
  const warehouse = openTestWriter(path, { now: () => ts / MICROS_PER_MS });
  for (const [poll, at] of pollTimes.entries()) {
    ts = at;
    if (poll % POLLS_PER_MERGE === 0) moveParts(warehouse);
    const ticks = MARKETS.map((marketId) => exchangeTick(ts, "1", { marketId }));
    warehouse.transaction((t) => writeRecords(t, "exchange_ticks", ticks, "live"));
  }
  warehouse.close();
}

/** Moves the rows of closed parts to the history, or merges parts, a few rows in a transaction. */
export function moveParts(warehouse: WarehouseWriter): void {
  let from: MovePosition | undefined;
  do from = warehouse.transaction((t) => moveLiveRows(t, from, 40));
  while (from);
}

/**
 * Commits the pages of the gap from newest to oldest, `pagesPerCommit` in one transaction, and calls `onCommitted` for each
 * page after its commit.
 */
export function commitPages(
  warehouse: WarehouseWriter,
  onCommitted: (page: number) => void,
  pagesPerCommit = 1,
): void {
  const committedPages = new CommittedPages();
  const rows = makeTicks(gap.from, gap.to);
  const pageCount = Math.ceil(rows.length / ROWS_PER_PAGE);
  let provenFrom = gap.to;

  function commitPage(page: number): void {
    const part = rows.slice(page * ROWS_PER_PAGE, (page + 1) * ROWS_PER_PAGE);
    const isLast = page + 1 === pageCount;
    const read = readPage(
      { stream: "index_ticks", series: btc },
      tickPage(part, isLast ? undefined : `c${page}`),
    );
    const commit = commitWalkPage(
      warehouse,
      committedPages,
      { series: btc, position: { gap, provenFrom }, isLast, ...walkSettings },
      receivePage(read.page),
    );
    provenFrom = commit.proven?.from ?? provenFrom;
  }

  for (let first = 0; first < pageCount; first += pagesPerCommit) {
    const group = Array.from({ length: Math.min(pagesPerCommit, pageCount - first) }, (_, i) => first + i);
    const commitGroup = () => group.forEach(commitPage);
    if (pagesPerCommit === 1) commitGroup();
    else warehouse.groupTransactions(commitGroup);
    group.forEach(onCommitted);
  }
}
