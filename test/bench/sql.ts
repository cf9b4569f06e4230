import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openReader } from "../../src/warehouse/reader.ts";
import type { Connection } from "../../src/warehouse/sqlite/connection.ts";
import { type Figure, figureTable, median } from "./figures.ts";
import { FROM, fillWithTicks, nameOf, STEP, TICKS, TO } from "./tick-warehouse.ts";

/** The median of some runs, in milliseconds: by the clock, or of the processor's time alone. */
function timed({ database }: Connection, sql: string, watch = () => performance.now()): number {
  const statement = database.prepare(sql);
  statement.all();
  const times = Array.from({ length: 7 }, () => {
    const begun = watch();
    statement.all();
    return watch() - begun;
  });
  return median(times);
}

/** On a busy machine this tells more than the clock. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** What a quant asks, of 50 million ticks unless told. */
export async function benchSql(print: (line: string) => void, rows = 50_000_000): Promise<readonly Figure[]> {
  const seriesCount = Math.max(1, Math.round(rows / TICKS));
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-sql-"));
  try {
    const path = join(folder, "mds.sqlite");
    fillWithTicks(path, seriesCount);
    print(`${(seriesCount * TICKS).toLocaleString("en-US")} ticks of ${seriesCount} series`);
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
  const window = `index_type = 'GWA' AND name = '${nameOf(1)}' AND ts >= ${FROM} AND ts < ${TO}`;
  const moment = FROM + (TICKS / 2) * STEP;
  const asOf = `SELECT s.name, t.ts, t.price FROM series s
    CROSS JOIN index_ticks t ON t.index_type = s.index_type AND t.index_id = s.index_id AND t.ts = (
      SELECT p.ts FROM index_ticks p WHERE p.index_type = s.index_type AND p.index_id = s.index_id AND p.ts <= ${moment + 1}
      ORDER BY p.ts DESC LIMIT 1)`;
  const perSeries = (sql: string) => (timed(reader, sql) * 1000) / seriesCount;
  const ms = { unit: "ms", digits: 0 };
  const us = { unit: "µs", digits: 1 };
  return [
    {
      name: "200 days of 1h bars of one series, every column",
      measured: timed(reader, `SELECT * FROM bars_1h WHERE ${window}`),
      atMost: 500,
      ...ms,
    },
    {
      name: "the same, of the processor's time",
      measured: timed(reader, `SELECT * FROM bars_1h WHERE ${window}`, processorTime),
      ...ms,
    },
    {
      name: "200 days of 1h bars, the four prices",
      measured: timed(reader, `SELECT ts, open, high, low, close FROM bars_1h WHERE ${window}`),
      ...ms,
    },
    {
      name: "an hour of 1m bars",
      measured: timed(reader, `SELECT * FROM bars_1m WHERE ${window} AND ts >= ${TO - 3_600_000_000}`),
      ...ms,
    },
    {
      name: "latest_index_ticks, a series",
      measured: perSeries("SELECT index_type, index_id, name, ts, price FROM latest_index_ticks"),
      atMost: 10,
      ...us,
    },
    {
      name: "a cross-section at T, a series",
      measured: perSeries(
        `SELECT index_type, index_id, name, ts, price FROM index_ticks WHERE ts = ${moment}`,
      ),
      atMost: 10,
      ...us,
    },
    { name: "the tick at or before T, a series", measured: perSeries(asOf), atMost: 10, ...us },
  ];
}

if (import.meta.main) {
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  const rows = Number(process.argv[2] ?? 50_000_000);
  for (const line of figureTable(await benchSql(print, rows))) print(line);
}
