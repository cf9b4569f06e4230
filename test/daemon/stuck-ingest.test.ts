import type { Worker as ThreadWorker, Worker } from "node:worker_threads";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { readLastEnd } from "../../src/warehouse/sqlite/shutdown-marker.ts";
import { daemonUnderTest } from "../support/daemon/daemon-harness.ts";
import { serviceManager } from "../support/fake-systemd-notify.ts";

const flags: Int32Array[] = [];

/** The ingest thread is replaced by one that gets stuck on a sign; all other threads are as they are. */
vi.mock("node:worker_threads", async (original) => {
  const threads = await original<{ Worker: typeof ThreadWorker }>();
  class Stuck extends threads.Worker {
    constructor(url: URL, options: ConstructorParameters<typeof Worker>[1]) {
      const isIngest = String(url).endsWith("ingest-worker.ts");
      if (isIngest) flags.push(options?.workerData as Int32Array);
      super(isIngest ? new URL("../support/daemon/stuck-ingest-worker.ts", import.meta.url) : url, options);
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
  it("is told by /healthz and /metrics within two minutes, feeds no watchdog, and does not keep the daemon from stopping", async () => {
    const daemon = await daemonUnderTest({ settings });
    const manager = serviceManager(daemon.folder);
    for (const [name, value] of Object.entries(manager.env)) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    const running = await daemon.start();
    await running.until(() => manager.told().filter((line) => line === "WATCHDOG=1").length > 2);
    expect((await running.get("/healthz")).status).toBe(200);
    Atomics.store(flags[0] as Int32Array, 0, 2);
    await daemon.clock.advance(120_000);
    const { status, text } = await running.get("/healthz");
    expect(status).toBe(503);
    expect(text).toMatch(/^the ingest thread has not answered for \d+ seconds: nothing is written\n$/);
    expect(await running.metric("healthy")).toBe(0);
    // The event loop lives on for hours, and the service manager is not told that all is well.
    const fed = () => manager.told().filter((line) => line === "WATCHDOG=1").length;
    const fedUntilNow = fed();
    await daemon.clock.advance(3_600_000);

    const asked = daemon.clock.monotonic();
    let endedAt: number | undefined;
    void running.done.finally(() => {
      endedAt = daemon.clock.monotonic();
    });
    const stopped = running.stop();
    while (endedAt === undefined) await daemon.clock.advance(50);
    await stopped;
    expect(endedAt - asked).toBeLessThan(5_000);
    await vi.waitUntil(() => manager.told().includes("STOPPING=1"), 10_000);
    expect(fed() - fedUntilNow).toBeLessThan(2);
    // Not closed in order, and so it is checked at the next start.
    expect(readLastEnd(daemon.path)).toEqual({ kind: "unclean" });
  }, 120_000);
});
