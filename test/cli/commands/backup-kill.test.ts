import { readdirSync, readFileSync, statSync, watch, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/runtime/clock.ts";
import { openWarehouse } from "../../../src/warehouse/writer.ts";
import { startProgram } from "../../support/program-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const MEBIBYTE = 1024 * 1024;

/** Large enough that a kill comes long before the copy is whole. */
function folderWithLargeWarehouse(): string {
  const folder = temporaryFolder();
  const path = join(folder, "mds.sqlite");
  openWarehouse(path, { clock: systemClock }).close();
  const database = new Database(path);
  database.exec(`PRAGMA synchronous = OFF; CREATE TABLE ballast (bytes BLOB);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 48)
    INSERT INTO ballast SELECT randomblob(${MEBIBYTE}) FROM n`);
  database.close();
  return folder;
}

function start(folder: string, ...more: string[]) {
  return startProgram(["backup", "copy.sqlite", ...more], {
    cwd: folder,
    env: { MDS_WAREHOUSE: "mds.sqlite" },
  });
}

/** The id of the process that copies, once its unfinished copy is there. */
function copying(folder: string): Promise<number> {
  return new Promise((resolve) => {
    const watcher = watch(folder, (_, name) => {
      const pid = /^copy\.sqlite\.unfinished-(\d+)$/.exec(name ?? "")?.[1];
      if (pid === undefined) return;
      watcher.close();
      resolve(Number(pid));
    });
  });
}

const copies = (folder: string) => readdirSync(folder).filter((name) => name.startsWith("copy"));

describe("a backup that is cut short", () => {
  it("by kill -9 of what copies leaves no copy, and says so", async () => {
    const folder = folderWithLargeWarehouse();
    const begun = copying(folder);
    const { ended } = start(folder);
    process.kill(await begun, "SIGKILL");
    const { stderr, status } = await ended;
    expect(stderr).toMatch(
      /^mds-sync: the copy to .*copy\.sqlite was stopped before it was whole: start it again\n$/,
    );
    expect(status).toBe(75);
    expect(copies(folder)).toEqual([]);
  });

  it("by kill -9 of everything leaves the old copy as it was, and the next one clears up", async () => {
    const folder = folderWithLargeWarehouse();
    const copy = join(folder, "copy.sqlite");
    writeFileSync(copy, "the old copy");
    const begun = copying(folder);
    const { child, ended } = start(folder, "--force");
    const pid = await begun;
    // Stopped first, so that neither of the two can clear up after the other.
    child.kill("SIGSTOP");
    process.kill(pid, "SIGKILL");
    child.kill("SIGKILL");
    await ended;
    expect(readFileSync(copy, "utf8")).toBe("the old copy");
    expect(copies(folder)).toContain(`copy.sqlite.unfinished-${pid}`);
    expect((await start(folder, "--force").ended).status).toBe(0);
    expect(copies(folder)).toEqual(["copy.sqlite"]);
    expect(statSync(copy).size).toBeGreaterThan(48 * MEBIBYTE);
  });

  it("by SIGTERM ends at once, leaves nothing, and does not call that a success", async () => {
    const folder = folderWithLargeWarehouse();
    const begun = copying(folder);
    const { child, ended } = start(folder);
    await begun;
    child.kill("SIGTERM");
    expect((await ended).status).toBe(75);
    expect(copies(folder)).toEqual([]);
  });
});
