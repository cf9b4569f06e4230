import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { worstExit } from "../../../src/cli/commands/doctor/finding.ts";
import { checkWarehouse } from "../../../src/cli/commands/doctor/warehouse-checks.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { type SimulatorOptions, startSimulator } from "../../../src/simulator/simulator.ts";
import { usualContent, warehouseWith } from "../../support/cli/filled-warehouse.ts";
import { run, runHere } from "../../support/cli/run-command.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const secret = "canary-secret-51c";

async function service(options: SimulatorOptions = {}) {
  const simulator = await startSimulator({ clientSecret: secret, ...options });
  onTestFinished(() => simulator.stop());
  const { baseUrl, wsUrl, clientId } = simulator;
  return {
    MDS_BASE_URL: baseUrl,
    MDS_WS_URL: wsUrl,
    MDS_CLIENT_ID: clientId,
    MDS_CLIENT_SECRET: secret,
    MDS_WAREHOUSE: join(temporaryFolder(), "mds.sqlite"),
  };
}

async function doctor(env: Record<string, string>, clock?: Clock) {
  const { stdout, stderr, status } = await runHere(["doctor", "--json"], {
    env,
    ...(clock ? { clock } : {}),
  });
  expect(stdout + stderr).not.toContain(secret);
  const { checks } = JSON.parse(stdout) as {
    checks: { check: string; verdict: string; message: string; remedy: string | null }[];
  };
  const unwell = checks.filter(({ verdict }) => verdict !== "ok");
  for (const { remedy } of unwell) expect(remedy).toBeTruthy();
  return {
    status,
    stderr,
    checks: checks.map(({ check, verdict }) => `${verdict} ${check}`),
    unwell: unwell.map(({ check, verdict, message }) => `${verdict} ${check}: ${message}`),
  };
}

const wellService = ["ok REST token", "ok stream token", "ok REST", "ok stream", "ok scopes", "ok clock"];
const wellWarehouse = ["ok warehouse", "ok directory", "ok disk"];

