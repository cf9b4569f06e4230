import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { parseDecimal } from "../../src/model/decimal.ts";
import { type MovePosition, moveLiveRows } from "../../src/warehouse/rows/move-live-rows.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { readWrittenBytes } from "../../src/warehouse/sqlite/disk.ts";
import { openWriter } from "../../src/warehouse/writer.ts";
import { emptyRecord } from "../support/empty-record.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { seededRandom } from "../support/seeded-random.ts";
import type { Figure } from "./figures.ts";

const PERIOD_MS = 30_000;
/** Of live ticks. The first half fills the tables: a file grows more slowly while it is small. */
const MINUTES = { 4973: 240, 45000: 60 } as const;
/** As the ingest thread does it, in pages. */
const CHECKPOINT_PAGES = 1000;

/** What the writer writes for a live row, over hours of polls of every listing on a real disk. */
export async function benchWritten(print: (line: string) => void): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const [listings, minutes] of Object.entries(MINUTES)) {
    const measured = await writePolls(Number(listings), minutes, print);
    figures.push({
      name: `bytes written for a live row, ${Number(listings).toLocaleString("en-US")} listings`,
      measured,
      atMost: 800,
      digits: 0,
      unit: "bytes",
    });
  }
  return figures;
}

async function writePolls(listings: number, minutes: number, print: (line: string) => void): Promise<number> {
  // The folder of temporary files may be in memory.
  const folder = await mkdtemp(join(process.cwd(), ".bench-written-"));
  const clock = new ManualClock();
  const warehouse = openWriter(join(folder, "mds.sqlite"), { clock });
  const random = seededRandom(1);
  const price = () => parseDecimal((random() * 1e5).toFixed(4)) ?? null;
  const polls = (minutes * 60_000) / PERIOD_MS;
  let [bytes, slowestMs] = [0, 0];
  try {
    for (let poll = 0; poll < polls; poll++) {
      if (poll === polls / 2) bytes = readWrittenBytes();
      const ts = clock.now() * 1000;
      const ticks = Array.from({ length: listings }, (_, listing) => ({
        ...emptyRecord("exchange_ticks"),
        exchangeId: `exchange-${listing % 200}`,
        marketId: `market-${listing}`,
        ts: ts - Math.floor(random() * 1000) * 1000,
        last: price(),
        bid: price(),
        ask: price(),
        volume: price(),
        lastMoved: ts - Math.floor(random() * 1e6),
      }));
      warehouse.transaction((t) => writeRecords(t, "exchange_ticks", ticks, "live"));
      warehouse.checkpointWal(CHECKPOINT_PAGES);
      clock.jump(PERIOD_MS);
      let from: MovePosition | undefined;
      do {
        const began = performance.now();
        from = warehouse.transaction((t) => moveLiveRows(t, from));
        warehouse.checkpointWal(CHECKPOINT_PAGES);
        slowestMs = Math.max(slowestMs, performance.now() - began);
      } while (from !== undefined);
    }
    const rows = (listings * polls) / 2;
    print(`${listings} listings: the longest transaction that moves rows took ${slowestMs.toFixed(0)} ms`);
    return (readWrittenBytes() - bytes) / rows;
  } finally {
    warehouse.close();
    rmSync(folder, { recursive: true });
  }
}
