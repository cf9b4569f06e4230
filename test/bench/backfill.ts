import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, request } from "undici";
import { CONCURRENCY, runBackfill } from "./backfill-run.ts";
import { runBareLoop } from "./bare-loop.ts";
import { type Figure, median } from "./figures.ts";
import {
  PAGES_PER_SLICE,
  type RecordedService,
  ROWS_PER_PAGE,
  ROWS_PER_SLICE,
  sliceEnds,
  startRecordedService,
} from "./start-recorded-service.ts";
import { MAX_STOLEN_FRACTION, watchStolenTime } from "./stolen-time.ts";

const ROUNDS = 5;
/** A round from which the host took CPU time is repeated. After this many rounds, all count. */
const MAX_ROUNDS = 10;
const SERIES = 8;
const SLICES = 24;
const LATENCY_MS = 50;
const MEBIBYTE = 2 ** 20;

/** Rows a second, the memory of the backfill, and the fraction of the CPU time that the host took. */
interface Round {
  readonly bare: number;
  readonly near: number;
  readonly onlyFetched: number;
  readonly far: number;
  readonly peakBytes: number;
  readonly stolen: number;
}

/** `mds-sync backfill` end to end beside the bare loop on the same pages, in alternating rounds. */
export async function benchBackfill(): Promise<Figure[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "mds-bench-"));
  const service = await startRecordedService(SERIES, SLICES);
  try {
    const { bodies, urls } = await fetchPlainBodies(service);
    // The service then has cut every page that is requested below.
    await runBackfill(service);
    const rowsARequest = ROWS_PER_SLICE / PAGES_PER_SLICE;
    const rounds: Round[] = [];
    const isUndisturbed = ({ stolen }: Round) => stolen <= MAX_STOLEN_FRACTION;
    while (rounds.length < MAX_ROUNDS && rounds.filter(isUndisturbed).length < ROUNDS) {
      const readStolenFraction = watchStolenTime();
      const bare = runBareLoop(join(folder.path, `bare-${rounds.length}`), bodies);
      const near = await runBackfill(service);
      await service.setLatency(LATENCY_MS);
      const onlyFetched = await fetchOnly(urls, bodies.length * rowsARequest);
      const far = await runBackfill(service);
      await service.setLatency(0);
      const peakBytes = Math.max(near.peakBytes, far.peakBytes);
      const speeds = { bare, near: near.rowsPerSecond, onlyFetched, far: far.rowsPerSecond };
      rounds.push({ ...speeds, peakBytes, stolen: readStolenFraction() });
    }
    const undisturbed = rounds.filter(isUndisturbed);
    const counted = undisturbed.length < ROUNDS ? rounds : undisturbed;
    // Within a round, because the machine's own speed changes from one round to the next.
    const ratio = (of: (round: Round) => number) => median(counted.map(of));
    return [
      {
        name: "backfill at 0 ms, relative to the bare loop",
        measured: ratio(({ near, bare }) => near / bare),
        atLeast: 1.2,
      },
      {
        name: `backfill at ${LATENCY_MS} ms, relative to only fetching`,
        measured: ratio(({ far, onlyFetched, near }) => far / Math.min(onlyFetched, near)),
        atLeast: 0.85,
      },
      {
        name: "largest resident set",
        measured: Math.max(...rounds.map(({ peakBytes }) => peakBytes)) / MEBIBYTE,
        atMost: 300,
        digits: 0,
        unit: "MiB",
      },
    ];
  } finally {
    await service.stop();
  }
}

/** All recorded pages as uncompressed JSON, for the bare loop, and their addresses. */
async function fetchPlainBodies(
  service: RecordedService,
): Promise<{ readonly bodies: readonly Uint8Array[]; readonly urls: readonly string[] }> {
  const bodies: Uint8Array[] = [];
  const urls: string[] = [];
  for (const id of service.ids) {
    for (const end of sliceEnds(service)) {
      let position = `timestamp=${new Date(end).toISOString()}`;
      for (let page = 0; page < PAGES_PER_SLICE; page++) {
        const url = `${service.baseUrl}/v3/index-ticker?indexId=${id}&size=${ROWS_PER_PAGE}&${position}`;
        const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
        bodies.push(bytes);
        urls.push(url);
        const tail = Buffer.from(bytes.subarray(-200)).toString();
        position = `startAfter=${/"nextId":"([^"]+)"\}$/.exec(tail)?.[1] ?? ""}`;
      }
    }
  }
  return { bodies, urls };
}

/** Rows a second of as many connections as the backfill has, which request the same pages and discard them. */
async function fetchOnly(urls: readonly string[], rows: number): Promise<number> {
  const agent = new Agent({ connections: CONCURRENCY });
  const remaining = [...urls];
  const startedAt = performance.now();
  const fetchRemaining = async () => {
    for (let url = remaining.pop(); url !== undefined; url = remaining.pop()) {
      const { body } = await request(url, { dispatcher: agent, headers: { "accept-encoding": "gzip" } });
      await body.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, fetchRemaining));
  const seconds = (performance.now() - startedAt) / 1000;
  await agent.close();
  return rows / seconds;
}
