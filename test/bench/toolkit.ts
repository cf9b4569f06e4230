import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openWarehouse, type Warehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp, MICROS_PER_DAY } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { withReader } from "../../src/warehouse/reader.ts";
import { computeStaleBars } from "../../src/warehouse/rows/kept-bars.ts";
import { citeState } from "../../src/warehouse/tables/known-at.ts";
import { openWriter } from "../../src/warehouse/writer.ts";
import { tick } from "../support/warehouse/records.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";
import { buildProgram } from "./built-program.ts";
import type { Figure } from "./figures.ts";
import { CADENCE, cpuMs, FROM, fillWithTicks, seriesName, TICKS_PER_SERIES } from "./tick-warehouse.ts";

const SERIES_COUNT = 3;

/** The fastest of several runs: other programs can only slow one down. */
function measureMs(work: () => unknown): number {
  work();
  const times = Array.from({ length: 7 }, () => {
    const startedAt = cpuMs();
    work();
    return cpuMs() - startedAt;
  });
  return Math.min(...times);
}

/** What a quant's tools cost: the library, the commands, and bounds on time. */
export async function benchToolkit(print: (line: string) => void): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-toolkit-"));
  try {
    const path = join(folder, "mds.sqlite");
    fillWithTicks(path, SERIES_COUNT);
    const before = correctTicks(path);
    const warehouse = openWarehouse(path);
    try {
      const rowsPerSecond = await measurePipe(folder, path);
      print(`${SERIES_COUNT} series of ${TICKS_PER_SERIES.toLocaleString("en-US")} ticks`);
      return [
        {
          ...{ name: "200 days of ticks of one series as columns", atMost: 150, unit: "ms", digits: 0 },
          measured: measureMs(() => warehouse.ticks(seriesName(1), { as: "columns" })),
        },
        ...pastFigures(warehouse, before),
        {
          ...{ name: "mds-sync ticks --format ndjson to a pipe, by CPU time", measured: rowsPerSecond },
          ...{ atLeast: 150_000, digits: 0, unit: "rows/s" },
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

const CORRECTIONS = 100;

/** Corrects ticks of the first series, each in another hour, and returns the state before. */
function correctTicks(path: string): string {
  const [state, indexId] = withReader(path, (reader) => [
    citeState(reader),
    reader.value<string>("SELECT index_id FROM series WHERE series = 1"),
  ]);
  const writer = openWriter(path, { clock: systemClock });
  try {
    writer.transaction((transaction) => {
      const step = Math.floor(TICKS_PER_SERIES / CORRECTIONS);
      const corrected = Array.from({ length: CORRECTIONS }, (_, at) =>
        tick(FROM + at * step * CADENCE, "1.25", { indexId }),
      );
      writeTicks(transaction, corrected.reverse());
      computeStaleBars(transaction, CORRECTIONS);
    });
  } finally {
    writer.close();
  }
  return state;
}

/** What the state before the corrections costs, relative to the newest. */
function pastFigures(warehouse: Warehouse, knownAt: string): Figure[] {
  const name = seriesName(1);
  const noon = FROM + 100 * MICROS_PER_DAY;
  const reads: Record<string, (state: { readonly knownAt?: string }) => unknown> = {
    "ticks as columns": (state) => warehouse.ticks(name, { as: "columns", ...state }),
    "ticks as rows": (state) =>
      warehouse.ticks(name, { from: noon, to: noon + 30 * MICROS_PER_DAY, ...state }),
    "1h bars": (state) => warehouse.bars(name, { every: "1h", ...state }),
    "7m bars": (state) => warehouse.bars(name, { every: "7m", ...state }),
    "a hundred prices": (state) => {
      for (let day = 0; day < 100; day++) warehouse.asOf(FROM + (day + 1) * MICROS_PER_DAY, name, state);
    },
  };
  return Object.entries(reads).map(([what, read]) => ({
    name: `${what} as known before ${CORRECTIONS} corrections, relative to now`,
    measured: measureMs(() => read({ knownAt })) / measureMs(() => read({})),
    atMost: 2,
  }));
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
  const bars = `SELECT ts, open, high, low, close FROM bars_1h WHERE index_type = 'GWA' AND name = '${seriesName(2)}'`;
  const byKey = read("index_ticks", `ts >= ${from} AND ts < ${to}`);
  return [
    {
      name: "200 days of 1h bars of one series, the four prices",
      measured: measureMs(() => warehouse.query(bars)),
      atMost: 20,
      digits: 1,
      unit: "ms",
    },
    {
      name: "a day of one series by time, relative to by ts",
      measured: read("index_ticks", `time >= '${fromTime}' AND time < '${toTime}'`) / byKey,
      atMost: 2,
    },
  ];
}

const usageReport = resolve(import.meta.dirname, "usage-report.mjs");

/** Rows per second of the program's CPU time, its start included: it uses one core throughout. */
async function measurePipe(folder: string, path: string): Promise<number> {
  const names = Array.from({ length: SERIES_COUNT }, (_, at) => seriesName(at + 1));
  const usage = join(folder, "usage.json");
  const flags = ["--format", "ndjson", "--warehouse", path];
  const args = ["--import", usageReport, buildProgram(), "ticks", ...names, ...flags];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, BENCH_USAGE: usage },
  });
  child.stdout.resume();
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`mds-sync ticks exited with ${code}`);
  const { cpuSeconds } = JSON.parse(readFileSync(usage, "utf8")) as { cpuSeconds: number };
  return (SERIES_COUNT * TICKS_PER_SERIES) / cpuSeconds;
}
