import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { exportWarehouse } from "../../src/export/export-warehouse.ts";
import { readManifest } from "../../src/export/manifest.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { openWarehouse } from "../../src/warehouse/warehouse.ts";

interface ExportFigure {
  readonly name: string;
  readonly measured: number;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly digits?: number;
  readonly unit: string;
}

const STEP = 30_000_000;
/** What a series has in the service's window of 200 days. */
const TICKS = 576_000;
const FROM = 1_756_684_800_000_000;
const TO = FROM + TICKS * STEP;

const nameOf = (series: number) => `S${String(series).padStart(3, "0")}`;

/**
 * Prices and volumes that walk at random, with as many digits as such prices have, put in without the writer's care, in the
 * order of the key: the quickest way to so many. The ledger says that all is proven.
 */
export function fill(path: string, seriesCount: number): void {
  const warehouse = openWarehouse(path, { clock: systemClock });
  try {
    const { database } = warehouse.connection;
    // Nobody minds if this file is lost.
    database.pragma("synchronous = OFF");
    const series = database.prepare("INSERT INTO series (index_type, index_id, name) VALUES ('GWA', ?, ?)");
    const ticks = database.prepare(
      `WITH RECURSIVE n(i, price, volume, chance) AS (
        SELECT 0, @price, 1000000.0, @series UNION ALL
        SELECT i + 1, price * (1 + (chance % 2001 - 1000) / 2500000.0), volume * (1 + (chance / 7 % 2001 - 1000) / 1000000.0),
          (chance * 1103515245 + 12345) & 2147483647 FROM n WHERE i < ${TICKS - 1})
      INSERT INTO index_tick_rows (series, ts, price, volume, source)
      SELECT @series, ${FROM} + i * ${STEP}, round(price, @digits), round(volume, 4), 0 FROM n`,
    );
    const settled = database.prepare(
      "INSERT INTO settled_ranges VALUES ('index_ticks', ?, ?, ?, 'rows', NULL)",
    );
    for (let key = 1; key <= seriesCount; key++) {
      const magnitude = (key % 9) - 3;
      database.transaction(() => {
        series.run(`7c4a1f0e-0000-4000-8000-${String(key).padStart(12, "0")}`, nameOf(key));
        ticks.run({ series: key, price: 6.7 * 10 ** magnitude, digits: Math.max(2, 5 - magnitude) });
        settled.run(key, FROM, TO);
      })();
    }
  } finally {
    warehouse.close();
  }
}

/** 200 days of as many series as make up `rows`. */
export async function benchExport(print: (line: string) => void, rows = 10_000_000): Promise<ExportFigure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const [warehouse, to] = [join(folder, "mds.sqlite"), join(folder, "export")];
  try {
    const seriesCount = Math.ceil(rows / TICKS);
    fill(warehouse, seriesCount);
    print(
      `${(seriesCount * TICKS).toLocaleString("en-US")} ticks, ${Math.round(statSync(warehouse).size / 2 ** 20)} MiB`,
    );
    const timed = async () => {
      const before = process.cpuUsage();
      const result = await exportWarehouse({ warehouse, to, program: "bench", clock: systemClock });
      const { user, system } = process.cpuUsage(before);
      return { ...result, cpuSeconds: (user + system) / 1e6 };
    };
    const first = await timed();
    const again = await timed();
    const months = readManifest(to)?.files.filter(({ relation }) => relation === "index_ticks") ?? [];
    const written = months.reduce((sum, file) => sum + file.rows, 0);
    const bytes = months.reduce((sum, file) => sum + file.bytes, 0);
    return [
      { name: "export", measured: written / first.seconds, atLeast: 300_000, digits: 0, unit: "rows/s" },
      { name: "processor time of it, a row", measured: (first.cpuSeconds * 1e6) / written, unit: "µs" },
      { name: "bytes a tick", measured: bytes / written, atMost: 15, digits: 1, unit: "bytes" },
      { name: "an export with nothing to do", measured: written / again.seconds, digits: 0, unit: "rows/s" },
      {
        name: "200 days of 1h bars of one series, in DuckDB",
        measured: await hourlyBars(join(to, "mds.duckdb"), seriesCount),
        atMost: 100,
        digits: 0,
        unit: "ms",
      },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Milliseconds, each time of another series. */
export async function hourlyBars(catalogue: string, seriesCount: number): Promise<number> {
  const instance = await DuckDBInstance.create(catalogue, { access_mode: "READ_ONLY" });
  try {
    const connection = await instance.connect();
    const times: number[] = [];
    for (let i = 0; i < 7; i++) {
      const begun = performance.now();
      const { currentRowCount } = await connection.runAndReadAll(
        `SELECT time, open, high, low, close, n_ticks, coverage, is_complete FROM bars_1h
          WHERE name = '${nameOf(1 + ((i * 5) % seriesCount))}' ORDER BY time`,
      );
      if (currentRowCount !== 4_800) throw new Error(`${currentRowCount} bars instead of 4800`);
      times.push(performance.now() - begun);
    }
    return times.sort((a, b) => a - b)[times.length >> 1] as number;
  } finally {
    instance.closeSync();
  }
}

if (import.meta.main) {
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  for (const { name, measured, digits = 2, unit } of await benchExport(
    print,
    Number(process.argv[2] ?? 10_000_000),
  ))
    print(`${name}: ${measured.toLocaleString("en-US", { maximumFractionDigits: digits })} ${unit}`);
}
