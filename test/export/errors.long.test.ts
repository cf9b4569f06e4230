import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exportInProcess } from "../../src/export/run-export.ts";
import type { Failure } from "../../src/model/failure.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { Transaction } from "../../src/warehouse/tables/transaction.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { exportIn, inCatalogue, shareExport } from "../support/export/read-export.ts";
import { fillEverything, openAt } from "../support/export/sample-data.ts";
import { failureOf } from "../support/failure-of.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { midnight, STEP } from "../support/warehouse/filled-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";

function filled(): string {
  const folder = temporaryFolder();
  const warehouse = openAt(folder);
  warehouse.transaction(fillEverything);
  warehouse.close();
  return folder;
}

const exported = shareExport();
const addTick = (transaction: Transaction) => void writeTicks(transaction, [tick(midnight - 5 * STEP, "7")]);

const run = (cwd: string, args: readonly string[], onTerminal = false) =>
  runInProcess(["export", ...args], { cwd, env: { MDS_WAREHOUSE: "mds.sqlite" }, onTerminal });
const command = (folder: string, ...args: string[]) => run(folder, ["--log-level", "silent", ...args]);

describe("mds-sync export", () => {
  it("F21: refuses to replace the only copy of ticks that 0.2.0 moved out of the warehouse", async () => {
    const folder = filled();
    expect((await command(folder, "--to", "first")).status).toBe(0);
    const files = readdirSync(join(folder, "first"), { recursive: true }).sort();
    const warehouse = openAt(folder);
    const [range] = warehouse.connection.rows<{ series: number; from: number; to: number }>(
      `SELECT series, from_ts AS "from", to_ts AS "to" FROM settled_ranges WHERE stream = 'index_ticks' AND proof = 'rows' LIMIT 1`,
    );
    warehouse.transaction((t) => {
      const ofRange = [range?.series ?? 0, range?.from ?? 0, range?.to ?? 0];
      t.run("DELETE FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ?", ofRange);
      t.run(
        "UPDATE settled_ranges SET proof = 'lost', reason = 'moved' WHERE stream = 'index_ticks' AND series = ? AND from_ts >= ? AND to_ts <= ?",
        ofRange,
      );
    });
    warehouse.close();
    expect(await command(folder, "--to", "first")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("has the only copy of index ticks"),
    });
    expect(readdirSync(join(folder, "first"), { recursive: true }).sort()).toEqual(files);
    expect((await command(folder, "--to", "second")).status).toBe(0);
  });

  it("reports what it wrote, and writes no unchanged file again", async () => {
    const folder = filled();
    const onTerminal = (...args: string[]) => run(folder, ["--to", "out/deep", "--json", ...args], true);
    const first = await onTerminal("--log-level", "debug");
    expect(first).toMatchObject({ status: 0, stderr: expect.stringContaining("file exported") });
    const result = JSON.parse(first.stdout);
    expect(result).toMatchObject({ folder: join(folder, "out/deep"), warehouse: join(folder, "mds.sqlite") });
    expect(result.files_written).toBe(result.files);
    expect(first.stderr).toMatch(
      /out\/deep is up to date: \d+ of \d+ files written, [\d,]+ rows, [\d.]+ KiB in [\d.]+ s\n$/,
    );
    const warehouse = openAt(folder);
    warehouse.transaction(addTick);
    warehouse.close();
    const second = await onTerminal();
    const { rows, months_written } = JSON.parse(second.stdout);
    expect([rows, months_written.length]).toEqual([result.rows + 1, 1]);
    // Beside a progress bar it says less by itself.
    expect(second.stderr).not.toContain("file exported");
  });

  it("refuses unusable folders and warehouses in one line", async () => {
    const folder = temporaryFolder();
    openAt(folder).close();
    writeFileSync(join(folder, "file"), "");
    mkdirSync(join(folder, "mine"));
    writeFileSync(join(folder, "mine/manifest.json"), '{"name":"my site"}');
    mkdirSync(join(folder, "mine/work"));
    const refusals: [string[], number, string][] = [
      [[], 2, "required option '--to <dir>' not specified"],
      [["--to", "file"], 2, "file cannot be written (EEXIST)"],
      [["--to", "mine"], 2, "mine contains other files: choose a new or empty folder"],
      [["--to", "out", "--since", "yesterday"], 2, "--since cannot be yesterday"],
      [["--to", "out", "--keep", "long"], 2, "--keep cannot be long: give a duration such as 90m, 1h or 7d"],
    ];
    for (const [args, status, line] of refusals) {
      const ended = await command(folder, ...args);
      expect(ended.stderr).toContain(line);
      expect(ended).toMatchObject({ status, stdout: "" });
      expect(ended.stderr.split("\n").length).toBe(2);
    }
    expect(readdirSync(join(folder, "mine"))).toEqual(["manifest.json", "work"]);
    const nothing = await runInProcess(["export", "--to", "out"], { cwd: temporaryFolder() });
    expect(nothing.stderr).toContain("nothing is synced yet");
    expect(nothing.status).toBe(4);
  });

  it("of an empty warehouse has every relation and no rows", async () => {
    const folder = temporaryFolder();
    openAt(folder).close();
    await exportIn(folder);
    const catalogue = join(folder, "export/mds.duckdb");
    const relations = ["index_ticks", "ohlcv", "derivative_ticks", "bars_1h", "latest_market_caps", "gaps"];
    const counts = relations.map((relation) => `(SELECT count(*)::INTEGER FROM ${relation})`);
    expect(await inCatalogue(catalogue, `SELECT ${counts.join(", ")}`)).toEqual([relations.map(() => 0)]);
  });

  it("F16: leaves the old export whole when the disk is full, when it is stopped, and when another export holds the folder", async () => {
    const { folder, warehouse } = exported();
    const manifest = join(folder, "export/manifest.json");
    const before = readFileSync(manifest, "utf8");
    warehouse.transaction(addTick);

    const full = await failureOf(
      exportIn(folder, { fileSystem: () => ({ type: 0, bavail: 1000, bsize: 4096 }) }),
    );
    expect(full.exit).toBe(75);
    expect(full.summary).toMatch(
      /^no space for the export in .*: 4 MiB are free, 65 MiB are needed: free some space/,
    );
    const stopping = AbortSignal.abort();
    expect((await failureOf(exportIn(folder, { stopping }))).summary).toMatch(
      /was stopped before it was complete: start it again/,
    );
    expect(readFileSync(manifest, "utf8")).toBe(before);

    let rival: Promise<Failure> | undefined;
    const holder = exportIn(folder, {
      onStep(step) {
        if (step === "started") rival = failureOf(exportIn(folder));
      },
    });
    await holder.catch(() => {});
    const refused = await rival;
    expect(refused?.summary).toMatch(/^another mds-sync exports to .*export \(pid \d+ on .*\): wait for it/);
    expect(refused?.exit).toBe(75);
    expect(readFileSync(manifest, "utf8")).not.toBe(before);
  });

  it("runs in a separate process, and ends at once when it is stopped", async () => {
    const folder = filled();
    const request = { warehouse: join(folder, "mds.sqlite"), to: join(folder, "out"), program: "0.0.0" };
    const run = (more: object = {}, stopping = new AbortController().signal) =>
      exportInProcess({ ...request, ...more }, { clock: systemClock, stopping });
    const result = await run();
    expect(result.files_written).toBe(result.files);
    expect((await failureOf(run({}, AbortSignal.abort()))).code).toBe("stopped");
    const failure = await failureOf(run({ warehouse: join(folder, "nowhere") }));
    expect(failure).toMatchObject({ code: "no_warehouse", exit: 4 });
    expect(existsSync(join(folder, "out/manifest.json"))).toBe(true);
  });
});
