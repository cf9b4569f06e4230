import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { runProgram } from "../../../src/cli/program.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { matchesSecretHash } from "../../../src/serve/client-secrets.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { hasTool } from "../../support/has-tool.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { startProgram } from "../../support/program-process.ts";
import { serveWarehouse } from "../../support/serve/filled-server.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

/** Runs `serve --hash-secret` with a secret on stdin. */
async function hash(secret: string) {
  const stdout = new PassThrough();
  const status = await runProgram(["serve", "--hash-secret"], {
    env: {},
    directory: temporaryFolder(),
    clock: systemClock,
    stdin: PassThrough.from([secret]),
    stdout,
    stderr: new PassThrough(),
    stopping: new AbortController().signal,
  });
  stdout.end();
  return { status, line: await text(stdout) };
}

describe("mds-sync serve", () => {
  it("serves a warehouse that nobody writes, prints the settings of a client, and stops on SIGTERM", async () => {
    const folder = temporaryFolder();
    openWriter(join(folder, "mds.sqlite"), { clock: systemClock }).close();
    const { child, output, result } = startProgram(
      ["serve", "--serve-port", "0", "--warehouse", "mds.sqlite"],
      {
        cwd: folder,
      },
    );
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) if (lines.push(line) === 4) break;
    const [baseUrl = ""] = lines.map((line) => line.replace(/^\w+=/, ""));
    expect(lines.map((line) => line.replace(/=.*/, ""))).toEqual([
      "MDS_BASE_URL",
      "MDS_WS_URL",
      "MDS_CLIENT_ID",
      "MDS_CLIENT_SECRET",
    ]);
    expect(await (await fetch(`${baseUrl}/v3/market`)).json()).toEqual({ content: [] });
    child.kill("SIGTERM");
    expect((await result).status).toBe(0);
    expect(output.stderr).toContain("stopped cleanly");
  });

  it("makes the hash of a secret, never with the secret in it", async () => {
    const { status, line } = await hash("open sesame\n");
    expect([status, line]).toEqual([0, expect.stringMatching(/^scrypt\$16384\$8\$1\$\S+\$\S+\n$/)]);
    expect(line).not.toContain("sesame");
    expect(await matchesSecretHash("open sesame", line)).toBe(true);
    expect(await matchesSecretHash("open sesame ", line)).toBe(false);
    expect((await hash("")).status).toBe(2);
  });

  it("refuses to listen beyond loopback without clients, or without TLS unless a proxy speaks it: exit 2", async () => {
    const folder = temporaryFolder();
    const hashFile = join(folder, "a.hash");
    writeFileSync(hashFile, (await hash("secret")).line);
    const client = `clients: [{ id: a, secretHashFile: ${hashFile}, scopes: [read:ohlcv] }]`;
    const attempt = async (serve: string) => {
      writeFileSync(join(folder, "mds-sync.yaml"), `serve: { ${serve} }\n`);
      const { status, stderr } = await runInProcess(["serve"], { cwd: folder });
      return [status, stderr];
    };
    expect(await attempt("host: 0.0.0.0")).toEqual([2, expect.stringContaining("serve.clients is empty")]);
    expect(await attempt("host: 0.0.0.0, behindProxy: true")).toEqual([
      2,
      expect.stringContaining("serve.clients is empty"),
    ]);
    expect(await attempt(`host: 0.0.0.0, ${client}`)).toEqual([2, expect.stringContaining("serve.tls")]);
    expect(await attempt("tls: { certFile: a.pem }")).toEqual([2, expect.stringContaining("only one of")]);
    expect(await attempt("clients: [{ id: a, secretHashFile: none.hash }]")).toEqual([
      2,
      expect.stringContaining("--hash-secret"),
    ]);
    expect(await attempt("clients: [{ id: a, secret: open-sesame }]")).toEqual([
      2,
      expect.stringContaining("secretHashFile"),
    ]);
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
