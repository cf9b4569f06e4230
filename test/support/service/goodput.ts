import { silentLog } from "../../../src/runtime/log.ts";
import { createServiceClient } from "../../../src/service/client/client.ts";
import { Fault } from "../../simulator/faults.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { ManualClock } from "../manual-clock.ts";
import { seededRandom } from "../seeded-random.ts";

/** As many walks as the gap filler runs with the default concurrency. */
const WALKS = 12;
export const CONCURRENCY = 8;
const LATENCY = Fault.latency(20);

export interface GoodputOptions {
  /** Beside the latency. */
  readonly faults: readonly Fault[];
  /** Virtual seconds to run; `fromSeconds` of them are not counted. */
  readonly seconds: number;
  readonly fromSeconds?: number;
  readonly concurrency?: number;
  readonly seed: number;
}

export interface Goodput {
  /** Pages received per virtual second. */
  readonly pagesPerSecond: number;
  /** Requests that the service answered with 429, of all. */
  readonly rejectedShare: number;
  readonly requests: number;
}

/** Fetches pages from the simulator with the real client, in virtual time, as the walks of a backfill do. */
export async function measureGoodput(options: GoodputOptions): Promise<Goodput> {
  const { faults, seconds, fromSeconds = 0, concurrency = CONCURRENCY, seed } = options;
  const clock = new ManualClock("2026-03-01T12:00:00.370Z");
  const simulator = await startSimulator({ clock, seed, quirks: { compression: "none" } });
  const client = createTestedClient(simulator, clock, concurrency, seed);
  const [asset] = simulator.universe.assets;
  const newest = Date.parse("2026-03-01T11:00:00Z");
  const stopped = new AbortController();
  const { signal } = stopped;
  let next = 0;
  let pages = 0;
  const walk = async () => {
    while (!signal.aborted) {
      const timestamp = new Date(newest - next++ * 30_000).toISOString();
      const query = { indexType: "GWA", indexId: asset?.id, timestamp, size: 1 };
      const request = { endpoint: "/index-ticker", query, signal };
      await client.request(request, async () => void pages++).catch(() => {});
    }
  };
  try {
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    simulator.setFaults(LATENCY, ...faults);
    const walks = Array.from({ length: WALKS }, walk);
    const run = async (): Promise<Goodput> => {
      await clock.sleep(fromSeconds * 1000);
      const pagesBefore = pages;
      const requestsBefore = simulator.requests.list.length;
      await clock.sleep((seconds - fromSeconds) * 1000);
      const counted = simulator.requests.list.slice(requestsBefore);
      const rejected = counted.filter(({ status }) => status === 429).length;
      return {
        pagesPerSecond: (pages - pagesBefore) / (seconds - fromSeconds),
        rejectedShare: rejected / Math.max(1, counted.length),
        requests: counted.length,
      };
    };
    const result = await clock.runUntil(run());
    stopped.abort();
    await clock.runUntil(Promise.all(walks));
    return result;
  } finally {
    await client.close();
    await simulator.stop();
  }
}

function createTestedClient(simulator: Simulator, clock: ManualClock, concurrency: number, seed: number) {
  return createServiceClient({
    baseUrl: simulator.baseUrl,
    authUrl: simulator.baseUrl,
    clientId: simulator.clientId,
    readSecret: async () => simulator.clientSecret,
    concurrency,
    maxRequestsPerSecond: 0,
    clock,
    random: seededRandom(seed),
    log: silentLog,
    onEvent: () => {},
  });
}
