import { copyFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readLastShutdown } from "../../../../src/warehouse/sqlite/shutdown-marker.ts";
import { runInProcess } from "../../../support/cli/run-command.ts";
import { standardContent } from "../../../support/cli/standard-content.ts";
import { startProgram } from "../../../support/program-process.ts";
import { createWarehouse, openForWriting } from "../../../support/warehouse/filled-warehouse.ts";
import { changeFile, queryFile } from "../../../support/warehouse/warehouse-file.ts";

const countTicks = (file: string) => queryFile(file, "SELECT count(*) AS n FROM index_ticks")[0]?.n;

const restore = (path: string, ...args: string[]) =>
  runInProcess(["restore", ...args], { cwd: dirname(path), env: { MDS_WAREHOUSE: path } });

/** A copy of the warehouse, which then loses its rows. */
function copyThenEmpty(path: string): string {
  const copy = join(dirname(path), "copy.sqlite");
  copyFileSync(path, copy);
  changeFile(path, "DELETE FROM index_tick_rows; DELETE FROM settled_ranges");
  return copy;
}

describe("mds-sync restore", () => {
  it("F15: puts a copy in the place of the warehouse and sets the earlier one aside", async () => {
    const path = createWarehouse(standardContent);
    const copy = copyThenEmpty(path);
    const digest = readFileSync(copy);
    const { stdout, stderr, status } = await restore(path, "copy.sqlite", "--json");
    expect([stderr, status]).toEqual([expect.stringContaining("is restored from"), 0]);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ warehouse: path, file: copy, bytes: statSync(path).size });
    expect(report.set_aside).toMatch(/mds\.sqlite\.aside-\d{4}-\d\d-\d\dT\d{6}Z$/);
    expect([countTicks(path), countTicks(report.set_aside)]).toEqual([2, 0]);
    expect(readFileSync(copy).equals(digest)).toBe(true);
    expect(readLastShutdown(path)).toEqual({ kind: "clean" });
    expect(readdirSync(dirname(path)).filter((name) => name.includes("restored"))).toEqual([]);
    // The daemon accepts it.
    openForWriting(path).close();
  });

  it("restores where the warehouse is missing or damaged", async () => {
    const path = createWarehouse(standardContent);
    const copy = copyThenEmpty(path);
    truncateSync(path, 5000);
    expect((await restore(path, copy)).status).toBe(0);
    expect(countTicks(path)).toBe(2);
    const elsewhere = join(dirname(path), "new", "mds.sqlite");
    expect((await restore(elsewhere, copy)).status).toBe(0);
    expect(countTicks(elsewhere)).toBe(2);
  });

  it("refuses with exit 75 while a writer holds the warehouse", async () => {
    const path = createWarehouse(standardContent);
    const copy = copyThenEmpty(path);
    const writer = openForWriting(path);
    const { stderr, status } = await startProgram(["restore", copy], {
      cwd: dirname(path),
      env: { MDS_WAREHOUSE: path },
    }).result;
    writer.close();
    expect(stderr).toMatch(/another mds-sync writes .*mds\.sqlite/);
    expect(status).toBe(75);
    expect(countTicks(path)).toBe(0);
  });

  it("refuses a damaged copy, one of a newer version, and the warehouse itself, and changes nothing", async () => {
    const path = createWarehouse(standardContent);
    const newer = copyThenEmpty(path);
    const before = statSync(path).ino;
    const damaged = join(dirname(path), "damaged.sqlite");
    const bytes = readFileSync(newer);
    bytes.fill(0x55, 8192, 8192 + 4096 * 3);
    writeFileSync(damaged, bytes);
    changeFile(newer, "PRAGMA user_version = 999");
    expect((await restore(path, damaged)).status).toBe(1);
    expect(await restore(path, newer)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("newer version"),
    });
    expect((await restore(path, path)).status).toBe(2);
    expect((await restore(path, "missing.sqlite")).status).toBe(2);
    expect(statSync(path).ino).toBe(before);
  });
});
