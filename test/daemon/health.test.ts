import { renameSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { startWorker } from "../../src/runtime/thread.ts";
import { Fault } from "../simulator/faults.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { createDaemonHarness } from "../support/daemon/daemon-harness.ts";
import { startHeartbeatServer } from "../support/daemon/heartbeat-server.ts";
import { onlyTicks } from "../support/sync/backfill-harness.ts";
import { serviceEnv } from "../support/sync/sync-session.ts";

it("A6, F7: the health of a daemon shows a write lock of another program and rejected credentials, and the daemon recovers from both", async () => {
  const { received, answer, origin } = await startHeartbeatServer();
  const daemon = await createDaemonHarness({
    startWorker,
    simulator: { quirks: { listed: { perMille: 1000, on: "2026-03-01" } } },
    settings: `telemetry: { heartbeatUrl: "${origin}/ping/5ecret?key=k3y" }
${onlyTicks("[BTC]", { marketCap: "{ every: 30s }" })}`,
  });
  const { clock, simulator, path, logged, secretFile } = daemon;
  const running = await daemon.startFilled();
  const health = () => running.getPage("/healthz");

  // One heartbeat per healthy minute; a failing heartbeat is logged once.
  await running.runUntil(() => received.length >= 2);
  expect(received[0]).toBe("GET /ping/5ecret?key=k3y");
  answer.status = 500;
  const heartbeatLogs = () => logged.filter(({ message }) => message.startsWith("heartbeat"));
  await running.runUntil(() => received.length >= 5);
  answer.status = 200;
  await running.runUntil(() => heartbeatLogs().length === 2);
  expect(heartbeatLogs()).toEqual([
    { level: "warn", message: "heartbeat failed", fields: { host: new URL(origin).host, code: "http_500" } },
    { level: "info", message: "heartbeat recovered", fields: { host: new URL(origin).host } },
  ]);

  const quant = new Database(path);
  quant.exec("BEGIN IMMEDIATE");
  // Asked before the writer first waits for the lock: each of its attempts takes real seconds.
  const env = { ...serviceEnv(simulator), MDS_WAREHOUSE: path };
  const asked = runInProcess(["backfill", "--now", "--log-level", "silent"], { env, cwd: dirname(path) });
  await running.runUntil(() => logged.some(({ message }) => message === "backfill requested"));
  await running.runUntil(async () => (await health()).status === 503);
  const locked = `another program holds the write lock of ${path}: end its write transaction; readers do not block the writer`;
  expect((await health()).text).toBe(`${locked}\n`);
  // A command that waits for the daemon is told the same, however long it lasts.
  await clock.advance(16 * 60_000);
  expect(await asked).toMatchObject({ status: 75, stderr: `mds-sync: ${locked}\n` });
  quant.exec("ROLLBACK");
  quant.close();
  await running.runUntil(async () => (await health()).status === 200);
  const storage = logged.filter(({ message }) => message === locked || message.startsWith("storage"));
  expect(storage.map(({ message }) => message)).toEqual([locked, "storage recovered"]);

  const secret = simulator.clientSecret;
  simulator.rotateSecret("another");
  simulator.revokeTokens();
  await running.runUntil(async () => (await health()).status === 503);
  expect((await health()).text).toMatch(/^the service refuses the credentials/);
  const receivedBefore = received.length;
  const later = clock.monotonic() + 150_000;
  await running.runUntil(() => clock.monotonic() > later);
  expect(received.length).toBe(receivedBefore);
  simulator.rotateSecret(secret);
  await running.runUntil(async () => (await health()).status === 200);

  renameSync(secretFile, `${secretFile}.old`);
  simulator.revokeTokens();
  await running.runUntil(async () => (await health()).status === 503);
  expect((await health()).text).toMatch(/^the client secret cannot be read: check its file/);
  renameSync(`${secretFile}.old`, secretFile);
  await running.runUntil(async () => (await health()).status === 200);
  const states = logged.flatMap(({ message, fields }) =>
    message === "authentication state changed" && fields.audience === simulator.baseUrl ? [fields.state] : [],
  );
  expect(states).toEqual(["ok", "credentials_rejected", "ok", "secret_unreadable", "ok"]);

  // The error of a stream is stored within a minute or two, for `status`.
  simulator.setFaults(Fault.status(403, { on: "/market-cap" }));
  const streamState = () =>
    daemon.query("SELECT last_error, missing_scopes FROM stream_states WHERE stream = 'market_caps'")[0];
  await running.runUntil(() => streamState()?.missing_scopes === '["read:market-cap"]');
  expect(streamState()?.last_error).toContain("market-cap");
  await running.stop();
  daemon.expectMatchesService();
  expect(JSON.stringify(logged)).not.toMatch(/5ecret|k3y/);
});
