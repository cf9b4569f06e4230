import { closeSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { readLastCrash } from "../../src/warehouse/sqlite/crash-marker.ts";
import { readLastShutdown } from "../../src/warehouse/sqlite/shutdown-marker.ts";
import { Fault } from "../simulator/faults.ts";
import { type Simulator, startSimulator } from "../simulator/simulator.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { fakeSystemdNotify } from "../support/fake-systemd-notify.ts";
import { createFullPipe } from "../support/full-pipe.ts";
import { type ProgramProcess, startProgram } from "../support/program-process.ts";
import { serviceEnv } from "../support/sync/sync-session.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { timeLimit } from "../support/time-limit.ts";
import { waitUntil as until } from "../support/wait-until.ts";
import { copyEmptyWarehouse } from "../support/warehouse/empty-warehouse.ts";
import { queryFile } from "../support/warehouse/warehouse-file.ts";

/** `refreshSeconds`: few if the test waits for live ticks, many if it needs only a few rows. */
async function startService(refreshSeconds = 30): Promise<Simulator> {
  const simulator = await startSimulator({ refreshSeconds });
  onTestFinished(() => simulator.stop());
  return simulator;
}

function folderWithSettings(refreshSeconds = 30): string {
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, "mds-sync.yaml"),
    `service: { refreshSeconds: ${refreshSeconds} }
warehouse: { path: mds.sqlite }
sync:
  ohlcv: { GWA: [BTC], MWA: none, LX: none }
  intraday: { GWA: [BTC, ETH], MWA: none, LX: none, days: 1 }
  exchangeTickers: { exchanges: [Kraken], markets: all }
  derivatives: false
http: { port: 0 }
`,
  );
  return folder;
}

function run(folder: string, simulator: Simulator, env: Record<string, string> = {}, stderr?: number) {
  const options = { cwd: folder, env: { ...serviceEnv(simulator), ...env }, stderr };
  return startProgram(["run", "--no-progress"], options);
}

