import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { expectNarrow, unwrap } from "../../support/cli/expect-output.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { type ProgramResult, startProgram } from "../../support/program-process.ts";
import { serviceEnv } from "../../support/sync/sync-session.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { timeLimit } from "../../support/time-limit.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../../support/warehouse/empty-warehouse.ts";
import { changeFile } from "../../support/warehouse/warehouse-file.ts";

async function setUp(sync: string, { faults = [] as readonly Fault[], isNew = false } = {}) {
  const simulator = await startSimulator({ faults, quirks: { compression: "none" } });
  onTestFinished(() => simulator.stop());
  const folder = temporaryFolder();
  writeFileSync(join(folder, "mds-sync.yaml"), sync);
  const env = { ...serviceEnv(simulator), MDS_WAREHOUSE: join(folder, "mds.sqlite") };
  if (!isNew) copyEmptyWarehouse(env.MDS_WAREHOUSE, viewsBesideSync);
  return { simulator, folder, env, path: env.MDS_WAREHOUSE };
}
type Setup = Awaited<ReturnType<typeof setUp>>;

/** In a process of its own, for signals and locks. */
const start = ({ folder, env }: Setup, ...args: string[]) => startProgram(args, { cwd: folder, env });

const run = ({ folder, env }: Setup, args: string[], extra: Record<string, string> = {}) =>
  runInProcess(args, { cwd: folder, env: { ...env, ...extra } });

/** Waits until the simulator has received so many requests for tick pages. */
async function waitForPages(simulator: Simulator, pages: number): Promise<void> {
  await waitUntil(() => simulator.requests.count("/v3/index-ticker") >= pages, 5);
}

/** What a report in JSON has of the index ticks. */
const ticksOf = ({ stdout }: ProgramResult) =>
  JSON.parse(stdout).streams.find(({ stream }: { stream: string }) => stream === "index_ticks");

const ticks = (days: number) =>
  `sync: { ohlcv: false, exchangeTickers: false, derivatives: false, intraday: { GWA: [BTC], MWA: none, LX: none, days: ${days} } }`;

