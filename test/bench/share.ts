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
export async function benchShare(print: (line: string) => void, seriesCount = 1): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const warehouse = join(folder, "mds.sqlite");
  const server = new PostgresServer({ fsync: "on", shared_buffers: "128MB", max_wal_size: "2GB" });
  try {
    fillWithTicks(warehouse, seriesCount);
    await server.start();
    const bodies = createPages(warehouse);
    const ratios: number[] = [];
    const speeds: number[] = [];
    let bytesPerRow = 0;
    let bars: Figure[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const bare = runBareLoop(join(folder, `bare-${round}`), bodies).rowsPerSecond;
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
      if (rows !== seriesCount * TICKS_PER_SERIES) throw new Error(`${rows} rows forwarded`);
      speeds.push(rows / seconds);
      ratios.push(rows / seconds / bare);
      const [size] = await server.query<{ bytes: string }>(
        database,
        `SELECT sum(pg_total_relation_size(inhrelid)) + pg_total_relation_size('mds.kept_bars') AS bytes
          FROM pg_inherits WHERE inhparent = 'mds.index_tick_rows'::regclass`,
      );
      bytesPerRow = Number(size?.bytes) / rows;
      if (round === ROUNDS - 1) bars = await measureBars(server, database, seriesCount, print);
    }
    print(`forwarded: ${Math.round(median(speeds)).toLocaleString("en-US")} rows/s`);
    return [
      { name: "forwarding relative to the bare SQLite loop", measured: median(ratios), atLeast: 0.35 },
      { name: "bytes per row in PostgreSQL", measured: bytesPerRow, atMost: 135, digits: 0, unit: "bytes" },
      ...bars,
    ];
  } finally {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

const BAR_VIEWS = ["bars_1h", "bars_4h", "bars_1d"] as const;
const BAR_SERIES = 28;

/** Reads the bars of 28 series: those that were forwarded, and copies of the first one's kept bars. */
async function measureBars(
  server: PostgresServer,
  database: string,
  seriesCount: number,
  print: (line: string) => void,
): Promise<Figure[]> {
  // Every column, as text, but without what a client does with it.
  const seconds = async (view: string) => {
    const [row] = await server.query<{ "QUERY PLAN": { "Execution Time": number }[] }>(
      database,
      `EXPLAIN (ANALYZE, TIMING off, SERIALIZE text, FORMAT json) SELECT * FROM mds.${view}`,
    );
    return (row?.["QUERY PLAN"][0]?.["Execution Time"] ?? Number.NaN) / 1000;
  };
  await server.query(database, "VACUUM ANALYZE");
  await server.query(database, "UPDATE mds.kept_bars SET n_ticks = NULL");
  for (const view of BAR_VIEWS)
    print(`${view} of ${seriesCount} series from ticks: ${(await seconds(view)).toFixed(2)} s`);
  const figures = "open, high, low, close, volume_24h, n_doubtful";
  await server.query(
    database,
    `INSERT INTO mds.series (index_type, index_id, name) SELECT 'GWA', 'copy-' || i, 'C' || i FROM generate_series(${seriesCount + 1}, ${BAR_SERIES}) i;
    UPDATE mds.kept_bars SET n_ticks = length / 30000000;
    INSERT INTO mds.kept_bars (series, length, ts, ${figures}, n_ticks) SELECT s.series, k.length, k.ts, ${figures}, n_ticks
      FROM mds.series s CROSS JOIN mds.kept_bars k WHERE k.series = 1 AND s.index_id LIKE 'copy-%' ORDER BY s.series, k.length, k.ts;
    INSERT INTO mds.settled_ranges (stream, series, from_ts, to_ts, proof) SELECT g.stream, s.series, g.from_ts, g.to_ts, g.proof
      FROM mds.series s CROSS JOIN mds.settled_ranges g WHERE g.series = 1 AND s.index_id LIKE 'copy-%'`,
  );
  await server.query(database, "VACUUM ANALYZE");
  const all: Figure[] = [];
  for (const view of BAR_VIEWS) {
    const times = [await seconds(view), await seconds(view), await seconds(view)];
    const name = `${view} of ${BAR_SERIES} series × 200 days in PostgreSQL`;
    all.push({ name, measured: median(times), atMost: 1, unit: "s" });
  }
  return all;
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
