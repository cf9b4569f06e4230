import { mkdtempDisposableSync } from "node:fs";
import { join } from "node:path";
import { parseDecimal } from "../../src/model/decimal.ts";
import { type MovePosition, moveLiveRows } from "../../src/warehouse/rows/move-live-rows.ts";
import { readWrittenBytes } from "../../src/warehouse/sqlite/disk.ts";
import { truncateLongWal } from "../../src/warehouse/sqlite/wal.ts";
import { openWriter } from "../../src/warehouse/writer.ts";
import { emptyRecord } from "../support/empty-record.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { writeRecords } from "../support/warehouse/write-records.ts";
import type { Figure } from "./figures.ts";

const PERIOD_MS = 30_000;
/** As many as a service of real size has for the 50 largest assets. */
const LISTINGS = 4_973;
/** Until the first move to the history the tables fill; from there to the last one is measured. */
const MOVES = 3;
/** As the ingest thread does it, in pages. */
const CHECKPOINT_PAGES = 8_000;

/** What the writer writes for a live row, over hours of polls of every listing on a real disk. */
export async function benchWritten(): Promise<readonly Figure[]> {
  // The folder of temporary files may be in memory.
  using folder = mkdtempDisposableSync(join(process.cwd(), ".bench-written-"));
  const clock = new ManualClock();
  const warehouse = openWriter(join(folder.path, "mds.sqlite"), { clock });
  const random = seededRandom(1);
  const price = () => parseDecimal((random() * 1e5).toFixed(4)) ?? null;
  let [moves, polls, bytes] = [0, 0, 0];
  try {
    while (moves < MOVES) {
      polls++;
      const ts = clock.now() * 1000;
      const ticks = Array.from({ length: LISTINGS }, (_, listing) => ({
        ...emptyRecord("exchange_ticks"),
        ...{ exchangeId: `exchange-${listing % 200}`, marketId: `market-${listing}` },
        ts: ts - Math.floor(random() * 1000) * 1000,
        ...{ last: price(), bid: price(), ask: price(), volume: price() },
        lastMoved: ts - Math.floor(random() * 1e6),
      }));
      warehouse.transaction((t) => writeRecords(t, "exchange_ticks", ticks, "live"));
      warehouse.checkpointWal(CHECKPOINT_PAGES);
      clock.jump(PERIOD_MS);
      // The daemon checks its storage every minute.
      if (polls % 2 === 0) truncateLongWal(warehouse.connection);
      let from: MovePosition | undefined;
      let isToHistory = false;
      do {
        from = warehouse.transaction((t) => moveLiveRows(t, from));
        warehouse.checkpointWal(CHECKPOINT_PAGES);
        isToHistory ||= from?.into === 0;
      } while (from !== undefined);
      if (isToHistory && ++moves === 1) [polls, bytes] = [0, readWrittenBytes()];
    }
    const measured = (readWrittenBytes() - bytes) / (LISTINGS * polls);
    return [{ name: "bytes written for a live row", measured, atMost: 650, digits: 0, unit: "bytes" }];
  } finally {
    warehouse.close();
  }
}