/** Where it serves the dashboard. */
const addressOf = ({ output }: ProgramProcess) =>
  until(() => /dashboard: ([^\s"]+)/.exec(output.stderr)?.[1]);

const query = (folder: string, sql: string) => queryFile(join(folder, "mds.sqlite"), sql);

/** Like `query`, for a warehouse that may not exist yet. */
function queryIfPresent(folder: string, sql: string): Record<string, unknown>[] {
  try {
    return query(folder, sql);
  } catch {
    return [];
  }
}

describe("mds-sync run", () => {
  it("becomes ready, fills, follows the live feed, serves its status, and stops cleanly within five seconds", async () => {
    const simulator = await startService(5);
    const folder = folderWithSettings(5);
    const manager = fakeSystemdNotify(folder);
    const daemon = run(folder, simulator, manager.env);
    const address = await addressOf(daemon);
    const get = (path: string) =>
      fetch(new URL(path, address)).then(async (r) => ({ status: r.status, text: await r.text() }));
    await until(async () => ((await get("/readyz")).status === 200 ? true : undefined));
    await until(() => (/filled: /.test(daemon.output.stderr) ? true : undefined));

    expect(query(folder, "SELECT DISTINCT name FROM index_ticks ORDER BY 1")).toEqual([
      { name: "BTC" },
      { name: "ETH" },
    ]);
    expect(await get("/healthz")).toEqual({ status: 200, text: "ok\n" });
    // The backfill may end before the first live tick is committed.
    const metrics = await until(async () => {
      const { text } = await get("/metrics");
      return /^mds_sync_commits_total\{stream="index_ticks",source="live"\} [1-9]/m.test(text)
        ? text
        : undefined;
    });
    expect(metrics).toMatch(/^mds_sync_ready 1$/m);
    expect(metrics).toMatch(/^mds_sync_feed_connected 1$/m);
    expect(metrics).toMatch(/^mds_sync_feed_subscriptions\{state="following"\} [1-9]/m);
    expect(metrics).toMatch(/^mds_sync_live_lag_seconds_count [1-9]/m);
    expect(metrics).toMatch(/^mds_sync_rows_total\{stream="index_ticks",kind="inserted"\} 3\d{4}/m);
    expect(metrics).toMatch(/^mds_sync_rows_total\{stream="assets",kind="inserted"\} [1-9]/m);
    expect(metrics).toMatch(/^mds_sync_warehouse_bytes [1-9]/m);
    const status = JSON.parse((await get("/api/status")).text) as {
      streams: { stream: string; rows: number }[];
    };
    expect(status.streams.find(({ stream }) => stream === "index_ticks")?.rows).toBeGreaterThan(30_000);
    await until(() =>
      query(folder, "SELECT 1 FROM coverage WHERE stream = 'exchange_ticks'").length > 0 ? true : undefined,
    );

    const stoppedAt = performance.now();
    daemon.child.kill("SIGTERM");
    expect((await daemon.result).status).toBe(0);
    expect(performance.now() - stoppedAt).toBeLessThan(timeLimit(5_000));
    expect(daemon.output.stderr).toMatch(/"msg":"stopped cleanly"\}\n$/);
    for (const line of daemon.output.stderr.trim().split("\n"))
      expect(JSON.parse(line)).toHaveProperty("msg");
    const messages = await until(() =>
      manager.messages().includes("STOPPING=1") ? manager.messages() : undefined,
    );
    expect(messages).toEqual(expect.arrayContaining(["READY=1", "WATCHDOG=1", "STATUS=filling gaps"]));
    expect(query(folder, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  it("G1, G7: stops within five seconds during a backfill, its stderr full or closed, and leaves a clean file", async () => {
    const simulator = await startService();
    // Stopped long before the backfill ends, which then costs few pages.
    simulator.setFaults(Fault.latency(500, { on: "/index-ticker" }));
    const pipe = createFullPipe();
    const stuckEnd = pipe.open();
    const folders = [folderWithSettings(), folderWithSettings()] as const;
    for (const folder of folders) {
      const file = join(folder, "mds-sync.yaml");
      writeFileSync(file, readFileSync(file, "utf8").replace("days: 1 }", "days: 100 }"));
    }
    const unread = run(folders[0], simulator, {}, stuckEnd);
    closeSync(stuckEnd);
    const closed = run(folders[1], simulator);
    closed.child.stderr.destroy();
    const count = "SELECT count(*) AS n FROM gaps WHERE state = 'open' AND stream = 'index_ticks'";
    for (const [n, daemon] of [unread, closed].entries()) {
      const folder = folders[n] ?? "";
      await until(() => queryIfPresent(folder, "SELECT 1 FROM index_ticks LIMIT 1")[0]);
      const stoppedAt = performance.now();
      daemon.child.kill("SIGTERM");
      expect((await daemon.result).status).toBe(0);
      expect(performance.now() - stoppedAt).toBeLessThan(timeLimit(5_000));
      expect(readLastShutdown(join(folder, "mds.sqlite"))).toEqual({ kind: "clean" });
      expect(query(folder, count)).not.toEqual([{ n: 0 }]);
    }
  });

  it("G8: an uncaught exception ends the daemon with exit 1, and leaves its line for the next start", async () => {
    const simulator = await startService();
    const folder = folderWithSettings();
    const path = join(folder, "mds.sqlite");
    // Node runs this before the program.
    const preload = `process.on("SIGUSR2", () => { throw new Error("a bug in one stream"); })`;
    const daemon = run(folder, simulator, {
      NODE_OPTIONS: `--import="data:text/javascript,${encodeURIComponent(preload)}"`,
    });
    await until(() => queryIfPresent(folder, "SELECT 1 FROM index_ticks LIMIT 1")[0]);
    daemon.child.kill("SIGUSR2");
    expect((await daemon.result).status).toBe(1);
    const crash = { code: "unexpected", line: "Error: a bug in one stream" };
    expect(readLastCrash(path)).toMatchObject(crash);
    expect(query(folder, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  it("reports what it waits for while the warehouse is locked, and can be stopped", async () => {
    const simulator = await startService();
    const folder = folderWithSettings();
    const path = join(folder, "mds.sqlite");
    copyEmptyWarehouse(path);
    const quant = new Database(path);
    onTestFinished(() => void quant.close());
    quant.exec("BEGIN IMMEDIATE");
    const daemon = run(folder, simulator);
    const address = await addressOf(daemon);
    const health = await until(async () => {
      const answer = await fetch(new URL("/healthz", address));
      return answer.status === 503 ? answer.text() : undefined;
    });
    expect(health).toMatch(
      new RegExp(`^another program \\(pid ${process.pid}\\) holds the write lock of .*mds.sqlite: end `),
    );
    expect(await (await fetch(new URL("/readyz", address))).text()).toBe(
      "not ready: opening the warehouse\n",
    );
    const stoppedAt = performance.now();
    daemon.child.kill("SIGTERM");
    expect((await daemon.result).status).toBe(0);
    expect(performance.now() - stoppedAt).toBeLessThan(timeLimit(5_000));
    expect(daemon.output.stderr).toMatch(/"msg":"stopped cleanly"\}\n$/);
  });

  it("G9: checks the settings before it touches the warehouse", async () => {
    const folder = folderWithSettings();
    const env = { MDS_BASE_URL: "http://127.0.0.1:9", MDS_WS_URL: "ws://127.0.0.1:9", MDS_CLIENT_ID: "me" };
    const wrong = [
      { ...env, MDS_CLIENT_SECRET: "s", MDS_HTTP_PORT: "web" },
      { ...env, MDS_CLIENT_SECRET_FILE: join(folder, "nowhere") },
      env,
    ];
    for (const each of wrong) {
      const { status, stderr } = await runInProcess(["run", "--config", join(folder, "mds-sync.yaml")], {
        env: { MDS_WAREHOUSE: join(folder, "mds.sqlite"), ...each },
        cwd: folder,
      });
      expect(status).toBe(2);
      expect(JSON.parse(stderr)).toMatchObject({ level: 50, msg: expect.stringMatching(/set|cannot be/) });
      const atTerminal = await runInProcess(["run", "--config", join(folder, "mds-sync.yaml")], {
        env: { MDS_WAREHOUSE: join(folder, "mds.sqlite"), ...each },
        cwd: folder,
        onTerminal: true,
      });
      expect(atTerminal).toMatchObject({ status: 2, stderr: expect.stringMatching(/^mds-sync: .*\n$/) });
    }
    expect(existsSync(join(folder, "mds.sqlite"))).toBe(false);
  });

  it("F9, G1: a second daemon on the same file fails with one line, exit 75; a second signal ends a daemon at once", async () => {
    const simulator = await startService();
    const folder = folderWithSettings();
    const first = run(folder, simulator);
    const address = await addressOf(first);
    await until(async () => ((await fetch(new URL("/readyz", address))).status === 200 ? true : undefined));
    const second = run(folder, simulator);
    expect((await second.result).status).toBe(75);
    expect(JSON.parse(second.output.stderr)).toMatchObject({
      level: 50,
      msg: expect.stringMatching(/^another mds-sync writes .*mds\.sqlite \(pid \d+/),
    });

    // Stopped meanwhile, so that it cannot end between the two signals.
    for (const signal of ["SIGSTOP", "SIGTERM", "SIGINT", "SIGCONT"] as const) first.child.kill(signal);
    expect((await first.result).status).toBe(1);
    expect(first.output.stderr).not.toContain("stopped cleanly");
  });

  it("exits 3 within seconds if the credentials are rejected before the first success", async () => {
    const simulator = await startService();
    simulator.rotateSecret("another");
    const folder = folderWithSettings();
    const daemon = run(folder, simulator, { MDS_CLIENT_SECRET: "canary-5b" });
    expect((await daemon.result).status).toBe(3);
    expect(daemon.output.stderr).not.toContain("canary-5b");
  });
});
