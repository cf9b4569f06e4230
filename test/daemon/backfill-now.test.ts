import { once } from "node:events";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/runtime/clock.ts";
import { Fault } from "../simulator/faults.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import {
  createDaemonHarness,
  type DaemonHarness,
  type RunningDaemon,
} from "../support/daemon/daemon-harness.ts";
import { onlyTicks } from "../support/sync/backfill-harness.ts";
import { serviceEnv } from "../support/sync/sync-session.ts";

const settings = onlyTicks("[BTC, ETH]");

/** Runs a command of the same user. */
function runBackfill({ simulator, path, folder }: DaemonHarness, args: readonly string[], clock?: Clock) {
  const env = { ...serviceEnv(simulator), MDS_WAREHOUSE: path };
  const file = join(folder, "mds-sync.yaml");
  return runInProcess(["backfill", "--config", file, ...args], { env, cwd: folder, ...(clock && { clock }) });
}

/** Runs a command beside the daemon, on the real clock. */
async function runBeside(daemon: DaemonHarness, running: RunningDaemon | undefined, ...args: string[]) {
  const command = runBackfill(daemon, args);
  let result: Awaited<typeof command> | undefined;
  const ended = command.then((each) => {
    result = each;
  });
  if (running) await running.runUntil(() => result);
  await ended;
  return command;
}

describe("mds-sync backfill beside a daemon", () => {
  it("lets the daemon fill everything now with --now, and exits 75 without it, naming --now", async () => {
    const daemon = await createDaemonHarness({
      settings: `${settings.slice(0, -2)}, confirmEvery: 1d }`,
      simulator: { quirks: { listed: { perMille: 1000, on: "2026-03-01" } } },
    });
    const { clock, path } = daemon;
    const running = await daemon.startFilled();
    const proven = "SELECT min(t) AS t FROM (SELECT max(to_ts) AS t FROM settled_ranges GROUP BY series)";
    const provenTo = () => Number(daemon.query(proven)[0]?.t);
    const later = clock.now() + 20 * 60_000;
    await running.runUntil(() => clock.now() > later);
    expect(clock.now() * 1000 - provenTo()).toBeGreaterThan(15 * 60e6);

    const plain = await runBeside(daemon, running, "--log-level", "silent");
    expect(plain.status).toBe(75);
    expect(plain.stderr).toMatch(/^mds-sync: another mds-sync writes .*`mds-sync backfill --now` [^\n]*\n$/);

    const now = await runBeside(daemon, running, "--now", "--json", "--log-level", "warn");
    expect({ status: now.status, stderr: now.stderr }).toEqual({ status: 0, stderr: "" });
    const report = JSON.parse(now.stdout);
    expect(report).toMatchObject({ exit: 0, problems: [] });
    expect(report.streams.find(({ stream }: { stream: string }) => stream === "index_ticks")).toMatchObject({
      open: 0,
    });
    expect(clock.now() * 1000 - provenTo()).toBeLessThan(2 * 60e6);

    const unknown = await runBeside(daemon, running, "--now", "--series", "BITCON", "--log-level", "silent");
    expect(unknown.status).toBe(2);
    expect(unknown.stderr).toMatch(/^mds-sync: --series: no index is called BITCON/);
    daemon.simulator.setFaults(Fault.status(403, { on: "/index-ticker" }));
    const quietly = ["--stream", "index_ticks", "--log-level", "silent"];
    const forbidden = await runBeside(daemon, running, "--now", ...quietly);
    expect(forbidden.status).toBe(4);
    expect(forbidden.stdout).toContain("read:index-ticker");
    daemon.simulator.setFaults();

    expect(statSync(`${path}.control`).mode & 0o777).toBe(0o600);
    const { port, token } = JSON.parse(readFileSync(`${path}.control`, "utf8"));
    const url = `http://127.0.0.1:${port}/backfill`;
    const statusOf = async (init: RequestInit) => (await fetch(url, init)).status;
    expect(await statusOf({ method: "POST", body: "{}" })).toBe(403);
    const wrong = `Bearer ${"0".repeat(token.length)}`;
    expect(await statusOf({ method: "POST", body: "{}", headers: { authorization: wrong } })).toBe(403);
    expect(await statusOf({ headers: { authorization: `Bearer ${token}` } })).toBe(404);
    expect(JSON.stringify(daemon.logged)).not.toContain(token);
    await running.stop();
    expect(existsSync(`${path}.control`)).toBe(false);
  });

  it("does the work itself with --now if no daemon runs, also beside the file of a killed one", async () => {
    const daemon = await createDaemonHarness({ settings, start: new Date().toISOString() });
    const runAlone = () =>
      daemon.clock.runUntil(runBackfill(daemon, ["--now", "--log-level", "silent"], daemon.clock));
    expect((await runAlone()).status).toBe(0);
    const closed = createServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const { port } = closed.address() as AddressInfo;
    closed.close();
    writeFileSync(`${daemon.path}.control`, JSON.stringify({ port, token: "x" }));
    expect((await runAlone()).status).toBe(0);
    expect(daemon.query("SELECT count(*) > 5000 AS hasRows FROM index_ticks")).toEqual([{ hasRows: 1 }]);
  });

  it("ends with one line and exit 75 if the daemon stops under way", async () => {
    const daemon = await createDaemonHarness({ settings });
    const running = await daemon.startFilled();
    daemon.simulator.setFaults(Fault.stall({ on: "/asset" }));
    const command = runBeside(daemon, undefined, "--now", "--log-level", "silent");
    await running.runUntil(() => daemon.logged.some(({ message }) => message === "backfill requested"));
    await running.stop();
    const { status, stderr } = await command;
    expect(status).toBe(75);
    expect(stderr).toMatch(/^mds-sync: [^\n]*run it again: it resumes where it stopped\n$/);
  });
});
