import { copyFileSync, openSync, statSync, utimesSync, writeSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { inspectFile } from "../../../src/warehouse/integrity.ts";
import { readLastShutdown } from "../../../src/warehouse/sqlite/shutdown-marker.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { copyEmptyWarehouse } from "../../support/warehouse/empty-warehouse.ts";
import { catchFailure } from "../../support/warehouse/open-warehouse.ts";

const clock = new ManualClock();
const open = (path: string, mayDeferCheck = false) => openWriter(path, { clock, mayDeferCheck });

const inspect = (path: string, options?: { mayDeferCheck: boolean }) => inspectFile(path, 0, options);

function closedWarehouse(): string {
  const path = join(temporaryFolder(), "mds.sqlite");
  copyEmptyWarehouse(path);
  open(path).close();
  return path;
}

/** Makes the file larger than `MAX_IMMEDIATE_CHECK_BYTES`. */
function growBeyondImmediateCheck(path: string): void {
  const database = new Database(path);
  database.exec("CREATE TABLE ballast (bytes BLOB); INSERT INTO ballast VALUES (zeroblob(80000000))");
  database.close();
}

describe("the last shutdown", () => {
  it("is unclean while a writer is open, and therefore after a crash at any time", () => {
    const path = closedWarehouse();
    const warehouse = open(path);
    expect(readLastShutdown(path)).toEqual({ kind: "unclean" });
    warehouse.close();
  });

  it("is unclean after another program has written to the file or replaced it", () => {
    const path = closedWarehouse();
    writeSync(openSync(path, "r+"), Buffer.from([1]), 0, 1, statSync(path).size - 1);
    expect(readLastShutdown(path)).toEqual({ kind: "unclean" });

    const restored = closedWarehouse();
    const { atime, mtime } = statSync(restored);
    copyFileSync(restored, `${restored}.copy`);
    copyFileSync(`${restored}.copy`, restored);
    utimesSync(restored, atime, mtime);
    expect(readLastShutdown(restored)).toEqual({ kind: "unclean" });
  });

  it("decides whether the file is checked before the first write: not after a clean one, later if the file is large", () => {
    const path = closedWarehouse();
    expect(inspect(path, { mayDeferCheck: true })).toEqual({ quarantined: [], isChecked: true });
    growBeyondImmediateCheck(path);
    expect(inspect(path, { mayDeferCheck: true }).isChecked).toBe(false);
    // Without deferral the whole file is checked at once.
    expect(inspect(path).isChecked).toBe(true);
    // It is not clean before a deferred check has found the file intact.
    const unchecked = open(path, true);
    expect(unchecked.isChecked).toBe(false);
    unchecked.close();
    expect(readLastShutdown(path)).toEqual({ kind: "unclean" });
    const checked = open(path, true);
    checked.recordCheckResult(undefined);
    checked.close();
    expect(readLastShutdown(path)).toEqual({ kind: "clean" });
  });

  it("makes the next start quarantine the file if a check found damage", () => {
    const path = closedWarehouse();
    const warehouse = open(path);
    warehouse.recordCheckResult("row 7 missing from index");
    warehouse.close();
    const next = open(path);
    expect(next.quarantined[0]?.reason).toBe("row 7 missing from index");
    next.close();
    expect(readLastShutdown(path)).toEqual({ kind: "clean" });
  });

  it("makes the next start check the whole file, however large, if a read met corruption", () => {
    const path = closedWarehouse();
    const warehouse = open(path);
    const corrupt = Object.assign(new Error("database disk image is malformed"), { code: "SQLITE_CORRUPT" });
    const fail = () =>
      warehouse.transaction(() => {
        throw corrupt;
      });
    expect(catchFailure(fail).code).toBe("db_corrupt");
    warehouse.close();
    expect(readLastShutdown(path)).toEqual({ kind: "suspect" });
    growBeyondImmediateCheck(path);
    expect(inspect(path, { mayDeferCheck: true }).isChecked).toBe(true);
  });
});
