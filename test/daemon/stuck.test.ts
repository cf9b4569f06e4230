import type { Worker as ThreadWorker, Worker } from "node:worker_threads";
import { describe, expect, it, vi } from "vitest";
import { readLastEnd } from "../../src/warehouse/last-end.ts";
import { daemonUnderTest } from "./daemon-under-test.ts";

const flags: Int32Array[] = [];

/** The ingest thread is replaced by one that gets stuck on a sign; all other threads are as they are. */
vi.mock("node:worker_threads", async (original) => {
  const threads = await original<{ Worker: typeof ThreadWorker }>();
  class Stuck extends threads.Worker {
    constructor(url: URL, options: ConstructorParameters<typeof Worker>[1]) {
      const isIngest = String(url).endsWith("ingest-worker.ts");
      if (isIngest) flags.push(options?.workerData as Int32Array);
      super(isIngest ? new URL("./stuck-ingest-worker.ts", import.meta.url) : url, options);
    }
  }
  return { ...threads, Worker: Stuck };
});

const settings = `
sync:
  ohlcv: false
  intraday: { GWA: [BTC], MWA: none, LX: none, days: 1 }
  exchangeTickers: false
  marketCap: false
  derivatives: false
`;

describe("an ingest thread that is stuck while the event loop lives", () => {
  it("is told by /healthz and /metrics within two minutes, and does not keep the daemon from stopping", async () => {
    const daemon = await daemonUnderTest({ settings });
    const running = await daemon.start();
    expect((await running.get("/healthz")).status).toBe(200);
    Atomics.store(flags[0] as Int32Array, 0, 2);
    await daemon.clock.advance(120_000);
    const { status, text } = await running.get("/healthz");
    expect(status).toBe(503);
    expect(text).toMatch(/^the ingest thread has not answered for \d+ seconds: nothing is written\n$/);
    expect(await running.metric("healthy")).toBe(0);

    const stopped = running.stop();
    let isOver = false;
    const over = stopped.finally(() => {
      isOver = true;
    });
    while (!isOver) await daemon.clock.advance(50);
    expect(await over).toBeLessThan(5_000);
    // Not closed in order, and so it is checked at the next start.
    expect(readLastEnd(daemon.path)).toEqual({ kind: "unclean" });
  }, 120_000);
});
