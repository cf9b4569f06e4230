import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { exportWarehouse } from "../../src/export/export-warehouse.ts";
import { readManifest } from "../../src/export/manifest.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { type Figure, median } from "./figures.ts";
import { fillWithTicks, seriesName, TICKS_PER_SERIES } from "./tick-warehouse.ts";

/** 200 days of as many series as give `rows` ticks. */
export async function benchExport(): Promise<Figure[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "mds-bench-"));
  const [warehouse, to] = [join(folder.path, "mds.sqlite"), join(folder.path, "export")];
  const seriesCount = Math.ceil(10_000_000 / TICKS_PER_SERIES);
  fillWithTicks(warehouse, seriesCount);
  const { seconds } = await exportWarehouse({ warehouse, to, program: "bench", clock: systemClock });
  const months = readManifest(to)?.files.filter(({ relation }) => relation === "index_ticks") ?? [];
  const written = months.reduce((sum, file) => sum + file.rows, 0);
  const bytes = months.reduce((sum, file) => sum + file.bytes, 0);
  return [
    { name: "export", measured: written / seconds, atLeast: 300_000, digits: 0, unit: "rows/s" },
    { name: "bytes per tick", measured: bytes / written, atMost: 20, digits: 1, unit: "bytes" },
    {
      name: "200 days of 1h bars of one series, in DuckDB",
      measured: await measureHourlyBars(join(to, "mds.duckdb"), seriesCount),
      atMost: 100,
      digits: 0,
      unit: "ms",
    },
  ];
}

/** The median milliseconds of queries for different series. */
async function measureHourlyBars(catalogue: string, seriesCount: number): Promise<number> {
  const instance = await DuckDBInstance.create(catalogue, { access_mode: "READ_ONLY" });
  try {
    const connection = await instance.connect();
    const times: number[] = [];
    for (let i = 0; i < 7; i++) {
      const startedAt = performance.now();
      const { currentRowCount } = await connection.runAndReadAll(
        `SELECT time, open, high, low, close, n_ticks, coverage, is_complete FROM bars_1h
          WHERE name = '${seriesName(1 + ((i * 5) % seriesCount))}' ORDER BY time`,
      );
      if (currentRowCount !== 4_800) throw new Error(`${currentRowCount} bars instead of 4800`);
      times.push(performance.now() - startedAt);
    }
    return median(times);
  } finally {
    instance.closeSync();
  }
}
