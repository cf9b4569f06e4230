import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { IndexTick } from "../../src/model/records.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { findRowsBeside } from "../../src/warehouse/rows/withdraw-rows.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";

export interface WarehouseFigures {
  readonly rows: number;
  readonly bytesPerRow: number;
  /** Speed of a page commit (rows, withdrawals, ledger, counters) relative to a bare loop of 50-row inserts. */
  readonly ratioToBareLoop: number;
  readonly rowsPerSecond: number;
  readonly latestMicrosPerSeries: number;
  readonly crossSectionMicrosPerSeries: number;
  /** A week of one series with exact prices. */
  readonly weekOfOneSeriesMs: number;
}

const ROWS_PER_PAGE = 2000;
const CADENCE = 30_000_000;
const NEWEST_TS = 1_772_366_400_000_000;

/** One page, newest first, as the service sends it: `page` 0 is the newest. */
function makePage(series: number, page: number): IndexTick[] {
  const indexId = `7c4a1f0e-0000-4000-8000-${String(series).padStart(12, "0")}`;
  return Array.from({ length: ROWS_PER_PAGE }, (_, i) => {
    const n = page * ROWS_PER_PAGE + i;
    return {
      indexType: "GWA",
      indexId,
      ts: NEWEST_TS - n * CADENCE,
      price: { real: Math.round(6_701_250 + Math.sin(n / 50 + series) * 90_000) / 100, exact: null },
      volume: { real: Math.round(1e9 + n * 1234.567) / 1000, exact: null },
      tickVolume: null,
      name: null,
      quality: null,
      extra: null,
    };
  });
}

function commitPage(warehouse: WarehouseWriter, ticks: readonly IndexTick[]): void {
  const first = ticks[0] as IndexTick;
  const range = { from: (ticks.at(-1) as IndexTick).ts, to: first.ts + CADENCE };
  warehouse.transaction((transaction) => {
    const series = transaction.dictionary.getSeriesKey(first.indexType, first.indexId);
    writeRecords(transaction, "index_ticks", ticks, "rest");
    const key = { stream: "index_ticks", series } as const;
    const timestamps = ticks.map(({ ts }) => ts);
    if (findRowsBeside(transaction, key, range, timestamps).length > 0)
      throw new Error("a page of the benchmark lacks stored rows");
    settle(transaction, key, range, "rows");
  });
}

function openBareLoop(path: string): {
  write(series: number, ticks: readonly IndexTick[]): void;
  close(): void;
} {
  const database = new Database(path);
  database.pragma("journal_mode = WAL");
  database.pragma("synchronous = FULL");
  database.exec(
    "CREATE TABLE t (series INTEGER, ts INTEGER, price REAL, volume REAL, PRIMARY KEY (series, ts)) STRICT, WITHOUT ROWID",
  );
  const insert = database.prepare(`INSERT INTO t VALUES ${Array(50).fill("(?, ?, ?, ?)").join(", ")}`);
  return {
    write(series, ticks) {
      database.exec("BEGIN IMMEDIATE");
      for (let at = ticks.length; at > 0; at -= 50) {
        const values: unknown[] = [];
        for (let i = at - 1; i >= at - 50; i--) {
          const tick = ticks[i] as IndexTick;
          values.push(series, tick.ts, tick.price?.real, tick.volume?.real);
        }
        insert.run(values);
      }
      database.exec("COMMIT");
    },
    close: () => void database.close(),
  };
}

/** Commits pages of 2000 ticks from newest to oldest, in alternating rounds with the bare loop. */
export function benchWarehouse(rows = 2_000_000, seriesCount = 50): WarehouseFigures {
  const directory = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const path = join(directory, "mds.sqlite");
  const warehouse = openWriter(path, { clock: systemClock });
  const bare = openBareLoop(join(directory, "bare.sqlite"));
  const spent = { ours: [] as number[], bare: [] as number[] };
  const timed = (work: () => void) => {
    const start = performance.now();
    work();
    return performance.now() - start;
  };
  try {
    for (let page = 0; page * ROWS_PER_PAGE * seriesCount < rows; page++) {
      let ours = 0;
      let theirs = 0;
      for (let series = 0; series < seriesCount; series++) {
        const ticks = makePage(series, page);
        ours += timed(() => commitPage(warehouse, ticks));
        theirs += timed(() => bare.write(series, ticks));
      }
      spent.ours.push(ours);
      spent.bare.push(theirs);
    }
    const query = (sql: string) => {
      const statement = warehouse.connection.database.prepare(sql);
      statement.all();
      return median(Array.from({ length: 5 }, () => timed(() => void statement.all())));
    };
    const latest = query("SELECT index_id, ts, price FROM latest_index_ticks");
    const section = query(`SELECT index_id, price FROM index_ticks WHERE ts = ${NEWEST_TS - 5000 * CADENCE}`);
    const week = query(
      `SELECT time, price, price_exact, is_settled FROM index_ticks WHERE name = (SELECT min(name) FROM series)
        AND ts >= ${NEWEST_TS - 7 * 2880 * CADENCE}`,
    );
    warehouse.connection.database.pragma("wal_checkpoint(TRUNCATE)");
    const written = rows === 0 ? 1 : spent.ours.length * seriesCount * ROWS_PER_PAGE;
    return {
      rows: written,
      bytesPerRow: statSync(path).size / written,
      ratioToBareLoop: median(spent.bare.map((time, i) => time / (spent.ours[i] as number))),
      rowsPerSecond: (seriesCount * ROWS_PER_PAGE * 1000) / median(spent.ours),
      latestMicrosPerSeries: (latest * 1000) / seriesCount,
      crossSectionMicrosPerSeries: (section * 1000) / seriesCount,
      weekOfOneSeriesMs: week,
    };
  } finally {
    warehouse.close();
    bare.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(benchWarehouse(), null, 2)}\n`);
