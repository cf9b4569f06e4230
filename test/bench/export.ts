import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { exportWarehouse } from "../../src/export/export-warehouse.ts";
import type { Manifest } from "../../src/export/manifest.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { settle } from "../../src/warehouse/ledger.ts";
import { openWarehouse } from "../../src/warehouse/warehouse.ts";

export interface ExportFigures {
  readonly rows: number;
  readonly rowsASecond: number;
  readonly bytesARow: number;
  /** Rows a second of a run that finds nothing changed. */
  readonly rowsASecondUnchanged: number;
  /** Milliseconds for 200 days of 1h bars of one series, from Parquet in DuckDB. */
  readonly hourlyBars: number;
}

const STEP = 30_000_000;
const NEWEST = 1_772_366_400_000_000;
const ROWS_A_STATEMENT = 100;

/** Ticks of `seriesCount` series over the last days, put in without the ledger's care: the quickest way to many of them. */
function fill(path: string, rows: number, seriesCount: number): void {
  const warehouse = openWarehouse(path, { clock: systemClock });
  const { database } = warehouse.connection;
  const count = rows / seriesCount;
  const range = { from: NEWEST - count * STEP, to: NEWEST };
  const values = Array(ROWS_A_STATEMENT).fill("(@key, ?, ?, ?, 0)").join(", ");
  const insert = database.prepare(
    `INSERT INTO index_tick_rows (series, ts, price, volume, source) VALUES ${values}`,
  );
  for (let n = 0; n < seriesCount; n++) {
    warehouse.transaction((transaction) => {
      const series = transaction.dictionary.series(
        "GWA",
        `7c4a1f0e-0000-4000-8000-${String(n).padStart(12, "0")}`,
      );
      let price = 10 ** ((n % 9) - 3);
      let volume = 1e6 + n;
      const scale = 10 ** Math.max(2, 4 - Math.floor(Math.log10(price)));
      let seed = n + 1;
      const chance = () => {
        seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
        return seed / 2 ** 32 - 0.5;
      };
      for (let i = 0; i < count; i += ROWS_A_STATEMENT) {
        const chunk: number[] = [];
        for (let j = 0; j < ROWS_A_STATEMENT; j++) {
          price *= 1 + chance() * 0.0008;
          volume *= 1 + chance() * 0.002;
          chunk.push(
            range.from + (i + j) * STEP,
            Math.round(price * scale) / scale,
            Math.round(volume * 1e4) / 1e4,
          );
        }
        insert.run(chunk, { key: series });
      }
      transaction.carry("index_ticks", series);
      settle(transaction, { stream: "index_ticks", series }, range, "rows");
    });
  }
  warehouse.close();
}

/** 28.8 million rows are 200 days of 50 series. */
export async function benchExport(rows = 5_000_000, seriesCount = 50): Promise<ExportFigures> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const [warehouse, to] = [join(folder, "mds.sqlite"), join(folder, "export")];
  try {
    fill(warehouse, rows, seriesCount);
    const run = () => exportWarehouse({ warehouse, to, program: "bench", clock: systemClock });
    const first = await run();
    const second = await run();
    const { files } = JSON.parse(readFileSync(join(to, "manifest.json"), "utf8")) as Manifest;
    const months = files.filter(({ relation }) => relation === "index_ticks");
    const written = months.reduce((sum, file) => sum + file.rows, 0);
    return {
      rows: written,
      rowsASecond: written / first.seconds,
      bytesARow: months.reduce((sum, file) => sum + file.bytes, 0) / written,
      rowsASecondUnchanged: written / second.seconds,
      hourlyBars: await hourlyBars(join(to, "mds.duckdb")),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function hourlyBars(catalogue: string): Promise<number> {
  const instance = await DuckDBInstance.create(catalogue, { access_mode: "READ_ONLY" });
  const connection = await instance.connect();
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const name = `7c4a1f0e-0000-4000-8000-${String(7 + i).padStart(12, "0")}`;
    const begun = performance.now();
    await connection.runAndReadAll(
      `SELECT time, open, high, low, close, n_ticks, coverage, is_complete FROM bars_1h WHERE name = '${name}' ORDER BY time`,
    );
    times.push(performance.now() - begun);
  }
  instance.closeSync();
  return times.sort((a, b) => a - b)[times.length >> 1] as number;
}

if (import.meta.main) {
  const rows = Number(process.argv[2] ?? 5_000_000);
  process.stdout.write(`${JSON.stringify(await benchExport(rows), null, 2)}\n`);
}
