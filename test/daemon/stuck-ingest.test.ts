import { resolve } from "node:path";
import { expect, it, vi } from "vitest";
import type { IngestWorkerData } from "../../src/ingest/thread/messages.ts";
import { type StartWorker, startWorker } from "../../src/runtime/thread.ts";
import { readLastShutdown } from "../../src/warehouse/sqlite/shutdown-marker.ts";
import { createDaemonHarness } from "../support/daemon/daemon-harness.ts";
import { fakeSystemdNotify } from "../support/fake-systemd-notify.ts";
import { onlyTicks } from "../support/sync/backfill-harness.ts";
import { waitUntil } from "../support/wait-until.ts";

const flags: Int32Array[] = [];

/** Takes the place of the ingest thread, and hangs on request; the scan thread stays as it is. */
const startStuckWorker: StartWorker = (file, options) => {
  if (!file.endsWith("ingest-worker.ts")) return startWorker(file, options);
  flags.push((options.workerData as IngestWorkerData).stopFlag);
  return startWorker(resolve(import.meta.dirname, "../support/daemon/stuck-ingest-worker.ts"), options);
};

/** Half a day of records. */
const simulator = { quirks: { listed: { perMille: 1000, on: "2026-03-01" } } };
const settings = onlyTicks("[BTC]");

it("G13: an ingest thread that hangs while the event loop runs shows in /healthz and /metrics within two minutes, stops the watchdog pings, and does not block the stop", async () => {
  const daemon = await createDaemonHarness({ settings, simulator, startWorker: startStuckWorker });
  const manager = fakeSystemdNotify(daemon.folder);
  for (const [name, value] of Object.entries(manager.env)) vi.stubEnv(name, value);
  const running = await daemon.startFilled();
  await running.runUntil(() => manager.messages().filter((line) => line === "WATCHDOG=1").length > 2);
  expect((await running.getPage("/healthz")).status).toBe(200);
  Atomics.store(flags[0] as Int32Array, 0, 2);
  await daemon.clock.advance(120_000);
  const { status, text } = await running.getPage("/healthz");
  expect(status).toBe(503);
  expect(text).toMatch(/^the ingest thread has not answered for \d+ seconds: nothing is written\n$/);
  expect(await running.readMetric("healthy")).toBe(0);
  // The event loop runs on for an hour, and the service manager gets no watchdog ping.
  const pings = () => manager.messages().filter((line) => line === "WATCHDOG=1").length;
  const pingsBefore = pings();
  await daemon.clock.advance(3_600_000);

  const stoppedAt = daemon.clock.monotonic();
  let endedAt: number | undefined;
  void running.done.finally(() => {
    endedAt = daemon.clock.monotonic();
  });
  const stopped = running.stop();
  while (endedAt === undefined) await daemon.clock.advance(50);
  await stopped;
  expect(endedAt - stoppedAt).toBeLessThan(5_000);
  await waitUntil(() => manager.messages().includes("STOPPING=1"));
  expect(pings() - pingsBefore).toBeLessThan(2);
  // An unclean end makes the next start check the file.
  expect(readLastShutdown(daemon.path)).toEqual({ kind: "unclean" });
});
