import { readdirSync, readFileSync, rmSync, statSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startProgram } from "../../../support/program-process.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";
import { copyEmptyWarehouse } from "../../../support/warehouse/empty-warehouse.ts";
import { changeFile } from "../../../support/warehouse/warehouse-file.ts";

const MEBIBYTE = 1024 * 1024;

/** Its warehouse is so large that a kill comes long before the copy is complete. */
const folder = temporaryFolder(afterAll);
beforeAll(() => {
  const path = join(folder, "mds.sqlite");
  copyEmptyWarehouse(path);
  changeFile(
    path,
    `PRAGMA synchronous = OFF; CREATE TABLE ballast (bytes BLOB);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 48)
    INSERT INTO ballast SELECT randomblob(${MEBIBYTE}) FROM n`,
  );
});

function start(...more: string[]) {
  return startProgram(["backup", "copy.sqlite", ...more], {
    cwd: folder,
    env: { MDS_WAREHOUSE: "mds.sqlite" },
  });
}

/** Waits for the unfinished copy; returns the id of the process that writes it. */
function waitForCopy(): Promise<number> {
  return new Promise((resolve) => {
    const watcher = watch(folder, (_, name) => {
      const pid = /^copy\.sqlite\.unfinished-(\d+)$/.exec(name ?? "")?.[1];
      if (pid === undefined) return;
      watcher.close();
      resolve(Number(pid));
    });
  });
}

const copies = () => readdirSync(folder).filter((name) => name.startsWith("copy"));

describe("a backup that is interrupted", () => {
  it("by kill -9 of the copying process leaves no copy and reports the failure", async () => {
    const copyStarted = waitForCopy();
    const { result: ended } = start();
    process.kill(await copyStarted, "SIGKILL");
    const { stderr, status } = await ended;
    expect(stderr).toMatch(
      /^mds-sync: the copy to .*copy\.sqlite was stopped before it was complete: start it again\n$/,
    );
    expect(status).toBe(75);
    expect(copies()).toEqual([]);
  });

  it("by kill -9 of both processes leaves the old copy unchanged, and the next backup cleans up", async () => {
    const copy = join(folder, "copy.sqlite");
    writeFileSync(copy, "the old copy");
    const copyStarted = waitForCopy();
    const { child, result: ended } = start("--force");
    const pid = await copyStarted;
    // Stop the parent first, so that it cannot clean up after the child.
    child.kill("SIGSTOP");
    process.kill(pid, "SIGKILL");
    child.kill("SIGKILL");
    await ended;
    expect(readFileSync(copy, "utf8")).toBe("the old copy");
    expect(copies()).toContain(`copy.sqlite.unfinished-${pid}`);
    expect((await start("--force").result).status).toBe(0);
    expect(copies()).toEqual(["copy.sqlite"]);
    expect(statSync(copy).size).toBeGreaterThan(48 * MEBIBYTE);
    rmSync(copy);
  });

  it("by SIGTERM ends at once with exit 75, and leaves no file", async () => {
    const copyStarted = waitForCopy();
    const { child, result: ended } = start();
    await copyStarted;
    child.kill("SIGTERM");
    expect((await ended).status).toBe(75);
    expect(copies()).toEqual([]);
  });
});
