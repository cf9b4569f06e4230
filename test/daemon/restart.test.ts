import { closeSync, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { readLastCrash } from "../../src/warehouse/sqlite/crash-marker.ts";
import { readLastShutdown, writeShutdownMarker } from "../../src/warehouse/sqlite/shutdown-marker.ts";
import { Fault } from "../simulator/faults.ts";
import { createDaemonHarness } from "../support/daemon/daemon-harness.ts";
import { fakeSystemdNotify } from "../support/fake-systemd-notify.ts";
import { onlyTicks } from "../support/sync/backfill-harness.ts";
import { waitUntil } from "../support/wait-until.ts";
import { createEarlierWarehouse } from "../support/warehouse/earlier-warehouse.ts";
import { changeFile } from "../support/warehouse/warehouse-file.ts";

const HOUR = 3_600_000;
/** Few ticks: each takes the time of a test. */
const simulator = { refreshSeconds: 120 };
const only = (assets: string, exchanges: string) => `
service: { refreshSeconds: 120 }
${onlyTicks(`[${assets}]`, { exchangeTickers: exchanges ? `{ exchanges: [${exchanges}], markets: [BTC/USD] }` : "false" })}`;

const targets = `SELECT s.name, w.from_ts AS "from", w.to_ts AS "to" FROM targets w JOIN series s USING (series)
  WHERE w.stream = 'index_ticks' ORDER BY s.name, w.from_ts`;
const exchangeTargets = `SELECT s.index_id AS id, w.to_ts AS "to" FROM targets w JOIN series s USING (series)
  WHERE w.stream = 'exchange_ticks' ORDER BY w.to_ts IS NULL`;
const rowsOf = (name: string) =>
  `SELECT count(*) AS n, max(ts) AS newest FROM index_ticks WHERE name = '${name}'`;

describe("a daemon that starts on an existing warehouse", () => {
  it("G9: ends deselected targets at the start, follows new ones, and resumes reselected ones", async () => {
    const daemon = await createDaemonHarness({ settings: only("BTC, ETH", "Kraken, Binance"), simulator });
    const { clock, query } = daemon;
    await (await daemon.startFilled()).stop();
    const [fetched] = query(rowsOf("ETH"));
    expect(query(exchangeTargets)).toEqual([
      expect.objectContaining({ to: null }),
      expect.objectContaining({ to: null }),
    ]);

    daemon.configure(only("BTC, SOL", "Kraken"));
    await clock.advance(2 * HOUR);
    const second = await daemon.startFilled();
    await second.runUntil(() => query(exchangeTargets).filter(({ to }) => to === null).length === 1);
    await second.stop();
    const after = query(targets);
    expect(after.map(({ name, to }) => [name, to === null])).toEqual([
      ["BTC", true],
      ["ETH", false],
      ["SOL", true],
    ]);
    // Nothing is fetched of the time in between: the target is what is proven.
    const ended = Number(after[1]?.to);
    expect(query("SELECT max(to_ts) AS ended FROM coverage WHERE name = 'ETH'")).toEqual([{ ended }]);
    const [eth] = query(rowsOf("ETH"));
    expect(eth).toEqual(fetched);
    daemon.expectMatchesService();

    daemon.configure(only("ETH", ""));
    await clock.advance(26 * HOUR);
    const third = await daemon.startFilled();
    await third.runUntil(() => query(exchangeTargets).every(({ to }) => to !== null));
    await third.stop();
    // The new target starts one day back; the first target still ends where it ended, with no target in between.
    expect(query(targets).filter(({ name }) => name === "ETH")).toEqual([
      { name: "ETH", from: after[1]?.from, to: ended },
      { name: "ETH", from: expect.any(Number), to: null },
    ]);
    expect(Number(query(rowsOf("ETH"))[0]?.n)).toBeGreaterThan(Number(eth?.n) + 500);
    expect(query(rowsOf("SOL"))[0]?.n).toBeGreaterThan(500);
    daemon.expectMatchesService();
  });

  it("F15: on an old copy fetches what the copy lacks, and matches the service in the end", async () => {
    const daemon = await createDaemonHarness({ settings: only("BTC, ETH", "Kraken"), simulator });
    const { clock, query, path, folder } = daemon;
    const first = await daemon.startFilled();
    const copy = join(folder, "copy.sqlite");
    // As `mds-sync backup` does: a consistent copy while the daemon writes.
    changeFile(path, `VACUUM INTO '${copy}'`);
    const until = clock.monotonic() + HOUR / 2;
    await first.runUntil(() => clock.monotonic() > until);
    await first.stop();
    const [whole] = query(rowsOf("BTC"));

    const second = await daemon.startFilled(copy);
    await second.stop();
    daemon.expectMatchesService(copy);
    const [restored] = query(rowsOf("BTC"), copy);
    expect(Number(restored?.n)).toBeGreaterThanOrEqual(Number(whole?.n));
    // What can no longer be fetched shows as lost.
    const lost = query(
      "SELECT state, reason, to_ts - from_ts AS span FROM gaps WHERE stream = 'exchange_ticks'",
      copy,
    );
    expect(lost.some(({ state, span }) => state === "lost" && Number(span) > 0.45 * HOUR * 1000)).toBe(true);
  });

  it("F14, F11: tells of an upgrade before and after it, and copies a file that is deleted; the service manager knows", async () => {
    const daemon = await createDaemonHarness({ settings: only("BTC", ""), simulator });
    const manager = fakeSystemdNotify(daemon.folder);
    for (const [name, value] of Object.entries(manager.env)) vi.stubEnv(name, value);
    createEarlierWarehouse(daemon.path);
    // Its data is not of the simulator, which would refuse it.
    daemon.simulator.setFaults(Fault.stall());
    const running = await daemon.startServing();
    await running.runUntil(() => manager.messages().includes("READY=1"));
    const text = "from 19 to 26: 1 MB, about 1 s";
    expect(daemon.logged.filter(({ message }) => message.includes("upgrad"))).toEqual([
      { level: "warn", message: "upgrading warehouse", fields: { upgrade: text } },
      { level: "warn", message: "warehouse upgraded", fields: { seconds: expect.any(Number) } },
    ]);
    await waitUntil(() => manager.messages().includes(`STATUS=upgrading the warehouse ${text}`));
    await waitUntil(() => manager.messages().some((line) => /^EXTEND_TIMEOUT_USEC=\d+$/.test(line)));

    rmSync(daemon.path);
    await expect(daemon.clock.runUntil(running.done)).rejects.toMatchObject({
      code: "db_replaced",
      remedy: expect.stringContaining("`mds-sync restore "),
    });
    expect(daemon.logged).toContainEqual(
      expect.objectContaining({ message: "warehouse file gone, copying it" }),
    );
    expect(readdirSync(daemon.folder).filter((name) => /\.aside-.*Z$/.test(name))).toHaveLength(1);
    // The copy of a large file takes longer than the watchdog waits.
    await waitUntil(() => manager.messages().some((line) => line.startsWith("WATCHDOG_USEC=")));
  });

  it("F10: checks a large file in the background after an unclean end; the next start quarantines a damaged one", async () => {
    const daemon = await createDaemonHarness({ settings: only("BTC", ""), simulator });
    const { path, folder, clock } = daemon;
    await (await daemon.startFilled()).stop();
    changeFile(path, "CREATE TABLE ballast (bytes BLOB); INSERT INTO ballast VALUES (zeroblob(80000000))");
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(4, 255), 0, 4, 10_000 * 4096);
    closeSync(file);

    const second = await daemon.startFilled();
    expect((await second.getPage("/readyz")).status).toBe(200);
    await expect(clock.runUntil(second.done)).rejects.toMatchObject({ code: "db_corrupt" });
    const third = await daemon.startFilled();
    // This daemon reports what ended the previous one, and `status` shows it.
    const status = JSON.parse((await third.getPage("/api/daemon")).text) as { errors: unknown[] };
    const line = expect.stringContaining("is damaged");
    expect(status.errors).toContainEqual(
      expect.objectContaining({ where: "daemon", code: "db_corrupt", message: line }),
    );
    expect(JSON.parse((await third.getPage("/api/status")).text)).toMatchObject({
      last_crash: { code: "db_corrupt", line },
    });
    // Node emits this event for an uncaught exception, before the process ends.
    (process as NodeJS.EventEmitter).emit("uncaughtExceptionMonitor", new Error("thrown at\n random"));
    expect(readLastCrash(path)).toMatchObject({ code: "unexpected", line: "Error: thrown at random" });
    await third.stop();
    expect(readdirSync(folder).filter((name) => /\.aside-.*Z$/.test(name))).toHaveLength(1);
    daemon.expectMatchesService();

    // Damage that a reader finds in a cleanly closed file also makes the next start check the file.
    const [{ root } = {}] = daemon.query(
      "SELECT rootpage AS root FROM sqlite_master WHERE name = 'job_runs'",
    );
    const rotten = openSync(path, "r+");
    writeSync(rotten, Buffer.alloc(4096, 255), 0, 4096, (Number(root) - 1) * 4096);
    closeSync(rotten);
    writeShutdownMarker(path, "clean");
    await expect(daemon.startFilled()).rejects.toMatchObject({
      code: "db_corrupt",
      remedy: expect.stringContaining("restart"),
    });
    expect(readLastShutdown(path)).toEqual({ kind: "suspect" });
  });
});
