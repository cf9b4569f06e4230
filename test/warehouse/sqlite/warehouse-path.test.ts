import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { restoreWarehouse } from "../../../src/warehouse/restore.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { copyEmptyWarehouse } from "../../support/warehouse/empty-warehouse.ts";
import { catchFailure, makeTempFolder, openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const clock = new ManualClock();
const open = (path: string) => openWriter(path, { clock });

/** The names and contents of all files. */
const contentOf = (folder: string) =>
  readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), "latin1")]);

describe("F22: a path at which there never was a warehouse", () => {
  const strangers: Record<string, (path: string) => void> = {
    "a settings file": (path) => writeFileSync(path, "service: {}\n"),
    "a text longer than a page": (path) => writeFileSync(path, "service: {}\n".repeat(1000)),
    "a database of another program": (path) => new Database(path).exec("CREATE TABLE t (x)").close(),
    "a -wal file alone": (path) => writeFileSync(`${path}-wal`, "frames of something"),
  };
  it.each(Object.keys(strangers))("%s is refused with exit 2, and nothing is created or changed", (name) => {
    const path = join(makeTempFolder(), "mine");
    strangers[name]?.(path);
    const before = contentOf(dirname(path));
    const copy = join(makeTempFolder(), "copy.sqlite");
    copyEmptyWarehouse(copy);
    for (const use of [() => open(path), () => restoreWarehouse(copy, path, 0)]) {
      const failure = catchFailure(use);
      expect(failure).toMatchObject({ family: "operator", exit: 2 });
      expect(failure.summary).toMatch(/^\S+mine\S* is .*set warehouse\.path to another file/);
      expect(contentOf(dirname(path))).toEqual(before);
    }
  });

  it("a folder is refused with exit 2, and nothing is created beside it", () => {
    const path = join(makeTempFolder(), "folder");
    mkdirSync(path);
    expect(catchFailure(() => open(path))).toMatchObject({ exit: 2, message: `${path} is not a file` });
    expect(readdirSync(dirname(path))).toEqual(["folder"]);
  });

  it("an empty file becomes the warehouse", () => {
    const path = join(makeTempFolder(), "mds.sqlite");
    writeFileSync(path, "");
    expect(openTestWarehouse({ path }).quarantined).toEqual([]);
    expect(readdirSync(dirname(path)).filter((name) => name.includes("aside"))).toEqual([]);
  });
});

describe("F10: a damaged warehouse is recognised, and set aside,", () => {
  it.each([".end", ".writer", ".crash", ".salvage"])(
    "by the file %s beside it, if its header is gone",
    (suffix) => {
      const path = join(makeTempFolder(), "mds.sqlite");
      writeFileSync(path, "\0".repeat(8192));
      writeFileSync(path + suffix, "[]");
      expect(openTestWarehouse({ path }).quarantined).toHaveLength(1);
    },
  );

  it("by its header, if there is nothing else", () => {
    const path = join(makeTempFolder(), "mds.sqlite");
    copyEmptyWarehouse(path);
    truncateSync(path, 5000);
    expect(openTestWarehouse({ path }).quarantined).toHaveLength(1);
  });
});
