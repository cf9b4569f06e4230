import { mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { worstExit } from "../../../src/cli/commands/doctor/finding.ts";
import { checkWarehouse } from "../../../src/cli/commands/doctor/warehouse-checks.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import { Fault } from "../../simulator/faults.ts";
import { type SimulatorOptions, startSimulator } from "../../simulator/simulator.ts";
import { expectNarrow, unwrap } from "../../support/cli/expect-output.ts";
import { runInChild, runInProcess } from "../../support/cli/run-command.ts";
import { contentOfOtherService, standardContent } from "../../support/cli/standard-content.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { serviceEnv } from "../../support/sync/sync-session.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { createWarehouse } from "../../support/warehouse/filled-warehouse.ts";

const secret = "canary-secret-51c";

async function startService(options: SimulatorOptions = {}) {
  const simulator = await startSimulator({ clientSecret: secret, ...options });
  onTestFinished(() => simulator.stop());
  return { ...serviceEnv(simulator), MDS_WAREHOUSE: join(temporaryFolder(), "mds.sqlite") };
}

async function doctor(env: Record<string, string>, clock?: Clock) {
  const { stdout, stderr, status } = await runInProcess(["doctor", "--json"], {
    env,
    ...(clock && { clock }),
  });
  expect(stdout + stderr).not.toContain(secret);
  const { checks } = JSON.parse(stdout) as {
    checks: { check: string; verdict: string; message: string; remedy: string | null }[];
  };
  const notOk = checks.filter(({ verdict }) => verdict !== "ok");
  for (const { remedy } of notOk) expect(remedy).toBeTruthy();
  return {
    status,
    stderr,
    checks: checks.map(({ check, verdict }) => `${verdict} ${check}`),
    notOk: notOk.map(({ check, verdict, message }) => `${verdict} ${check}: ${message}`),
  };
}

const allOk = (...checks: string[]) => checks.map((check) => `ok ${check}`);
const okService = allOk("REST token", "live token", "REST", "live feed", "scopes", "clock", "selectors");
const okWarehouse = allOk("warehouse", "directory", "disk");

describe("mds-sync doctor", () => {
  it("reports a healthy setup on 80 columns, without the secret, and exits", async () => {
    const env = { ...(await startService()), MDS_WAREHOUSE: createWarehouse() };
    const { stdout, stderr, status } = await runInChild(["doctor"], { env });
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expectNarrow(stdout);
    expect(stdout).not.toContain(secret);
    expect(stdout).toMatch(/^ok {7}settings {6}no settings file: built-in defaults and the environment$/m);
    expect(stdout).toMatch(/^ok {7}REST token {4}granted for http:\S+, valid for (1d|23h 59m)$/m);
    expect(stdout).toMatch(/^ok {7}disk {10}[\d.]+ [GM]iB are free$/m);
    expect(stdout).toMatch(/no damage found$/m);
  });

  it("accepts a missing warehouse, and creates none", async () => {
    const { checks, status } = await doctor(await startService());
    expect(checks).toEqual(["ok settings", "ok secret", ...okService, ...okWarehouse]);
    expect(status).toBe(0);
  });

  const credentials = "the token endpoint rejected the credentials (401)";
  const refusal = "127.0.0.1:9 refused the connection (ECONNREFUSED)";
  const withConfig = (sync: string) => {
    const file = join(temporaryFolder(), "mds-sync.yaml");
    writeFileSync(file, `sync: { ${sync} }\n`);
    return { MDS_CONFIG: file };
  };
  it.each<[env: Record<string, string>, exit: number, notOk: readonly unknown[], service?: SimulatorOptions]>(
    [
      [{ MDS_HTTP_PORT: "x" }, 2, ['problem settings: MDS_HTTP_PORT: http.port cannot be "x"']],
      [{ MDS_CLIENT_SECRET: "" }, 2, ["problem service: the client secret is not set"]],
      [
        { MDS_CLIENT_SECRET: "", MDS_CLIENT_SECRET_FILE: "/nowhere/secret" },
        2,
        ["problem service: the secret file /nowhere/secret cannot be read (ENOENT)"],
      ],
      [
        { MDS_CLIENT_SECRET: `${secret}-old` },
        3,
        [`problem REST token: ${credentials}`, `problem live token: ${credentials}`],
      ],
      [
        { MDS_AUTH_URL: "http://127.0.0.1:9" },
        75,
        [`problem REST token: ${refusal}`, `problem live token: ${refusal}`],
      ],
      [
        {},
        0,
        [
          expect.stringMatching(
            /^warning clock: this machine's clock is (9m 5\ds|10m.*) behind the service's$/,
          ),
        ],
        { clock: { ...systemClock, now: () => systemClock.now() + 600_000 } },
      ],
    ],
  )("with %j exits %i", async (more, exit, notOk, service) => {
    const found = await doctor({ ...(await startService(service)), ...more });
    expect(found).toMatchObject({ notOk, status: exit });
    const problems = notOk.length === 1 ? "1 problem" : `${notOk.length} problems`;
    const line = `mds-sync: ${problems} found: the report has a remedy for each\n`;
    expect(found.stderr).toBe(exit === 0 ? "" : line);
  });

  it("warns of a secret file that others can read, and exits 0", async () => {
    const file = join(temporaryFolder(), "secret");
    writeFileSync(file, secret, { mode: 0o644 });
    const env = { ...(await startService()), MDS_CLIENT_SECRET: "", MDS_CLIENT_SECRET_FILE: file };
    const notOk = [`warning settings: the secret file ${file} can be read by other users`];
    expect(await doctor(env)).toMatchObject({ notOk, status: 0 });
  });

  it("exits 4 and names the streams that lack a scope, but only those that the settings select", async () => {
    const env = await startService({ scopes: ["read:ohlcv", "read:index-ticker", "read:exchange-ticker"] });
    const config = withConfig("derivatives: false, intraday: { LX: none }");
    const lacking = ["ohlcv lacks read:LX", "market_caps lacks read:market-cap"];
    const notOk = lacking.map((text) => `problem scopes: ${text}`);
    expect(await doctor({ ...env, ...config })).toMatchObject({ notOk, status: 4 });
  });

  it("trusts a 403 more than the scopes of the token", async () => {
    // It waits some seconds before it asks again.
    const clock = new ManualClock();
    const env = await startService({ clock, faults: [Fault.status(403, { on: "/market-cap" })] });
    const { notOk, status } = await clock.runUntil(doctor(env, clock));
    expect(notOk).toEqual(["problem scopes: market_caps lacks read:market-cap"]);
    expect(status).toBe(4);
  });

  it.each([
    [Fault.stall({ on: "/oauth/token" }), ["problem REST token", "problem live token"]],
    [Fault.stall({ on: "/asset" }), ["problem REST"]],
    [Fault.upgradeStall(), ["problem live feed"]],
    [Fault.connected("never"), ["problem live feed"]],
  ])("waits seconds, not minutes, for a service that does not answer: $0.name", async (fault, failed) => {
    const clock = new ManualClock();
    const env = await startService({ clock, faults: [fault] });
    const { notOk, status } = await clock.runUntil(doctor(env, clock));
    expect(notOk).toEqual(failed.map((check) => `${check}: no answer within 5 seconds`));
    expect(status).toBe(75);
    expect(clock.monotonic()).toBeLessThan(15_000);
  });

  it("reports a damaged warehouse, and a path that is not a file", async () => {
    const damaged = createWarehouse(standardContent);
    truncateSync(damaged, 3 * 4096);
    const folder = temporaryFolder();
    mkdirSync(join(folder, "mds.sqlite"));
    const [torn, odd] = await Promise.all([
      doctor({ MDS_WAREHOUSE: damaged }),
      doctor({ MDS_WAREHOUSE: join(folder, "mds.sqlite") }),
    ]);
    expect(torn.notOk.at(-1)).toMatch(/^problem warehouse: .*damaged/);
    expect(odd.notOk.at(-1)).toMatch(/^problem warehouse: .* is not a file$/);
  });

  it.each([
    ["a full disk", 0xef53, 1024, "problem disk: only 1 MiB are free: nothing is written", 75],
    ["little space", 0xef53, 900 * 1024, "warning disk: only 900 MiB are free", 0],
    ["a network file system", 0x6969, 2 ** 30, /^problem directory: .*network file system \(NFS\)$/, 2],
  ])("reports %s", async (_, type, bavail, message, exit) => {
    const info = () => ({ type, bavail, bsize: 1024 });
    const findings = await checkWarehouse(join(temporaryFolder(), "mds.sqlite"), systemClock, info);
    const notOk = findings.filter(({ verdict }) => verdict !== "ok");
    expect(notOk.map(({ check, verdict, message }) => `${verdict} ${check}: ${message}`)).toEqual([
      expect.stringMatching(message),
    ]);
    expect(worstExit(findings)).toBe(exit);
  });

  it("names every selector that the service does not list, with suggestions, and names that several have", async () => {
    const selectors = [
      "ohlcv: { GWA: [BCT, LUNA], MWA: [SOL/UDS], LX: none }",
      "exchangeTickers: { exchanges: [Krakne], markets: all }",
      "derivatives: { exchanges: [Xyzzyplugh] }",
    ];
    const env = { ...(await startService()), ...withConfig(selectors.join(", ")) };
    const { status, notOk } = await doctor(env);
    expect(status).toBe(4);
    expect(notOk).toEqual([
      "problem selectors: sync.ohlcv.GWA names BCT (did you mean BTC?), which the service does not list",
      "warning selectors: sync.ohlcv.GWA: several have the name LUNA, and all of them are selected",
      "problem selectors: sync.ohlcv.MWA names SOL/UDS (did you mean SOL/USD?), which the service does not list",
      "problem selectors: sync.exchangeTickers.exchanges names Krakne (did you mean Kraken?), which the service does not list",
      "problem selectors: sync.derivatives.exchanges names Xyzzyplugh, which the service does not list: check the spelling",
    ]);
    const { stdout } = await runInProcess(["plan", "--offline"], { env });
    expect(unwrap(stdout)).toContain("names Krakne (did you mean Kraken?)");
  });

  it("names the run that fetches a ranking, if the settings select one", async () => {
    const path = createWarehouse(standardContent);
    const remedy = async (sync: string) => {
      const env = { MDS_WAREHOUSE: path, ...withConfig(sync) };
      const { stdout } = await runInProcess(["doctor"], { env });
      return /no ranking is known.*?→ ([^→]*?)(?:problem|ok) /.exec(unwrap(stdout))?.[1];
    };
    expect(await remedy("intraday: { GWA: { top: 5 } }")).toContain("run `mds-sync backfill` once");
    expect(await remedy("intraday: { GWA: { top: 5 } }, marketCap: false")).toContain(
      "select `marketCap` too",
    );
  });

  it("F19: names the service of the warehouse, and refuses another one with exit 2", async () => {
    const env = await startService();
    const path = createWarehouse(contentOfOtherService);
    const { status, notOk } = await doctor({ ...env, MDS_WAREHOUSE: path });
    expect(status).toBe(2);
    expect(notOk).toContainEqual(
      expect.stringMatching(/^problem identity: .* has the data of https:\/\/prod\.test/),
    );
    const { checks } = await doctor({ MDS_WAREHOUSE: path });
    expect(checks).toContain("ok identity");
    const { stdout } = await runInProcess(["status"], { env: { MDS_WAREHOUSE: path } });
    expect(unwrap(stdout)).toContain(`${path} of https://prod.test`);
  });
});
