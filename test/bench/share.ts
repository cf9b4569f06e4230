import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/runtime/clock.ts";
import { shareOnce } from "../../src/share/share-once.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { PASSWORD, PostgresServer } from "../support/postgres-server.ts";
import { runBareLoop } from "./bare-loop.ts";
import { type Figure, median } from "./figures.ts";
import { fillWithTicks, TICKS_PER_SERIES } from "./tick-warehouse.ts";

const ROUNDS = 3;
const PAGES = 150;
const ROWS_PER_PAGE = 2_000;

/** Forwarding to PostgreSQL on this machine, fsync on, beside the bare SQLite loop, in alternating rounds. */
export async function benchShare(print: (line: string) => void): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const warehouse = join(folder, "mds.sqlite");
  const server = new PostgresServer({ fsync: "on", shared_buffers: "128MB", max_wal_size: "2GB" });
  try {
    fillWithTicks(warehouse, 1);
    await server.start();
    const bodies = createPages(warehouse);
    const ratios: number[] = [];
    const speeds: number[] = [];
    let bytesPerRow = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const bare = runBareLoop(join(folder, `bare-${round}`), bodies);
      const database = await server.createDatabase();
      const { rows, seconds } = await shareOnce({
        warehouse,
        url: server.url(database),
        readPassword: () => PASSWORD,
        role: "alone",
        name: "bench",
        leaseSeconds: 15,
        clock: systemClock,
        signal: new AbortController().signal,
      });
      if (rows !== TICKS_PER_SERIES) throw new Error(`${rows} rows forwarded`);
      speeds.push(rows / seconds);
      ratios.push(rows / seconds / bare);
      const [size] = await server.query<{ bytes: string }>(
        database,
        `SELECT sum(pg_total_relation_size(inhrelid)) + pg_total_relation_size('mds.kept_bars') AS bytes
          FROM pg_inherits WHERE inhparent = 'mds.index_tick_rows'::regclass`,
      );
      bytesPerRow = Number(size?.bytes) / rows;
    }
    print(`forwarded: ${Math.round(median(speeds)).toLocaleString("en-US")} rows/s`);
    return [
      { name: "forwarding relative to the bare SQLite loop", measured: median(ratios), atLeast: 0.35 },
      { name: "bytes per row in PostgreSQL", measured: bytesPerRow, atMost: 135, digits: 0, unit: "bytes" },
    ];
  } finally {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Pages as the service sends them, of the same rows. */
function createPages(warehouse: string): Uint8Array[] {
  const reader = openReader(warehouse);
  try {
    const rows = reader
      .statement<readonly [number, number, number]>(
        "SELECT ts, price, volume FROM index_tick_rows WHERE series = 1 ORDER BY ts DESC LIMIT ?",
      )
      .raw()
      .all([PAGES * ROWS_PER_PAGE]);
    return Array.from({ length: PAGES }, (_, page) => {
      const content = rows
        .slice(page * ROWS_PER_PAGE, (page + 1) * ROWS_PER_PAGE)
        .map(([ts, price, volume], i) => ({
          id: `7c4a1f0e-${String(page).padStart(4, "0")}-4000-8000-${String(i).padStart(12, "0")}`,
          indexId: "7c4a1f0e-0000-4000-8000-000000000001",
          indexType: "GWA",
          price: String(price),
          volume: String(volume),
          timestamp: new Date(ts / 1000).toISOString(),
        }));
      return Buffer.from(JSON.stringify({ content, nextId: null }));
    });
  } finally {
    reader.close();
  }
}
