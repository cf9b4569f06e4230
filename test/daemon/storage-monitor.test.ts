import { chmodSync } from "node:fs";
import { dirname } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { withSyncSession } from "../../src/cli/support/session.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { DaemonTelemetry } from "../../src/daemon/daemon-telemetry.ts";
import { monitorStorage } from "../../src/daemon/storage-monitor.ts";
import { createForwardingLog, type LogEntry, silentLog } from "../../src/runtime/log.ts";
import { ensureServiceTime } from "../../src/sync/context/context.ts";
import { startBackfillHarness } from "../support/sync/backfill-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Also takes the rights of root away, which permissions do not bind, until the returned function is called. */
function makeReadOnly(folder: string): () => void {
  const restore = () => {
    if (process.getuid?.() === 0) process.seteuid?.(0);
    chmodSync(folder, 0o755);
  };
  onTestFinished(restore);
  chmodSync(folder, 0o555);
  if (process.getuid?.() === 0) process.seteuid?.(65_534);
  return restore;
}

it("G3, F24: the storage monitor notices within a minute a clock step, which the views need, and a folder that became read-only", async () => {
  const entries: LogEntry[] = [];
  const messages = (start: string) => entries.filter(({ message }) => message.startsWith(start));
  const { clock, env, path, query } = await startBackfillHarness();
  const loaded = loadSettings({ env, directory: temporaryFolder() });
  const skew = () => Math.round(Number(query("SELECT clock_skew FROM warehouse_state")[0]?.clock_skew) / 1e6);
  const stopping = new AbortController().signal;
  const session = withSyncSession(
    loaded,
    { clock, stopping },
    createForwardingLog((entry) => entries.push(entry)),
    async (syncContext) => {
      const ending = new AbortController();
      const telemetry = new DaemonTelemetry({ clock, version: "0.1.0", log: silentLog });
      const monitored = { ...syncContext, signal: ending.signal };
      const monitor = monitorStorage(monitored, { path, telemetry, hasFilled: () => false });
      await ensureServiceTime(syncContext);
      await clock.sleep(61_000);
      expect(skew()).toBe(0);
      clock.stepWallClock(7_200_000);
      await clock.sleep(61_000);
      expect(skew()).toBe(-7200);

      // F24: the folder becomes read-only while its files are open, and writable again.
      const restoreFolder = makeReadOnly(dirname(path));
      await clock.sleep(181_000);
      restoreFolder();
      expect(telemetry.recentErrors.list()).toMatchObject([
        {
          ...{ where: "storage", code: "db_not_writable", count: 1 },
          message: expect.stringContaining(`no file can be created in ${dirname(path)} (EACCES): `),
        },
      ]);
      await clock.sleep(61_000);
      expect(messages("storage")).toMatchObject([{ message: "storage recovered" }]);

      await clock.sleep(120_000);
      clock.stepWallClock(-7_200_000);
      await clock.sleep(61_000);
      expect(messages("clock")).toEqual([
        { level: "warn", fields: { aheadSeconds: 7200 }, message: "clock off, service's clock is used" },
        { level: "info", fields: { aheadSeconds: 0 }, message: "clock agrees with the service's again" },
      ]);
      ending.abort();
      await monitor.catch(() => {});
    },
  );
  await clock.runUntil(session);
});
