import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { runInProcess } from "../../support/cli/run-command.ts";
import { startBackfillHarness } from "../../support/sync/backfill-harness.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

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

describe("mds-sync verify after a mass withdrawal", () => {
  it("H5: reports it every time with exit 4, and believes it at once with --accept", async () => {
    const engine = await startBackfillHarness({
      settings: `sync: { exchangeTickers: false, derivatives: false, marketCap: false, ohlcv: false,
        intraday: { GWA: [BTC], MWA: none, LX: none, days: 1 } }`,
    });
    await engine.run();
    engine.simulator.setFaults(
      "GET /index-ticker withdraw since=2026-03-01T00:00:00Z until=2026-03-01T08:00:00Z",
    );
    const run = (...args: string[]) =>
      engine.clock.runUntil(
        runInProcess(["verify", "--all", ...args], {
          env: engine.env,
          cwd: dirname(engine.path),
          clock: engine.clock,
        }),
      );
    for (let turn = 0; turn < 2; turn++) {
      const { status, stdout } = await run();
      expect(status).toBe(4);
      expect(stdout.replaceAll(/\s+/g, " ")).toContain("960 more are unconfirmed and stay");
      expect(stdout).not.toContain("no difference");
      expect(stdout).not.toContain("repaired");
    }
    expect(JSON.parse((await run("--json")).stdout).differences).toMatchObject([{ unconfirmed: 960 }]);
    const accepted = await run("--accept");
    expect(accepted.status).toBe(0);
    expect(accepted.stdout).toContain("1 range differed and was repaired");
    expect((await run()).stdout).toContain("no difference");
  });
});