describe("mds-sync backfill", () => {
  it("fills the warehouse and reports on 80 columns; a second run reports in JSON that nothing was missing", async () => {
    const setup = await setUp(ticks(1), { isNew: true });
    const first = await start(setup, "backfill").result;
    expect(first.status).toBe(0);
    expect(first.stdout).toMatch(/^stream +new rows +changed +requests +gaps left +rejects$/m);
    expect(first.stdout).toMatch(/^index_ticks +2,8\d\d +0 +\d +0 +0$/m);
    expectNarrow(first.stdout);
    for (const line of first.stderr.trim().split("\n")) expect(() => JSON.parse(line)).not.toThrow();

    const again = await run(setup, ["backfill", "--json", "--log-level", "warn"]);
    expect(again).toMatchObject({ status: 0, stderr: "" });
    expect(JSON.parse(again.stdout)).toMatchObject({ exit: 0, problems: [] });
    const own = ticksOf(again);
    expect(own).toMatchObject({ open: 0, changed: 0, rejected: 0 });
    expect(own.requests).toBeLessThanOrEqual(1);
  });

  it("H1: exits 0 if the service has not published its newest records yet, and says so", async () => {
    const setup = await setUp(ticks(1), { faults: [Fault.lag(30 * 60_000, { on: "/index-ticker" })] });
    const { stdout, status } = await run(setup, ["backfill", "--no-progress"]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^index_ticks +\d,\d{3} +0 +\d +0 +0$/m);
    expect(stdout).toMatch(/^index_ticks {2}1 head not published yet by the service, at most (28|29)m/m);
    expectNarrow(stdout);
    const own = ticksOf(await run(setup, ["backfill", "--json", "--log-level", "warn"]));
    expect(own).toMatchObject({ open: 0, not_published_yet: 1 });
    expect(own.not_published_seconds).toBeGreaterThan(1600);
  });

  it("H15: a first run of a series younger than the window is complete, and so is the next", async () => {
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const setup = await setUp(ticks(200), { faults: [Fault.begins(since, { on: "/index-ticker" })] });
    for (const turn of ["first", "next"]) {
      const ended = await run(setup, ["backfill", "--json", "--log-level", "warn"]);
      expect({ turn, status: ended.status, own: ticksOf(ended) }).toMatchObject({
        turn,
        status: 0,
        own: { open: 0, unconfirmed: 1 },
      });
    }
    const { stdout } = await run(setup, ["gaps", "--json", "--stream", "index_ticks"]);
    expect(JSON.parse(stdout)[0]).toMatchObject({
      ...{ state: "unconfirmed", reason: "end unconfirmed", lost_at: null },
      to_time: expect.stringContaining(since.slice(0, 10)),
    });
  });

  it("H15: says what is unconfirmed, and what it has asked once more on a later day", async () => {
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const setup = await setUp(ticks(1), { faults: [Fault.begins(since, { on: "/index-ticker" })] });
    /** Yesterday's run. */
    const passDay = () =>
      changeFile(
        setup.path,
        `UPDATE job_runs SET scheduled_at = scheduled_at - 86400000000;
        UPDATE pending_claims SET first_at = first_at - 86400000000, last_at = last_at - 86400000000`,
      );
    const first = await run(setup, ["backfill", "--no-progress"]);
    expect(first.status).toBe(0);
    const unconfirmed = /1 series: start of history not confirmed yet; the next run after .* UTC asks again/;
    expect(unwrap(first.stdout)).toMatch(unconfirmed);
    expect(first.stdout).not.toContain("compared");
    expect(unwrap((await run(setup, ["status"])).stdout)).toMatch(unconfirmed);
    const gaps = (await run(setup, ["gaps", "--stream", "index_ticks"])).stdout;
    expect(gaps).toMatch(/ unconfirmed +end unconfirmed/);
    expect(unwrap(gaps)).toMatch(unconfirmed);
    const verified = unwrap((await run(setup, ["verify", "--all"])).stdout);
    expect(verified).toContain(
      "no difference in what is proven; 1 series: start of history not confirmed yet",
    );
    passDay();
    expect((await run(setup, ["backfill", "--no-progress"])).stdout).not.toContain("confirmed");
    passDay();
    setup.simulator.setFaults();
    const third = await run(setup, ["backfill", "--no-progress"]);
    expectNarrow(third.stdout);
    const text = third.stdout.replaceAll(/\n {2,}/g, " ");
    expect(text).toMatch(
      /^- \d settled ranges? compared with the service \(all of them\): [\d,]+ rows were missing/m,
    );
    expect(text).toContain("- 1 end of a history requested again: 1 has older records now");
    passDay();
    const { compared } = JSON.parse((await run(setup, ["backfill", "--json", "--log-level", "warn"])).stdout);
    expect(compared).toMatchObject({ nights: 1, missing: 0, changed: 0, ends: { asked: 0 } });
  });

  it("G1: refuses another run in one line, stops within seconds on SIGTERM with exit 75, and the next run completes the work", async () => {
    const setup = await setUp(ticks(1), {
      faults: [Fault.sizeCap(300, { on: "/index-ticker" }), Fault.stall({ on: "/index-ticker", after: 5 })],
    });
    const { child, result: ended } = start(setup, "backfill", "--log-level", "warn");
    await waitForPages(setup.simulator, 6);
    const second = await run(setup, ["backfill"]);
    expect(second.status).toBe(75);
    expect(second.stderr.trim().split("\n")).toHaveLength(1);
    expect(second.stderr).toContain("mds.sqlite");

    const startedAt = performance.now();
    child.kill("SIGTERM");
    const { status, stdout, stderr } = await ended;
    expect(performance.now() - startedAt).toBeLessThan(timeLimit(5_000));
    expect({ status, stdout }).toEqual({ status: 75, stdout: "" });
    expect(stderr).toBe(
      "mds-sync: stopped by SIGTERM before its work was done: run it again: it resumes where it stopped\n",
    );
    setup.simulator.setFaults();
    expect((await run(setup, ["backfill"])).status).toBe(0);
  });

  it("exits 3 at the first rejection of the credentials, and 2 when they are not set", async () => {
    const setup = await setUp(ticks(1));
    const wrong = await run(setup, ["backfill", "--log-level", "silent"], { MDS_CLIENT_SECRET: "canary-5b" });
    expect(setup.simulator.requests.count("/v3/oauth/token")).toBe(1);
    expect(wrong.status).toBe(3);
    expect(wrong.stderr).toMatch(/^mds-sync: the token endpoint rejected the credentials[^\n]*\n$/);
    expect(wrong.stderr).not.toContain("canary-5b");
    const unset = await run(setup, ["backfill"], { MDS_CLIENT_SECRET: "", MDS_BASE_URL: "" });
    expect(unset).toMatchObject({ status: 2, stdout: "" });
  });

  it("names what could not be synced, and exits 4", async () => {
    const setup = await setUp(ticks(1).replace("[BTC]", "[BTC, BITCON]"));
    const { status, stdout, stderr } = await run(setup, ["backfill", "--log-level", "error"]);
    expect(status).toBe(4);
    expect(stdout).toMatch(/^- index_ticks \(sync\.intraday\.GWA\): sync\.intraday\.GWA names BITCON/m);
    expect(stderr).toMatch(/^mds-sync: not everything selected could be synced[^\n]*\n$/);
  });
});

describe("mds-sync plan", () => {
  it("estimates the requests and rows of a backfill closely, and writes nothing", async () => {
    const setup = await setUp(ticks(5), { isNew: true });
    const planned = await run(setup, ["plan", "--json"]);
    expect(planned).toMatchObject({ status: 0, stderr: "" });
    expect(existsSync(setup.path)).toBe(false);
    const own = ticksOf(planned);
    expect(own).toMatchObject({ series: 1, holes: 1 });

    setup.simulator.requests.clear();
    const did = ticksOf(await run(setup, ["backfill", "--json"]));
    // The last page reaches below the range; its rows are stored too.
    expect(Math.abs(did.rows - own.rows)).toBeLessThan(2000);
    expect(Math.abs(did.requests - own.requests)).toBeLessThanOrEqual(2);

    setup.simulator.requests.clear();
    const after = await run(setup, ["plan"], { MDS_BASE_URL: "", MDS_CLIENT_SECRET: "" });
    expect(after).toMatchObject({ status: 0, stderr: "" });
    expect(setup.simulator.requests.total).toBe(0);
    expectNarrow(after.stdout);
  });

  it("names the missing setting if there is neither a filled warehouse nor a service", async () => {
    const setup = await setUp(ticks(1), { isNew: true });
    writeFileSync(setup.path, "");
    const { status, stderr } = await run(setup, ["plan"], { MDS_BASE_URL: "" });
    expect(status).toBe(2);
    expect(stderr).toMatch(/^mds-sync: service\.baseUrl is not set: [^\n]*\n$/);
  });
});
