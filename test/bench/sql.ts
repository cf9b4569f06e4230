import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openReader } from "../../src/warehouse/reader.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";
import { type Figure, median } from "./figures.ts";
import { CADENCE, FROM, fillWithTicks, seriesName, TICKS_PER_SERIES, TO } from "./tick-warehouse.ts";

/** The median milliseconds of several runs, by the wall clock or by another clock. */
function measureMs({ database }: Connection, sql: string, readClock = () => performance.now()): number {
  const statement = database.prepare(sql);
  statement.all();
  const times = Array.from({ length: 7 }, () => {
    const startedAt = readClock();
    statement.all();
    return readClock() - startedAt;
  });
  return median(times);
}

/** For queries of bars, which use one core throughout: on a busy machine the wall clock would tell more about the others. */
function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Typical queries on 50 million ticks. */
export async function benchSql(print: (line: string) => void): Promise<readonly Figure[]> {
  const seriesCount = Math.round(50_000_000 / TICKS_PER_SERIES);
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-sql-"));
  try {
    const path = join(folder, "mds.sqlite");
    fillWithTicks(path, seriesCount);
    const ticks = seriesCount * TICKS_PER_SERIES;
    const bytes = (statSync(path).size / ticks).toFixed(1);
    print(`${ticks.toLocaleString("en-US")} ticks of ${seriesCount} series, ${bytes} bytes each on disk`);
    const reader = openReader(path);
    try {
      return figures(reader, seriesCount);
    } finally {
      reader.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function figures(reader: Connection, seriesCount: number): Figure[] {
  const window = `index_type = 'GWA' AND name = '${seriesName(1)}' AND ts >= ${FROM} AND ts < ${TO}`;
  const moment = FROM + (TICKS_PER_SERIES / 2) * CADENCE;
  const asOf = `SELECT s.name, t.ts, t.price FROM series s
    CROSS JOIN index_ticks t ON t.index_type = s.index_type AND t.index_id = s.index_id AND t.ts = (
      SELECT p.ts FROM index_ticks p WHERE p.index_type = s.index_type AND p.index_id = s.index_id AND p.ts <= ${moment + 1}
      ORDER BY p.ts DESC LIMIT 1)`;
  const matrixSize = Math.min(50, seriesCount);
  const perSeries = (sql: string) => (measureMs(reader, sql) * 1000) / seriesCount;
  const ms = { unit: "ms", digits: 0 };
  const us = { unit: "µs", digits: 1 };
  return [
    {
      name: `200 days of 1h closes of ${matrixSize} series`,
      measured: measureMs(
        reader,
        `SELECT name, ts, close FROM bars_1h WHERE index_type = 'GWA' AND name <= '${seriesName(matrixSize)}'`,
        cpuTimeMs,
      ),
      atMost: 1000,
      ...ms,
    },
    {
      name: "200 days of 1h bars of one series, the four prices",
      measured: measureMs(
        reader,
        `SELECT ts, open, high, low, close FROM bars_1h WHERE ${window}`,
        cpuTimeMs,
      ),
      atMost: 20,
      digits: 1,
      unit: "ms",
    },
    {
      name: "the same, every column",
      measured: measureMs(reader, `SELECT * FROM bars_1h WHERE ${window}`, cpuTimeMs),
      atMost: 60,
      ...ms,
    },
    {
      name: "latest_index_ticks, per series",
      measured: perSeries("SELECT index_type, index_id, name, ts, price FROM latest_index_ticks"),
      atMost: 10,
      ...us,
    },
    {
      name: "a cross-section at T, per series",
      measured: perSeries(
        `SELECT index_type, index_id, name, ts, price FROM index_ticks WHERE ts = ${moment}`,
      ),
      atMost: 10,
      ...us,
    },
    { name: "the tick at or before T, per series", measured: perSeries(asOf), atMost: 10, ...us },
  ];
}
