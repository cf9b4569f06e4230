import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { backUp } from "../../../src/warehouse/backup.ts";
import { restoreWarehouse } from "../../../src/warehouse/restore.ts";
import { recordCrash } from "../../../src/warehouse/sqlite/crash-marker.ts";
import { MIN_FREE_BYTES } from "../../../src/warehouse/sqlite/disk.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { copyEmptyWarehouse } from "../../support/warehouse/empty-warehouse.ts";
import { catchFailure, openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";
import { storeTicks } from "../../support/warehouse/write-records.ts";

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
    const path = join(temporaryFolder(), "mine");
    strangers[name]?.(path);
    const before = contentOf(dirname(path));
    const copy = join(temporaryFolder(), "copy.sqlite");
    copyEmptyWarehouse(copy);
    for (const use of [() => open(path), () => restoreWarehouse(copy, path, 0)]) {
      const failure = catchFailure(use);
      expect(failure).toMatchObject({ family: "operator", exit: 2 });
      expect(failure.summary).toMatch(/^\S+mine\S* is .*set warehouse\.path to another file/);
      expect(contentOf(dirname(path))).toEqual(before);
    }
  });

  it("a folder is refused with exit 2, and nothing is created beside it", () => {
    const path = join(temporaryFolder(), "folder");
    mkdirSync(path);
    expect(catchFailure(() => open(path))).toMatchObject({ exit: 2, message: `${path} is not a file` });
    expect(readdirSync(dirname(path))).toEqual(["folder"]);
  });

  it("an empty file becomes the warehouse", () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    writeFileSync(path, "");
    expect(openTestWarehouse({ path }).quarantined).toEqual([]);
    expect(readdirSync(dirname(path)).filter((name) => name.includes("aside"))).toEqual([]);
  });
});

describe("F10: a damaged warehouse is recognised, and set aside,", () => {
  it.each([".end", ".writer", ".crash"])("by the file %s beside it, if its header is gone", (suffix) => {
    const path = join(temporaryFolder(), "mds.sqlite");
    writeFileSync(path, "\0".repeat(8192));
    writeFileSync(path + suffix, "[]");
    expect(openTestWarehouse({ path }).quarantined).toHaveLength(1);
  });

  it("by its header, if there is nothing else", () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    copyEmptyWarehouse(path);
    rmSync(`${path}.end`);
    truncateSync(path, 5000);
    expect(openTestWarehouse({ path }).quarantined).toHaveLength(1);
  });
});

describe("F23: the files beside a warehouse", () => {
  /** The modes and owners of all files whose names match. */
  const accessOf = (folder: string, names: RegExp) =>
    Object.fromEntries(
      readdirSync(folder)
        .filter((name) => names.test(name))
        .map((name) => [name, statSync(join(folder, name))] as const)
        .map(([name, { mode, uid }]) => [name, `${(mode & 0o777).toString(8)} of ${uid}`]),
    );

  it("and its copies get its mode and owner", () => {
    const folder = temporaryFolder();
    const path = join(folder, "mds.sqlite");
    writeFileSync(path, "", { mode: 0o600 });
    const isRoot = process.getuid?.() === 0;
    if (isRoot) chownSync(path, 65_534, 65_534);
    const expected = (...names: string[]) =>
      Object.fromEntries(names.map((name) => [name, `600 of ${isRoot ? 65_534 : process.getuid?.()}`]));

    const opened = open(path);
    expect(accessOf(folder, /-(wal|shm)$/)).toEqual(expected("mds.sqlite-shm", "mds.sqlite-wal"));
    const copy = join(folder, "copy.sqlite");
    backUp(opened.connection, copy);
    opened.close();
    const copied = expected("copy.sqlite", "mds.sqlite-shm", "mds.sqlite-wal");
    expect(accessOf(folder, /-(wal|shm)$|copy/)).toEqual(copied);

    chmodSync(copy, 0o644);
    restoreWarehouse(copy, path, 0);
    const all = expected("mds.sqlite", "mds.sqlite-shm", "mds.sqlite-wal");
    expect(accessOf(folder, /^mds\.sqlite(-wal|-shm)?$/)).toEqual(all);
    truncateSync(path, 5000);
    open(path).close();
    expect(accessOf(folder, /^mds\.sqlite(-wal|-shm)?$/)).toEqual(all);
  });

  it.each([".lock", ".writer"])("are not written through a link in the place of %s", (suffix) => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const target = join(temporaryFolder(), "diary");
    writeFileSync(target, "Dear diary");
    symlinkSync(target, path + suffix);
    const failure = catchFailure(() => open(path));
    expect(failure).toMatchObject({ exit: 2, message: `${path}${suffix} is a symbolic link` });
    expect(readFileSync(target, "utf8")).toBe("Dear diary");
    expect(existsSync(path)).toBe(false);
  });

  it.each([".end.new", ".crash.new"])("replace a link in the place of %s", (suffix) => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const target = join(temporaryFolder(), "diary");
    writeFileSync(target, "Dear diary");
    symlinkSync(target, path + suffix);
    open(path).close();
    recordCrash(path, new Error("for a test"), 0);
    expect(readFileSync(target, "utf8")).toBe("Dear diary");
    expect([existsSync(`${path}.end`), existsSync(`${path}.crash`)]).toEqual([true, true]);
  });
});

describe("F11: a warehouse that is deleted while it is open", () => {
  const summaryOf = (warehouse: WarehouseWriter) => catchFailure(() => warehouse.assertFileInPlace());
  const rowCount = "SELECT count(*) AS n FROM index_ticks";

  it.each(["", "/data"])("is copied aside with all its rows, once there is space (folder%s)", (below) => {
    const folder = temporaryFolder() + below;
    const path = join(folder, "mds.sqlite");
    let free = 1e12;
    const fileSystem = () => ({ type: 0xef53, bavail: free / 4096, bsize: 4096 });
    mkdirSync(folder, { recursive: true });
    writeFileSync(path, "", { mode: 0o600 });
    const warehouse = openTestWarehouse({ path, fileSystem });
    const write = (ts: number) => storeTicks(warehouse, [tick(ts, "1.5")]);
    write(1);
    if (below) rmSync(folder, { recursive: true });
    else for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix);
    free = MIN_FREE_BYTES + 100_000;
    expect(summaryOf(warehouse)).toMatchObject({
      code: "disk_full",
      message: expect.stringContaining("removed"),
    });
    write(2);
    free = 1e12;
    const failure = summaryOf(warehouse);
    expect(failure).toMatchObject({ code: "db_replaced", exit: 1 });
    const copy = `${path}.aside-2026-03-01T120000Z`;
    expect(failure.summary).toBe(
      `${path} was removed while it was open: its content is in ${copy}: stop the daemon, then \`mds-sync restore ${copy}\``,
    );
    warehouse.close();
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(restoreWarehouse(copy, path, 0).setAside).toBe(null);
    expect(queryRows(openTestWarehouse({ path }), rowCount)).toEqual([{ n: 2 }]);
  });

  it("is not copied if it was only moved, and its new name is told", () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const warehouse = openTestWarehouse({ path });
    renameSync(path, `${path}.moved`);
    expect(summaryOf(warehouse).summary).toContain(`it is now ${path}.moved`);
    expect(readdirSync(dirname(path)).filter((name) => name.includes("aside"))).toEqual([]);
  });
});