describe("mds-sync doctor", () => {
  it("finds everything in order, on 80 columns, without a secret, and ends by itself", async () => {
    const env = { ...(await service()), MDS_WAREHOUSE: warehouseWith(usualContent) };
    const { stdout, stderr, status } = await run(["doctor"], { env });
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(stdout).not.toContain(secret);
    expect(stdout).toMatch(/^ok {7}settings {6}no settings file: built-in defaults and the environment$/m);
    expect(stdout).toMatch(/^ok {7}REST token {4}granted for http:\S+, good for 1d$/m);
    expect(stdout).toMatch(/^ok {7}disk {10}[\d.]+ [GM]iB are free$/m);
    expect(stdout).toMatch(/sound$/m);
  });

  it("does not mind that there is no warehouse yet, and makes none", async () => {
    const { checks, status } = await doctor(await service());
    expect(checks).toEqual(["ok settings", "ok secret", ...wellService, ...wellWarehouse]);
    expect(status).toBe(0);
  });

  it("exits 2 for what is wrong with or missing from the settings", async () => {
    const wrong = await doctor({ MDS_HTTP_PORT: "x" });
    expect(wrong.unwell).toEqual(['problem settings: MDS_HTTP_PORT: http.port cannot be "x"']);
    expect(wrong.status).toBe(2);
    const { MDS_CLIENT_SECRET: _, ...env } = await service();
    const unset = await doctor(env);
    expect(unset.unwell).toEqual(["problem service: the client secret is not set"]);
    expect(unset.checks).toEqual(["ok settings", "problem service", ...wellWarehouse]);
    const gone = await doctor({ ...env, MDS_CLIENT_SECRET_FILE: "/nowhere/secret" });
    expect(gone.unwell).toEqual(["problem service: the secret file /nowhere/secret cannot be read (ENOENT)"]);
    expect([unset.status, gone.status]).toEqual([2, 2]);
  });

  it("warns of a secret file that others can read, and is content all the same", async () => {
    const { MDS_CLIENT_SECRET: _, ...env } = await service();
    const file = join(temporaryFolder(), "secret");
    writeFileSync(file, secret, { mode: 0o644 });
    const { unwell, status } = await doctor({ ...env, MDS_CLIENT_SECRET_FILE: file });
    expect(unwell).toEqual([`warning settings: the secret file ${file} can be read by other users`]);
    expect(status).toBe(0);
  });

  it("exits 3 when the credentials are refused, and shows neither of them", async () => {
    const env = await service();
    const { unwell, status, stderr } = await doctor({ ...env, MDS_CLIENT_SECRET: `${secret}-old` });
    expect(unwell).toEqual([
      "problem REST token: the token endpoint refused the credentials (401)",
      "problem stream token: the token endpoint refused the credentials (401)",
    ]);
    expect(status).toBe(3);
    expect(stderr).toBe("mds-sync: 2 problems found: what to do stands beside each\n");
  });

  it("exits 4 and names the streams that lack a scope, but only those that the settings select", async () => {
    const env = await service({ scopes: ["read:ohlcv", "read:index-ticker", "read:exchange-ticker"] });
    const folder = temporaryFolder();
    const config = join(folder, "mds-sync.yaml");
    writeFileSync(config, "sync: { derivatives: false, intraday: { LX: none } }\n");
    const { unwell, status } = await doctor({ ...env, MDS_CONFIG: config });
    expect(unwell).toEqual([
      "problem scopes: ohlcv lacks read:LX",
      "problem scopes: market_caps lacks read:market-cap",
    ]);
    expect(status).toBe(4);
  });

  it("believes a 403 more than the scopes that the token is said to carry", async () => {
    const env = await service({ faults: "GET /market-cap status 403\n" });
    const { unwell, status } = await doctor(env);
    expect(unwell).toEqual(["problem scopes: market_caps lacks read:market-cap"]);
    expect(status).toBe(4);
  });

  it("exits 75 when the service is not there", async () => {
    const env = await service();
    const refused = await doctor({ ...env, MDS_AUTH_URL: "http://127.0.0.1:9" });
    expect(refused.unwell).toEqual([
      "problem REST token: the service refused the connection (ECONNREFUSED)",
      "problem stream token: the service refused the connection (ECONNREFUSED)",
    ]);
    expect(refused.status).toBe(75);
  });

  it.each([
    ["POST /oauth/token stall", ["problem REST token", "problem stream token"]],
    ["GET /asset stall", ["problem REST"]],
    ["ws upgrade-stall", ["problem stream"]],
    ["ws connected never", ["problem stream"]],
  ])("waits seconds, not minutes, for a service that says nothing: %s", async (faults, troubled) => {
    const clock = new TurnedClock();
    const env = await service({ clock, faults });
    const { unwell, status } = await clock.runUntil(doctor(env, clock));
    expect(unwell).toEqual(troubled.map((check) => `${check}: no answer within 5 seconds`));
    expect(status).toBe(75);
    expect(clock.monotonic()).toBeLessThan(15_000);
  });

  it("warns when the clocks differ", async () => {
    const env = await service({ clock: { ...systemClock, now: () => systemClock.now() + 600_000 } });
    const { unwell, status } = await doctor(env);
    expect(unwell).toEqual([
      expect.stringMatching(/^warning clock: this machine's clock is (9m 5\ds|10m.*) behind the service's$/),
    ]);
    expect(status).toBe(0);
  });

  it("tells what is wrong with the warehouse", async () => {
    const damaged = warehouseWith(usualContent);
    truncateSync(damaged, 3 * 4096);
    const folder = temporaryFolder();
    mkdirSync(join(folder, "mds.sqlite"));
    const [torn, odd] = await Promise.all([
      doctor({ MDS_WAREHOUSE: damaged }),
      doctor({ MDS_WAREHOUSE: join(folder, "mds.sqlite") }),
    ]);
    expect(torn.unwell.at(-1)).toMatch(/^problem warehouse: .*damaged/);
    expect(odd.unwell.at(-1)).toMatch(/^problem warehouse: .* is not a file$/);
  });

  it.each([
    ["a full disk", 0xef53, 1024, "problem disk: only 1 MiB are left: nothing is written", 75],
    ["little space", 0xef53, 900 * 1024, "warning disk: only 900 MiB are left", 0],
    ["a network file system", 0x6969, 2 ** 30, /^problem directory: .*network file system \(NFS\)$/, 2],
  ])("tells of %s", async (_, type, bavail, said, exit) => {
    const info = () => ({ type, bavail, bsize: 1024 });
    const findings = await checkWarehouse(join(temporaryFolder(), "mds.sqlite"), systemClock, info);
    const unwell = findings.filter(({ verdict }) => verdict !== "ok");
    expect(unwell.map(({ check, verdict, message }) => `${verdict} ${check}: ${message}`)).toEqual([
      expect.stringMatching(said),
    ]);
    expect(worstExit(findings)).toBe(exit);
  });
});
