import { silentLog } from "../../src/runtime/log.ts";
import { createServiceClient } from "../../src/service/client/client.ts";
import { Fault } from "../simulator/faults.ts";
import { startSimulator } from "../simulator/simulator.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { seededRandom } from "../support/seeded-random.ts";
import type { Figure } from "./figures.ts";

/** As many walks as the gap filler runs with the default concurrency. */
const WALKS = 12;
const CONCURRENCY = 8;
const MAX_REJECTED_SHARE = 0.05;

/** One situation of a bad network, and what the client must reach in it. */
interface Situation {
  readonly name: string;
  /** Beside a latency of 20 ms. */
  readonly faults: readonly Fault[];
  /** Virtual seconds; the first `settleSeconds` are for finding the limit. */
  readonly seconds: number;
  readonly settleSeconds?: number;
  /** Pages per second that would be perfect, given those without faults. */
  readonly reference: (clean: number) => number;
  /** Share of the reference. */
  readonly atLeast: number;
  readonly maxRejectedShare?: number;
}

const sameAsClean = (clean: number) => clean;

/** Requests that fail at random, with a status or a reset. */
const failing = (share: number, kind: "500" | "reset", atLeast: number): Situation => ({
  name: `${share * 100} % ${kind === "500" ? "answered 500" : "of the connections reset"}`,
  faults: [kind === "500" ? Fault.status(500, { p: share }) : Fault.reset({ p: share })],
  ...{ seconds: 10, reference: sameAsClean, atLeast },
});

const withinLimit = (rate: number) => ({
  ...{ reference: () => rate, atLeast: 0.8, maxRejectedShare: MAX_REJECTED_SHARE },
});

/** A limit of requests per second that answers 429 without `Retry-After`. */
const limited = (rate: number, seconds: number): Situation[] =>
  (["second", "sliding", "bucket"] as const).map((window) => ({
    name: `limit of ${rate}/s (${window})`,
    faults: [Fault.requestLimit(rate, { window })],
    ...{ seconds, settleSeconds: 30, ...withinLimit(rate) },
  }));

/** The limit changes after a minute; counted from 30 seconds later. */
const changing = (before: number, after: number, seconds: number): Situation => ({
  name: `limit of ${before}/s becomes ${after}/s`,
  faults: [Fault.requestLimit(before, { to: 60_000 }), Fault.requestLimit(after, { from: 60_000 })],
  ...{ seconds: 90 + seconds, settleSeconds: 90, ...withinLimit(after) },
});

/** Random 429s that ask for a pause of a second. The pauses leave the requests between two of them. */
const pausing = (share: number): Situation => ({
  name: `${share * 100} % answered 429 with Retry-After: 1`,
  faults: [Fault.status(429, { retryAfter: "seconds", wait: 1000, p: share })],
  ...{ seconds: 60, atLeast: 0.6 },
  reference: (clean) => (1 / share - 1) / (1 / share / clean + 1),
});

const overloaded = (above: number): Situation => ({
  name: `503 while more than ${above} are in flight`,
  faults: [Fault.overload(above)],
  ...{ seconds: 30, settleSeconds: 1, atLeast: 0.8 },
  reference: (clean) => (clean * above) / CONCURRENCY,
});

const situations = [
  ...[failing(0.17, "500", 0.75), failing(0.25, "500", 0.65), failing(0.5, "500", 0.35)],
  ...[failing(0.75, "500", 0.1), failing(0.25, "reset", 0.65), failing(0.5, "reset", 0.35)],
  ...[failing(0.75, "reset", 0.1), ...limited(1, 330), ...limited(10, 120), ...limited(200, 50)],
  ...[changing(10, 100, 30), changing(100, 10, 60), changing(1, 20, 30)],
  ...[pausing(0.05), pausing(0.1), overloaded(2)],
];

/** The real client against the simulator, in virtual time, relative to what would be perfect. */
export async function benchGoodput(): Promise<Figure[]> {
  const clean = await measureGoodput({ faults: [], seconds: 10 });
  const figures: Figure[] = [];
  for (const situation of situations) {
    const { name, atLeast, maxRejectedShare, reference } = situation;
    const { pagesPerSecond, rejectedShare } = await measureGoodput(situation);
    figures.push({ name, measured: pagesPerSecond / reference(clean.pagesPerSecond), atLeast });
    if (maxRejectedShare !== undefined)
      figures.push({ name: `${name}: answered 429`, measured: rejectedShare, atMost: maxRejectedShare });
  }
  return figures;
}

/** Fetches pages as the walks of a backfill do. */
async function measureGoodput(options: Pick<Situation, "faults" | "seconds" | "settleSeconds">) {
  const { faults, seconds, settleSeconds = 0 } = options;
  const clock = new ManualClock("2026-03-01T12:00:00.370Z");
  const simulator = await startSimulator({ clock, seed: 1, quirks: { compression: "none" } });
  const client = createServiceClient({
    ...{ baseUrl: simulator.baseUrl, authUrl: simulator.baseUrl, clientId: simulator.clientId },
    readSecret: async () => simulator.clientSecret,
    ...{ concurrency: CONCURRENCY, maxRequestsPerSecond: 0 },
    ...{ clock, random: seededRandom(1), log: silentLog, onEvent: () => {} },
  });
  const [asset] = simulator.universe.assets;
  const newest = Date.parse("2026-03-01T11:00:00Z");
  const stopped = new AbortController();
  let [next, pages] = [0, 0];
  const walk = async () => {
    while (!stopped.signal.aborted) {
      const timestamp = new Date(newest - next++ * 30_000).toISOString();
      const query = { indexType: "GWA", indexId: asset?.id, timestamp, size: 1 };
      const request = { endpoint: "/index-ticker", query, signal: stopped.signal };
      await client.request(request, async () => void pages++).catch(() => {});
    }
  };
  const count = async () => {
    await clock.sleep(settleSeconds * 1000);
    const [pagesBefore, requestsBefore] = [pages, simulator.requests.list.length];
    await clock.sleep((seconds - settleSeconds) * 1000);
    const counted = simulator.requests.list.slice(requestsBefore);
    const rejected = counted.filter(({ status }) => status === 429).length;
    return {
      pagesPerSecond: (pages - pagesBefore) / (seconds - settleSeconds),
      rejectedShare: rejected / Math.max(1, counted.length),
    };
  };
  try {
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    simulator.setFaults(Fault.latency(20), ...faults);
    const walks = Array.from({ length: WALKS }, walk);
    const result = await clock.runUntil(count());
    stopped.abort();
    await clock.runUntil(Promise.all(walks));
    return result;
  } finally {
    await client.close();
    await simulator.stop();
  }
}
