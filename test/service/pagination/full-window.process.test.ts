import { once } from "node:events";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { scanTickPage } from "../../../src/ingest/decode/fast-tick-scanner.ts";
import { decodeBody, type ResponseBody } from "../../../src/model/response-body.ts";
import { walkHistoryPages } from "../../../src/service/pagination/history-walk.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient } from "../../support/service/client-harness.ts";

const day = 86_400_000;
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

describe("a walk over a month of one index", () => {
  it("reads 90,000 rows in 45 requests and constant memory", async () => {
    worker = new Worker(new URL("../../support/service/simulator-thread.ts", import.meta.url), {
      workerData: { now },
    });
    const [{ baseUrl, indexId, clientSecret, ...more }] = (await once(worker, "message")) as [Started];
    const clock = new ManualClock(now);
    const { client } = createTestClient(baseUrl, clock, { ...more, readSecret: async () => clientSecret });
    const from = (now - 31 * day) * 1000;
    const filters = { indexType: "GWA", indexId };
    const walk = { endpoint: "/index-ticker", filters, from, until: now * 1000 } as const;
    const seen = { rows: 0, ordered: true, previous: Number.POSITIVE_INFINITY };
    const read = async (body: ResponseBody) => {
      const page = scanTickPage(decodeBody(body));
      const timestamps = page?.columns.ts ?? [];
      seen.rows += timestamps.length;
      for (const ts of timestamps) {
        seen.ordered &&= ts < seen.previous;
        seen.previous = ts;
      }
      const [newest, oldest] = [timestamps.at(0), timestamps.at(-1)];
      return { rows: timestamps.length, nextId: page?.nextId, oldest, newest, isDescending: true };
    };
    const heap = new Map<number, number>();
    let end: string | undefined;
    const run = async () => {
      for await (const { position } of walkHistoryPages(client, walk, read)) {
        end = position.end;
        if (position.number === 10 || position.number === 40) heap.set(position.number, liveBytes());
      }
    };
    await clock.runUntil(run());
    expect(end).toBe("reached");
    expect(seen).toMatchObject({ rows: 90_000, ordered: true });
    worker.postMessage("how many?");
    const [{ requestCount }] = (await once(worker, "message")) as [{ requestCount: number }];
    expect(requestCount).toBe(45);
    const growth = (heap.get(40) ?? Number.NaN) - (heap.get(10) ?? Number.NaN);
    // 30 pages in memory would take at least 1.7 MiB.
    expect(growth).toBeLessThan(1.5 * 1024 * 1024);
  });
});

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** The memory in use after a full garbage collection. */
function liveBytes(): number {
  // Finalizers that release response bodies run after the first collection.
  collectGarbage();
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
