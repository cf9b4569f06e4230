import { describe, expect, it } from "vitest";
import { withSyncSession } from "../../src/cli/support/session.ts";
import { loadSettings } from "../../src/config/load-settings.ts";
import { lookAfterStorage } from "../../src/daemon/storage-monitor.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { learnServiceTime } from "../../src/sync/context/context.ts";
import { StreamNotes } from "../../src/sync/context/problem-log.ts";
import { startEngine } from "../support/sync/backfill-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("the rounds of each minute", () => {
  it("G3: note that this machine's clock was stepped, so that views are right again within a minute", async () => {
    const { clock, env, path, query } = await startEngine();
    const loaded = loadSettings({ env, directory: temporaryFolder() });
    const skew = () =>
      Math.round(Number(query("SELECT clock_skew FROM warehouse_state")[0]?.clock_skew) / 1e6);
    const stopping = new AbortController().signal;
    const session = withSyncSession(
      loaded,
      { clock, stopping },
      silentLog,
      async ({ intake, reader, random }) => {
        const ending = new AbortController();
        const rounds = lookAfterStorage(
          { ...intake, signal: ending.signal },
          { path, reader, notes: new StreamNotes(), isFilled: () => false, measured: () => {} },
        );
        await learnServiceTime(intake, random);
        await clock.sleep(61_000);
        expect(skew()).toBe(0);
        clock.stepWall(7_200_000);
        await clock.sleep(61_000);
        expect(skew()).toBe(-7200);
        ending.abort();
        await rounds.catch(() => {});
      },
    );
    await clock.runUntil(session);
  });
});
