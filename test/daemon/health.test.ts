import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { daemonUnderTest } from "../support/daemon/daemon-harness.ts";

/** Somebody who waits for the daemon's sign of life. */
async function listener() {
  const heard: string[] = [];
  const answer = { status: 200 };
  const server = createServer((request, response) => {
    heard.push(`${request.method} ${request.url}`);
    response.writeHead(answer.status).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { heard, answer, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

describe("the health of the daemon", () => {
  it("is told while the lock is held by others or the credentials are refused, and the daemon stays and heals", async () => {
    const { heard, answer, origin } = await listener();
    const daemon = await daemonUnderTest({
      settings: `
telemetry: { heartbeatUrl: "${origin}/ping/5ecret?key=k3y" }
sync:
  ohlcv: false
  intraday: { GWA: [BTC], MWA: none, LX: none, days: 1 }
  exchangeTickers: false
  marketCap: { every: 30s }
  derivatives: false
`,
    });
    const { clock, simulator, path, logged } = daemon;
    const running = await daemon.start();
    const health = () => running.get("/healthz");

    // A sign of life after each healthy minute; a listener that does not take it is told of once.
    await running.until(() => heard.length >= 2);
    expect(heard[0]).toBe("GET /ping/5ecret?key=k3y");
    answer.status = 500;
    const complaints = () => logged.filter(({ message }) => message.startsWith("the heartbeat"));
    await running.until(() => heard.length >= 5);
    answer.status = 200;
    await running.until(() => complaints().length === 2);
    expect(complaints()).toEqual([
      {
        level: "warn",
        message: "the heartbeat is not heard",
        fields: { host: new URL(origin).host, code: "http_500" },
      },
      { level: "info", message: "the heartbeat is heard again", fields: { host: new URL(origin).host } },
    ]);

    const quant = new Database(path);
    quant.exec("BEGIN IMMEDIATE");
    await running.until(async () => (await health()).status === 503);
    const locked = `another program holds the write lock of ${path}: end its write transaction; readers never get in the way`;
    expect((await health()).text).toBe(`${locked}\n`);
    quant.exec("ROLLBACK");
    quant.close();
    await running.until(async () => (await health()).status === 200);
    const storage = logged.filter(({ message }) => message === locked || message.startsWith("storage"));
    expect(storage.map(({ message }) => message)).toEqual([locked, "storage is well again"]);

    const secret = simulator.clientSecret;
    simulator.rotateSecret("another");
    simulator.revokeTokens();
    await running.until(async () => (await health()).status === 503);
    expect((await health()).text).toMatch(/^the service refuses the credentials/);
    const silence = heard.length;
    const later = clock.monotonic() + 150_000;
    await running.until(() => clock.monotonic() > later);
    expect(heard.length).toBe(silence);
    simulator.rotateSecret(secret);
    await running.until(async () => (await health()).status === 200);

    // What a stream suffers from stands in the warehouse within a minute or two, for `status`.
    simulator.setFaults("GET /market-cap status 403");
    const suffering = () =>
      daemon.query("SELECT last_error, missing_scopes FROM stream_states WHERE stream = 'market_caps'")[0];
    await running.until(() => suffering()?.missing_scopes === '["read:market-cap"]');
    expect(suffering()?.last_error).toContain("market-cap");
    await running.stop();
    daemon.expectTruth();
    expect(JSON.stringify(logged)).not.toMatch(/5ecret|k3y/);
  }, 120_000);
});
