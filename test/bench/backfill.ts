import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BackfillRun, CONCURRENCY, runBackfill } from "./backfill-run.ts";
import { bareLoop } from "./bare-loop.ts";
import { type Figure, figureTable, median } from "./figures.ts";
import {
  PAGES_A_SLICE,
  type RecordedService,
  ROWS_A_PAGE,
  ROWS_A_SLICE,
  sliceEnds,
  startRecordedService,
} from "./recorded-offer.ts";

const ROUNDS = 3;
const SERIES = 8;
const SLICES = 24;
const LATENCY_MS = 50;
const MEBIBYTE = 2 ** 20;

const figureOf = (value: number) => Math.round(value).toLocaleString("en-US");

/** The nightly command end to end, against the bare loop on the same pages, in alternating rounds. */
export async function benchBackfill(print: (line: string) => void): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const service = await startRecordedService(SERIES, SLICES);
  try {
    const bodies = await plainBodies(service);
    const bare: number[] = [];
    const near: BackfillRun[] = [];
    const far: BackfillRun[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      bare.push(bareLoop(join(folder, `bare-${round}`), bodies).rowsASecond);
      near.push(await runBackfill(service, SERIES, SLICES));
      await service.setLatency(LATENCY_MS);
      far.push(await runBackfill(service, SERIES, SLICES));
      await service.setLatency(0);
    }
    const speed = (runs: readonly BackfillRun[]) => median(runs.map(({ rowsASecond }) => rowsASecond));
    const rowsARequest = ROWS_A_SLICE / PAGES_A_SLICE;
    const carried = (CONCURRENCY * rowsARequest * 1000) / LATENCY_MS;
    print(`${figureOf(near[0]?.rows ?? 0)} rows of ${SERIES} series, concurrency ${CONCURRENCY}`);
    print(`bare loop: ${figureOf(median(bare))} rows/s`);
    print(`backfill at 0 ms: ${figureOf(speed(near))} rows/s`);
    print(
      `backfill at ${LATENCY_MS} ms: ${figureOf(speed(far))} rows/s; ${CONCURRENCY} busy connections carry ${figureOf(carried)}`,
    );
    return [
      { name: "backfill at 0 ms, of the bare loop", measured: speed(near) / median(bare), atLeast: 0.7 },
      {
        name: `backfill at ${LATENCY_MS} ms, of what can be had`,
        measured: speed(far) / Math.min(carried, speed(near)),
        atLeast: 0.8,
      },
    ];
  } finally {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The same with many rows: what grows with them shows itself here. */
export async function benchEndurance(print: (line: string) => void): Promise<Figure[]> {
  const series = 36;
  const slices = 70;
  const service = await startRecordedService(series, slices);
  try {
    // The same number of series throughout, so that only the rows differ.
    const few = [await runBackfill(service, series, 4), await runBackfill(service, series, 4)];
    const many = await runBackfill(service, series, slices);
    for (const run of [...few, many]) {
      print(
        `${figureOf(run.rows)} rows in ${run.seconds.toFixed(1)} s: ${figureOf(run.rowsASecond)} rows/s, at most ${figureOf(run.peakBytes / MEBIBYTE)} MiB`,
      );
    }
    const cost = ({ seconds, rows }: BackfillRun) => seconds / rows;
    return [
      {
        // The promise is about 10M rows; what is flat holds it at twice as many.
        name: "largest resident set, 20M rows",
        measured: many.peakBytes / MEBIBYTE,
        atMost: 300,
        digits: 0,
        unit: "MiB",
      },
      {
        name: "cost of a row at 20M rows, of that at 1M",
        measured: cost(many) / Math.min(...few.map(cost)),
        atMost: 1.3,
      },
    ];
  } finally {
    await service.stop();
  }
}

/** All recorded pages as plain JSON: what the bare loop reads. */
async function plainBodies(service: RecordedService): Promise<Uint8Array[]> {
  const bodies: Uint8Array[] = [];
  for (const id of service.ids) {
    for (const end of sliceEnds(service)) {
      let place = `timestamp=${new Date(end).toISOString()}`;
      for (let page = 0; page < PAGES_A_SLICE; page++) {
        const url = `${service.baseUrl}/v3/index-ticker?indexId=${id}&size=${ROWS_A_PAGE}&${place}`;
        const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
        bodies.push(bytes);
        const tail = Buffer.from(bytes.subarray(-200)).toString();
        place = `startAfter=${/"nextId":"([^"]+)"\}$/.exec(tail)?.[1] ?? ""}`;
      }
    }
  }
  return bodies;
}

if (import.meta.main) {
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  const bench = process.argv[2] === "endurance" ? benchEndurance : benchBackfill;
  for (const line of figureTable(await bench(print))) print(line);
}
