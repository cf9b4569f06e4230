import { copyFileSync, openSync, statSync, utimesSync, writeSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { inspectFile } from "../../../src/warehouse/integrity.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import { readLastEnd } from "../../../src/warehouse/sqlite/shutdown-marker.ts";
import { openWarehouse } from "../../../src/warehouse/writer.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { failureOf, scratch } from "../../support/warehouse/open-warehouse.ts";

const clock = new TurnedClock();
const open = (path: string, mayDeferCheck = false) => openWarehouse(path, { clock, mayDeferCheck });

function closedWarehouse(): string {
  const path = join(scratch(), "mds.sqlite");
  open(path).close();
  return path;
}

/** Larger than what is checked at once. */
function grow(path: string): void {
  const database = new Database(path);
  database.exec("CREATE TABLE ballast (bytes BLOB); INSERT INTO ballast VALUES (zeroblob(80000000))");
  database.close();
}

describe("how the last writer left the file", () => {
  it("is clean once it has closed it, also beside readers that stay", () => {
    const path = closedWarehouse();
    expect(readLastEnd(path)).toEqual({ kind: "clean" });
    const warehouse = open(path);
    const reader = openReader(path);
    expect(reader.database.prepare("SELECT count(*) AS n FROM coverage").all()).toEqual([{ n: 0 }]);
    warehouse.close();
    expect(readLastEnd(path)).toEqual({ kind: "clean" });
    reader.close();
    expect(readLastEnd(path)).toEqual({ kind: "clean" });
  });

  it("is unknown while one writes, and so after a crash at any moment", () => {
    const path = closedWarehouse();
    const warehouse = open(path);
    expect(readLastEnd(path)).toEqual({ kind: "unclean" });
    warehouse.close();
  });

  it("is unknown once anybody else has written to the file or put another in its place", () => {
    const path = closedWarehouse();
    writeSync(openSync(path, "r+"), Buffer.from([1]), 0, 1, statSync(path).size - 1);
    expect(readLastEnd(path)).toEqual({ kind: "unclean" });

    const restored = closedWarehouse();
    const { atime, mtime } = statSync(restored);
    copyFileSync(restored, `${restored}.copy`);
    copyFileSync(`${restored}.copy`, restored);
    utimesSync(restored, atime, mtime);
    expect(readLastEnd(restored)).toEqual({ kind: "unclean" });
  });

  it("decides what is read before the first write: nothing, or all of a small file, or later all of a large one", () => {
    const path = closedWarehouse();
    expect(inspectFile(path, 0, { mayDefer: true })).toEqual({ setAside: [], isChecked: true });
    grow(path);
    expect(inspectFile(path, 0, { mayDefer: true }).isChecked).toBe(false);
    // Who does not defer reads it all, and knows.
    expect(inspectFile(path, 0).isChecked).toBe(true);
  });

  it("is not called clean before a deferred check has found the file sound", () => {
    const path = closedWarehouse();
    grow(path);
    const unchecked = open(path, true);
    expect(unchecked.isChecked).toBe(false);
    unchecked.close();
    expect(readLastEnd(path)).toEqual({ kind: "unclean" });
    const checked = open(path, true);
    checked.noteCheck(undefined);
    checked.close();
    expect(readLastEnd(path)).toEqual({ kind: "clean" });
  });

  it("makes the next opener set the file aside when a check found damage", () => {
    const path = closedWarehouse();
    const warehouse = open(path);
    warehouse.noteCheck("row 7 missing from index");
    warehouse.close();
    const next = open(path);
    expect(next.setAside[0]?.reason).toBe("row 7 missing from index");
    next.close();
    expect(readLastEnd(path)).toEqual({ kind: "clean" });
  });

  it("makes the next opener read all of it, however large, when damage was met", () => {
    const path = closedWarehouse();
    const warehouse = open(path);
    const corrupt = Object.assign(new Error("database disk image is malformed"), { code: "SQLITE_CORRUPT" });
    const fail = () =>
      warehouse.transaction(() => {
        throw corrupt;
      });
    expect(failureOf(fail).code).toBe("db_corrupt");
    warehouse.close();
    expect(readLastEnd(path)).toEqual({ kind: "suspect" });
    grow(path);
    expect(inspectFile(path, 0, { mayDefer: true }).isChecked).toBe(true);
  });
});
