import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openWarehouse, type Warehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp, MICROS_PER_DAY } from "../../src/model/time.ts";
import { buildProgram } from "./built-program.ts";
import { type Figure, formatFigures, median } from "./figures.ts";
import { CADENCE, FROM, fillWithTicks, seriesName, TICKS_PER_SERIES } from "./tick-warehouse.ts";

const SERIES_COUNT = 3;

/** CPU time: these calls use one core throughout, and on a busy machine the wall clock would tell more about the others. */
function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function measureMs(work: () => unknown): number {
  work();
  const times = Array.from({ length: 7 }, () => {
    const startedAt = cpuTimeMs();
    work();
    return cpuTimeMs() - startedAt;
  });
  return median(times);
}

/** What a quant's tools cost: the library, the commands, and bounds on time. */
export async function benchToolkit(print: (line: string) => void): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-toolkit-"));
  try {
    const path = join(folder, "mds.sqlite");
    fillWithTicks(path, SERIES_COUNT);
    const warehouse = openWarehouse(path);
    try {
      const rowsPerSecond = await measurePipe(path);
      print(`${SERIES_COUNT} series of ${TICKS_PER_SERIES.toLocaleString("en-US")} ticks`);
      return [
        ...libraryFigures(warehouse),
        {
          name: "mds-sync ticks --format ndjson to a pipe",
          measured: rowsPerSecond,
          atLeast: 300_000,
          digits: 0,
          unit: "rows/s",
        },
        ...boundFigures(warehouse),
      ];
    } finally {
      warehouse.close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function libraryFigures(warehouse: Warehouse): Figure[] {
  const name = seriesName(1);
  const ms = { unit: "ms", digits: 0 };
  return [
    {
      name: "200 days of ticks of one series as columns",
      measured: measureMs(() => warehouse.ticks(name, { as: "columns" })),
      atMost: 150,
      ...ms,
    },
    {
      name: "the same with volumes",
      measured: measureMs(() => warehouse.ticks(name, { as: "columns", columns: ["price", "volume"] })),
      ...ms,
    },
    {
      name: "200 days of 1h bars of one series as rows",
      measured: measureMs(() => warehouse.bars(name, { every: "1h" })),
      ...ms,
    },
    {
      name: "200 days of 7m bars of one series as rows",
      measured: measureMs(() => warehouse.bars(name, { every: "7m" })),
      ...ms,
    },
  ];
}

/** A day of one series: a bound on `time`, and one on `day`, relative to one on `ts`. */
function boundFigures(warehouse: Warehouse): Figure[] {
  const from = FROM + 100 * MICROS_PER_DAY;
  const to = from + MICROS_PER_DAY;
  const [fromTime, toTime] = [formatTimestamp(from).slice(0, 10), formatTimestamp(to).slice(0, 10)];
  const read = (relation: string, bound: string) =>
    measureMs(() =>
      warehouse.query(
        `SELECT ts, price FROM ${relation} WHERE index_type = 'GWA' AND name = '${seriesName(2)}' AND ${bound}`,
      ),
    );
  const byKey = read("index_ticks", `ts >= ${from} AND ts < ${to}`);
  return [
    {
      name: "a day of one series by time, relative to by ts",
      measured: read("index_ticks", `time >= '${fromTime}' AND time < '${toTime}'`) / byKey,
      atMost: 2,
    },
    {
      name: "the same by day of index_ticks_by_day, in any SQLite tool",
      measured: read("index_ticks_by_day", `day = '${fromTime}'`) / byKey,
      atMost: 2,
    },
  ];
}

/** Rows per second from the first byte in the pipe to the last. */
async function measurePipe(path: string): Promise<number> {
  const names = Array.from({ length: SERIES_COUNT }, (_, at) => seriesName(at + 1));
  const child = spawn(
    process.execPath,
    [buildProgram(), "ticks", ...names, "--format", "ndjson", "--warehouse", path],
    {
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  const ended = once(child, "close");
  await once(child.stdout, "readable");
  const startedAt = performance.now();
  child.stdout.resume();
  const [code] = await ended;
  if (code !== 0) throw new Error(`mds-sync ticks exited with ${code}`);
  return (SERIES_COUNT * TICKS_PER_SERIES * 1000) / (performance.now() - startedAt);
}

if (import.meta.main) {
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  print(`a tick every ${CADENCE / 1_000_000} seconds`);
  for (const line of formatFigures(await benchToolkit(print))) print(line);
}
