import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { matchesSecretHash } from "../../../src/serve/client-access.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { hasTool } from "../../support/has-tool.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { clientSettings, readSettings, startProgram } from "../../support/program-process.ts";
import { serveWarehouse } from "../../support/serve/filled-server.ts";
import { WebSocketClient } from "../../support/simulator/websocket-client.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { tick } from "../../support/warehouse/records.ts";
import { writeRecords } from "../../support/warehouse/write-records.ts";

/** Runs `serve --hash-secret` with a secret on stdin. */
const hash = (secret: string) => runInProcess(["serve", "--hash-secret"], { stdin: secret });

const serve = (folder: string) =>
  startProgram(["serve", "--serve-port", "0", "--warehouse", "mds.sqlite"], { cwd: folder });

describe("mds-sync serve", () => {
  it("serves a warehouse that nobody writes, prints the settings of a client, and stops on SIGTERM", async () => {
    const folder = temporaryFolder();
    openWriter(join(folder, "mds.sqlite"), { clock: systemClock }).close();
    const started = serve(folder);
    const settings = await readSettings(started, clientSettings.length);
    expect(Object.keys(settings)).toEqual(clientSettings);
    expect(await (await fetch(`${settings.MDS_BASE_URL}/v3/market`)).json()).toEqual({ content: [] });
    started.child.kill("SIGTERM");
    expect(await started.result).toMatchObject({
      status: 0,
      stderr: expect.stringContaining("stopped cleanly"),
    });
  });

  it("after kill -9 beside a commit sends later ticks once each, and has the earlier ones by REST", async () => {
    const folder = temporaryFolder();
    const warehouse = openWriter(join(folder, "mds.sqlite"), { clock: systemClock });
    onTestFinished(() => warehouse.close());
    const write = (ts: number) =>
      warehouse.transaction((t) => writeRecords(t, "index_ticks", [tick(ts, "1.5")], "live"));
    const now = Math.floor(Date.now() / 1000) * MICROS_PER_SECOND;
    write(now - 60 * MICROS_PER_SECOND);
    const start = async () => {
      const started = serve(folder);
      const settings = await readSettings(started, 2);
      const client = new WebSocketClient(settings.MDS_WS_URL ?? "");
      await client.waitFor("CONNECTED");
      client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexId: "btc-id" });
      await client.waitFor("SUBSCRIBED_INDEX_TICKER");
      // By its answer it knows which ticks are older than the subscription.
      client.send({ event: "PING" });
      await client.waitFor("PONG");
      return { ...started, client, baseUrl: settings.MDS_BASE_URL };
    };
    const first = await start();
    // It reads the journal every 50 ms, and dies before or after it has sent what it read.
    write(now - 2 * MICROS_PER_SECOND);
    first.child.kill("SIGKILL");
    await first.result;
    const second = await start();
    for (const ago of [1, 0]) write(now - ago * MICROS_PER_SECOND);
    const sent = await second.client.waitFor("INDEX_TICKER", 2);
    const secondsOf = (rows: readonly Record<string, unknown>[]) =>
      rows.map(({ timestamp }) => now / MICROS_PER_SECOND - Date.parse(String(timestamp)) / 1000);
    expect(secondsOf(sent)).toEqual([1, 0]);
    const until = new Date(now / 1000 + 1000).toISOString();
    const response = await fetch(
      `${second.baseUrl}/v3/index-ticker?indexType=GWA&indexId=btc-id&size=10&timestamp=${until}`,
    );
    const { content } = (await response.json()) as { content: Record<string, unknown>[] };
    expect(secondsOf(content).sort((a, b) => a - b)).toEqual([0, 1, 2, 60]);
    second.client.socket.terminate();
  });

  it("makes the hash of a secret, never with the secret in it", async () => {
    const { status, stdout: line } = await hash("open sesame\n");
    expect([status, line]).toEqual([0, expect.stringMatching(/^scrypt\$16384\$8\$1\$\S+\$\S+\n$/)]);
    expect(line).not.toContain("sesame");
    expect(await matchesSecretHash("open sesame", line)).toBe(true);
    expect(await matchesSecretHash("open sesame ", line)).toBe(false);
    expect((await hash("")).status).toBe(2);
  });

  it("J4: refuses to listen beyond loopback without clients, or without TLS unless a proxy speaks it: exit 2", async () => {
    const folder = temporaryFolder();
    const hashFile = join(folder, "a.hash");
    writeFileSync(hashFile, (await hash("secret")).stdout);
    const client = `clients: [{ id: a, secretHashFile: ${hashFile}, scopes: [read:ohlcv] }]`;
    const refusals = [
      ["host: 0.0.0.0", "serve.clients is empty"],
      ["host: 0.0.0.0, behindProxy: true", "serve.clients is empty"],
      [`host: 0.0.0.0, ${client}`, "serve.tls"],
      ["tls: { certFile: a.pem }", "only one of"],
      ["clients: [{ id: a, secretHashFile: none.hash }]", "--hash-secret"],
      ["clients: [{ id: a, secret: open-sesame }]", "secretHashFile"],
    ] as const;
    for (const [serve, reason] of refusals) {
      writeFileSync(join(folder, "mds-sync.yaml"), `serve: { ${serve} }\n`);
      const { status, stderr } = await runInProcess(["serve"], { cwd: folder });
      expect({ serve, status, stderr }).toEqual({
        serve,
        status: 2,
        stderr: expect.stringContaining(reason),
      });
    }
  });

  const canMakeCertificate = hasTool("openssl", "serve over TLS");
  it.runIf(canMakeCertificate)("speaks TLS with the certificate of the settings", async () => {
    const folder = temporaryFolder();
    const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    const args =
      "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost";
    spawnSync("openssl", [...args.split(" "), "-keyout", keyFile, "-out", certFile]);
    const warehouse = join(folder, "mds.sqlite");
    openWriter(warehouse, { clock: systemClock }).close();
    const server = await serveWarehouse(warehouse, new ManualClock(), { tls: { certFile, keyFile } });
    expect(server.baseUrl).toMatch(/^https:/);
    expect(server.wsUrl).toMatch(/^wss:/);
    const status = await new Promise((resolve, reject) => {
      request(`${server.baseUrl}/v3/asset`, { rejectUnauthorized: false }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end();
    });
    expect(status).toBe(200);
    await server.close();
  });
});
