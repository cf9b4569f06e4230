import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { unwrap } from "../../support/cli/expect-output.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { addLookups } from "../../support/cli/standard-content.ts";
import { startBackfillHarness } from "../../support/sync/backfill-harness.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import {
  createWarehouse,
  fill,
  HOUR,
  nowTs,
  openForWriting,
} from "../../support/warehouse/filled-warehouse.ts";
import { changeFile } from "../../support/warehouse/warehouse-file.ts";

const service = {
  MDS_BASE_URL: "http://127.0.0.1:9",
  MDS_WS_URL: "ws://127.0.0.1:9",
  MDS_CLIENT_ID: "kestrel",
  MDS_CLIENT_SECRET: "secret",
};

describe("mds-sync verify", () => {
  it.each([
    ["no file at all", undefined, 4, /there is no warehouse at .*: nothing is synced yet/],
    ["an empty file", "", 4, /is empty: nothing is synced yet/],
    ["something else", "not a database, by far not".repeat(99), 2, /is not an SQLite database/],
  ])("rejects %s, and leaves it unchanged", async (_, content, exit, line) => {
    const folder = temporaryFolder();
    const path = join(folder, "mds.sqlite");
    if (content !== undefined) writeFileSync(path, content);
    const { status, stdout, stderr } = await runInProcess(["verify"], {
      env: { ...service, MDS_WAREHOUSE: path },
      cwd: folder,
    });
    expect({ status, stdout }).toEqual({ status: exit, stdout: "" });
    expect(stderr).toMatch(line);
    expect(existsSync(path) ? readFileSync(path, "utf8") : undefined).toBe(content);
    expect(readdirSync(folder)).toEqual(content === undefined ? [] : ["mds.sqlite"]);
  });
});

/** A day of ticks of one series, fetched, and `verify --all` against the same service. */
async function startVerify() {
  const engine = await startBackfillHarness({
    settings: `sync: { exchangeTickers: false, derivatives: false, marketCap: false, ohlcv: false,
      intraday: { GWA: [BTC], MWA: none, LX: none, days: 1 } }`,
  });
  await engine.run();
  const run = (...args: string[]) =>
    engine.clock.runUntil(
      runInProcess(["verify", "--all", ...args], {
        env: engine.env,
        cwd: dirname(engine.path),
        clock: engine.clock,
      }),
    );
  return { engine, run };
}

describe("mds-sync verify after the service has added a property", () => {
  it("D1: tells the property apart from the figures, stores it, and calls only a changed figure a difference", async () => {
    const { engine, run } = await startVerify();
    const [row] = engine.query("SELECT min(ts) + 3600000000 AS ts FROM index_ticks");
    changeFile(engine.path, `UPDATE index_tick_rows SET price = price + 1 WHERE ts = ${row?.ts}`);
    engine.simulator.setFaults(Fault.set("venues", 7, { on: "/index-ticker" }));
    const { status, stdout } = await run();
    expect(status).toBe(0);
    const text = unwrap(stdout);
    expect(text).toContain("0 were missing, 1 differed, 0 are no longer served");
    expect(text).toContain("1 range differed and was repaired");
    expect(text).toMatch(/72\d rows have other undocumented properties now: stored in `extra`/);
    expect(engine.query("SELECT count(*) AS n FROM revisions")).toEqual([{ n: 1 }]);
    expect(engine.query(`SELECT extra FROM index_ticks WHERE ts = ${row?.ts}`)).toEqual([
      { extra: '{"venues":7}' },
    ]);

    engine.simulator.setFaults(Fault.set("venues", 8, { on: "/index-ticker" }));
    const json = JSON.parse((await run("--json")).stdout);
    expect(json).toMatchObject({ differences: [], extra_changed: json.rows });
    expect((await run()).stdout).toMatch(/^\d ranges compared, 72\d rows\nno difference\n$/);
    expect(engine.query("SELECT count(*) AS n FROM revisions")).toEqual([{ n: 1 }]);
  });
});

describe("mds-sync verify after a mass withdrawal", () => {
  it("H5: reports it every time with exit 4, and believes it at once with --accept", async () => {
    const { engine, run } = await startVerify();
    engine.simulator.setFaults(
      Fault.withdraw("2026-03-01T00:00:00Z", "2026-03-01T08:00:00Z", { on: "/index-ticker" }),
    );
    for (let turn = 0; turn < 2; turn++) {
      const { status, stdout } = await run();
      expect(status).toBe(4);
      expect(unwrap(stdout)).toContain("240 more are unconfirmed and stay");
      expect(stdout).not.toContain("no difference");
      expect(stdout).not.toContain("repaired");
    }
    expect(JSON.parse((await run("--json")).stdout).differences).toMatchObject([{ unconfirmed: 240 }]);
    const accepted = await run("--accept");
    expect(accepted.status).toBe(0);
    expect(accepted.stdout).toContain("1 range differed and was repaired");
    expect((await run()).stdout).toContain("no difference");
  });
});

describe("mds-sync verify --ledger", () => {
  const verifyLedger = (path: string, ...flags: string[]) =>
    runInProcess(["verify", "--ledger", ...flags], { env: { MDS_WAREHOUSE: path } });
  const createProven = () =>
    createWarehouse((transaction) => {
      addLookups(transaction);
      fill(transaction, {
        series: [{ from: nowTs - 10 * HOUR, settled: [[nowTs - 10 * HOUR, nowTs - 9 * HOUR]] }],
      });
    });
  const disprove = (path: string) =>
    changeFile(path, "UPDATE settled_ranges SET proof = 'empty', reason = 'no records'");

  it("needs no service and exits 0 if the ledger is sound", async () => {
    const { status, stdout, stderr } = await verifyLedger(createProven());
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toBe(
      "1 settled range of 1 series checked\nthe ledger agrees with itself, with the rows and with the views\n",
    );
  });

  it("names each broken rule with its series and range, changes nothing, and exits 4 with the remedy", async () => {
    const path = createProven();
    disprove(path);
    const { status, stdout, stderr } = await verifyLedger(path);
    expect(status).toBe(4);
    expect(stdout).toMatch(/index_ticks GWA BTC, \S+Z to \S+Z:\s+covered\s+as\s+empty \(no records\)/);
    expect(stderr).toContain("verify --ledger --repair");
    const report = JSON.parse((await verifyLedger(path, "--json")).stdout);
    expect(report).toMatchObject({ series: 1, ranges: 1, remarks: [] });
    expect(report.findings).toMatchObject([
      { rule: "row_in_empty", stream: "index_ticks", index_type: "GWA", index_id: "btc-id", name: "BTC" },
    ]);
  });

  it("--repair takes the claim back, so that the range is open, and the next check finds nothing", async () => {
    const path = createProven();
    disprove(path);
    const { status, stdout } = await verifyLedger(path, "--repair");
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining("1 claim taken back") });
    expect(JSON.parse((await verifyLedger(path, "--json")).stdout)).toMatchObject({
      ranges: 0,
      findings: [],
    });
    const gaps = await runInProcess(["gaps", "--json"], { env: { MDS_WAREHOUSE: path } });
    expect(JSON.parse(gaps.stdout)[0]).toMatchObject({ state: "open", reason: "pending" });
  });

  it("checks beside a running writer, but repairs only without one", async () => {
    const path = createProven();
    disprove(path);
    const writer = openForWriting(path);
    try {
      expect((await verifyLedger(path)).status).toBe(4);
      expect((await verifyLedger(path, "--repair")).status).toBe(75);
    } finally {
      writer.close();
    }
  });
});
