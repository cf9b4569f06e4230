import { once } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { walkBackwards } from "../../../src/service/pagination/history-walk.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf } from "../../support/service/client-harness.ts";
import { readTicks } from "../../support/service/read-ticks.ts";

const day = 86_400_000;
/** Between two ticks, so that the window holds exactly 576,000 of them. */
const now = Date.parse("2026-03-01T12:00:07Z");
let worker: Worker | undefined;
afterEach(async () => {
  await worker?.terminate();
});

interface Started {
  baseUrl: string;
  wsUrl: string;
  clientId: string;
  clientSecret: string;
  indexId: string;
}

describe("a walk over the whole window of one index", () => {
  it("reads 576,000 rows in at most 289 requests and constant memory", async () => {
    worker = new Worker(new URL("../../support/service/simulator-thread.ts", import.meta.url), {
      workerData: { now },
    });
    const [{ baseUrl, indexId, clientSecret, ...more }] = (await once(worker, "message")) as [Started];
    const clock = new TurnedClock(now);
    const { client } = clientOf(baseUrl, clock, { ...more, readSecret: async () => clientSecret });
    const from = (now - 200 * day) * 1000;
    const filters = { indexType: "GWA", indexId };
    const walk = { endpoint: "/index-ticker", filters, from, until: now * 1000 } as const;
    const seen = { rows: 0, ordered: true, previous: Number.POSITIVE_INFINITY };
    const read = readTicks(indexId, (moment) => {
      seen.rows++;
      seen.ordered &&= moment < seen.previous;
      seen.previous = moment;
    });
    const heap = new Map<number, number>();
    let end: string | undefined;
    const run = async () => {
      for await (const { position } of walkBackwards(client, walk, read)) {
        end = position.end;
        if (position.number === 40 || position.number === 280) heap.set(position.number, liveBytes());
      }
    };
    await clock.runUntil(run());
    expect({ end, rows: seen.rows, ordered: seen.ordered }).toEqual({
      end: "served_out",
      rows: 576_000,
      ordered: true,
    });
    worker.postMessage("how many?");
    const [{ asked }] = (await once(worker, "message")) as [{ asked: number }];
    expect(asked).toBe(289);
    const growth = (heap.get(280) ?? Number.NaN) - (heap.get(40) ?? Number.NaN);
    // 240 pages kept in any form would be 14 MiB at the very least.
    expect(growth).toBeLessThan(10 * 1024 * 1024);
  }, 60_000);
});

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** What this thread still holds on to after a full collection. */
function liveBytes(): number {
  // The bodies of finished answers are let go by finalizers that run after the first collection.
  collect();
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
