import { describe, expect, it } from "vitest";
import { withSyncSession } from "../../src/cli/support/session.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { monitorStorage } from "../../src/daemon/storage-monitor.ts";
import { createBufferingLog, type LogEntry } from "../../src/runtime/log.ts";
import { ensureServiceTime } from "../../src/sync/context/context.ts";
import { StreamErrors } from "../../src/sync/context/problem-log.ts";
import { startBackfillHarness } from "../support/sync/backfill-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("the storage monitor", () => {
  it("G3: stores the new skew within a minute after a clock step, so that views are right again, and logs its begin and end", async () => {
    const entries: LogEntry[] = [];
    const { clock, env, path, query } = await startBackfillHarness();
    const loaded = loadSettings({ env, directory: temporaryFolder() });
    const skew = () =>
      Math.round(Number(query("SELECT clock_skew FROM warehouse_state")[0]?.clock_skew) / 1e6);
    const stopping = new AbortController().signal;
    const session = withSyncSession(
      loaded,
      { clock, stopping },
      createBufferingLog(entries),
      async ({ syncContext, reader, random }) => {
        const ending = new AbortController();
        const monitor = monitorStorage(
          { ...syncContext, signal: ending.signal },
          { path, reader, streamErrors: new StreamErrors(), hasFilled: () => false, onMeasured: () => {} },
        );
        await ensureServiceTime(syncContext, random);
        await clock.sleep(61_000);
        expect(skew()).toBe(0);
        clock.stepWallClock(7_200_000);
        await clock.sleep(61_000);
        expect(skew()).toBe(-7200);
        await clock.sleep(120_000);
        clock.stepWallClock(-7_200_000);
        await clock.sleep(61_000);
        expect(entries.filter(({ message }) => message.startsWith("clock"))).toEqual([
          { level: "warn", fields: { aheadSeconds: 7200 }, message: "clock off, service's clock is used" },
          { level: "info", fields: { aheadSeconds: 0 }, message: "clock agrees with the service's again" },
        ]);
        ending.abort();
        await monitor.catch(() => {});
      },
    );
    await clock.runUntil(session);
  });
});
