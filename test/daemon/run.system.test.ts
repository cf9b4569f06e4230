import { closeSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { readLastCrash } from "../../src/warehouse/sqlite/crash-marker.ts";
import { readLastShutdown } from "../../src/warehouse/sqlite/shutdown-marker.ts";
import { Fault } from "../simulator/faults.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { installDaemon } from "../support/daemon/installed-daemon.ts";
import { fakeSystemdNotify } from "../support/fake-systemd-notify.ts";
import { createFullPipe } from "../support/full-pipe.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";
import { copyEmptyWarehouse } from "../support/warehouse/empty-warehouse.ts";

/** `refreshSeconds`: few if the test waits for live ticks, many if it needs only a few rows. */
const install = ({ refreshSeconds = 30, days = 1, faults = [] as Fault[] } = {}) => {
  const ohlcv = "{ GWA: [BTC], MWA: none, LX: none }";
  const intraday = `{ GWA: [BTC, ETH], MWA: none, LX: none, days: ${days} }`;
  const marketCap = "{ every: 5m }";
  return installDaemon({ refreshSeconds, faults, streams: { ohlcv, intraday, marketCap } });
};

type Installation = Awaited<ReturnType<typeof install>>;

/** Whether the daemon has stored a row; the warehouse may not exist yet. */
function hasRows({ query }: Installation): boolean {
  try {
    return query("SELECT 1 FROM index_ticks LIMIT 1").length > 0;
  } catch {
    return false;
  }
}

describe("mds-sync run", () => {
  it("becomes ready, fills, follows the live feed, serves its status, and stops cleanly within five seconds", async () => {
    const installation = await install({ refreshSeconds: 5 });
    const { query, folder } = installation;
    const manager = fakeSystemdNotify(folder);
    const daemon = installation.start({ env: manager.env });
    await daemon.waitFor("ready", async () => (await daemon.get("/readyz")).status === 200);
    await daemon.waitUntilFilled();

    expect(query("SELECT DISTINCT name FROM index_ticks ORDER BY 1")).toEqual([
      { name: "BTC" },
      { name: "ETH" },
    ]);
    expect(await daemon.get("/healthz")).toEqual({ status: 200, text: "ok\n" });
    // The backfill may end before the first live tick is committed.
    const metrics = await daemon.waitFor("a live commit", async () => {
      const { text } = await daemon.get("/metrics");
      return /^mds_sync_commits_total\{stream="index_ticks",source="live"\} [1-9]/m.test(text) && text;
    });
    expect(metrics).toMatch(/^mds_sync_ready 1$/m);
    expect(metrics).toMatch(/^mds_sync_feed_connected 1$/m);
    expect(metrics).toMatch(/^mds_sync_feed_subscriptions\{state="following"\} [1-9]/m);
    expect(metrics).toMatch(/^mds_sync_live_lag_seconds_count [1-9]/m);
    expect(metrics).toMatch(/^mds_sync_rows_total\{stream="index_ticks",kind="inserted"\} 3\d{4}/m);
    expect(metrics).toMatch(/^mds_sync_rows_total\{stream="assets",kind="inserted"\} [1-9]/m);
    expect(metrics).toMatch(/^mds_sync_warehouse_bytes [1-9]/m);
    const status = JSON.parse((await daemon.get("/api/status")).text) as {
      streams: { stream: string; rows: number }[];
    };
    expect(status.streams.find(({ stream }) => stream === "index_ticks")?.rows).toBeGreaterThan(30_000);
    await daemon.waitFor(
      "covered snapshots",
      () => query("SELECT 1 FROM coverage WHERE stream = 'exchange_ticks'")[0],
    );

    await daemon.stop();
    for (const line of daemon.stderr().trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("msg");
    await waitUntil(() => manager.messages().includes("STOPPING=1"));
    const expected = ["READY=1", "WATCHDOG=1", "STATUS=filling gaps"];
    expect(manager.messages()).toEqual(expect.arrayContaining(expected));
    expect(query("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  it("G1, G7: stops within five seconds during a backfill, its stderr full or closed, and leaves a clean file", async () => {
    const pipe = createFullPipe();
    const stuckEnd = pipe.open();
    // Stopped long before the backfill ends, which then costs few pages.
    const faults = [Fault.latency(500, { on: "/index-ticker" })];
    const [unread, closed] = [await install({ days: 100, faults }), await install({ days: 100, faults })];
    const daemons = [unread.start({ stderr: stuckEnd }), closed.start()] as const;
    closeSync(stuckEnd);
    daemons[1].child.stderr?.destroy();
    for (const [n, installation] of [unread, closed].entries()) {
      await waitUntil(() => hasRows(installation));
      await daemons[n]?.stop();
      expect(readLastShutdown(installation.warehouse)).toEqual({ kind: "clean" });
      const open = "SELECT 1 FROM gaps WHERE state = 'open' AND stream = 'index_ticks'";
      expect(installation.query(open)).not.toEqual([]);
    }
  });

  it("G8: an uncaught exception ends the daemon with exit 1, and leaves its line for the next start", async () => {
    const installation = await install();
    // Node runs this before the program.
    const preload = `process.on("SIGUSR2", () => { throw new Error("a bug in one stream"); })`;
    const nodeFlags = ["--import", `data:text/javascript,${encodeURIComponent(preload)}`];
    const daemon = installation.start({ nodeFlags });
    await daemon.waitFor("rows", () => hasRows(installation));
    daemon.child.kill("SIGUSR2");
    expect(await daemon.ended).toEqual({ code: 1, signal: null });
    const crash = { code: "unexpected", line: "Error: a bug in one stream" };
    expect(readLastCrash(installation.warehouse)).toMatchObject(crash);
    expect(installation.query("PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  it("reports what it waits for while the warehouse is locked, and can be stopped", async () => {
    const installation = await install();
    copyEmptyWarehouse(installation.warehouse);
    const quant = new Database(installation.warehouse);
    onTestFinished(() => void quant.close());
    quant.exec("BEGIN IMMEDIATE");
    const daemon = installation.start();
    const health = await daemon.waitFor("a problem", async () => {
      const { status, text } = await daemon.get("/healthz");
      return status === 503 && text;
    });
    expect(health).toMatch(
      new RegExp(`^another program \\(pid ${process.pid}\\) holds the write lock of .*mds.sqlite: end `),
    );
    expect((await daemon.get("/readyz")).text).toBe("not ready: opening the warehouse\n");
    await daemon.stop();
  });

  it("G9: checks the settings before it touches the warehouse", async () => {
    const folder = temporaryFolder();
    const config = join(folder, "mds-sync.yaml");
    writeFileSync(config, "service: { refreshSeconds: 30 }\n");
    const env = { MDS_BASE_URL: "http://127.0.0.1:9", MDS_WS_URL: "ws://127.0.0.1:9", MDS_CLIENT_ID: "me" };
    const wrong = [
      { ...env, MDS_CLIENT_SECRET: "s", MDS_HTTP_PORT: "web" },
      { ...env, MDS_CLIENT_SECRET_FILE: join(folder, "nowhere") },
      env,
    ];
    for (const each of wrong) {
      const options = { env: { MDS_WAREHOUSE: join(folder, "mds.sqlite"), ...each }, cwd: folder };
      const { status, stderr } = await runInProcess(["run", "--config", config], options);
      expect(status).toBe(2);
      expect(JSON.parse(stderr)).toMatchObject({ level: 50, msg: expect.stringMatching(/set|cannot be/) });
      const atTerminal = await runInProcess(["run", "--config", config], { ...options, onTerminal: true });
      expect(atTerminal).toMatchObject({ status: 2, stderr: expect.stringMatching(/^mds-sync: .*\n$/) });
    }
    expect(existsSync(join(folder, "mds.sqlite"))).toBe(false);
  });

  it("F9, G1: a second daemon on the same file fails with one line, exit 75; a second signal ends a daemon at once", async () => {
    const installation = await install();
    const first = installation.start();
    await first.waitFor("ready", async () => (await first.get("/readyz")).status === 200);
    const second = installation.start();
    expect(await second.ended).toEqual({ code: 75, signal: null });
    expect(JSON.parse(second.stderr())).toMatchObject({
      level: 50,
      msg: expect.stringMatching(/^another mds-sync writes .*mds\.sqlite \(pid \d+/),
    });

    // Stopped meanwhile, so that it cannot end between the two signals.
    for (const signal of ["SIGSTOP", "SIGTERM", "SIGINT", "SIGCONT"] as const) first.child.kill(signal);
    expect(await first.ended).toEqual({ code: 1, signal: null });
    expect(first.stderr()).not.toContain("stopped cleanly");
  });

  it("exits 3 within seconds if the credentials are rejected before the first success", async () => {
    const installation = await install();
    installation.simulator.rotateSecret("another");
    const daemon = installation.start({ env: { MDS_CLIENT_SECRET: "canary-5b" } });
    expect(await daemon.ended).toEqual({ code: 3, signal: null });
    expect(daemon.stderr()).not.toContain("canary-5b");
  });
});
