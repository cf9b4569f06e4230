import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLog } from "../../../src/runtime/log.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { catchFailure, openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";
import { storeTicks } from "../../support/warehouse/write-records.ts";

const write = (warehouse: WarehouseWriter, count = 500, from = 0) =>
  storeTicks(
    warehouse,
    Array.from({ length: count }, (_, i) => tick(from + i, "1.5")),
  );

/** Creates a closed warehouse with 5000 rows. */
function fillWarehouse(folder: string): string {
  const path = join(folder, "mds.sqlite");
  const warehouse = openWriter(path, { clock: new ManualClock() });
  write(warehouse, 5000);
  warehouse.close();
  return path;
}

const filled = temporaryFolder(afterAll);
beforeAll(() => void fillWarehouse(filled));

function makeFilledWarehouse(): string {
  const folder = temporaryFolder();
  cpSync(filled, folder, { recursive: true });
  return join(folder, "mds.sqlite");
}

describe("F10: a damaged file is renamed to a dated name, never deleted, and replaced by a new one", () => {
  const damages: Record<string, (path: string) => void> = {
    "a page overwritten": (path) => {
      const file = openSync(path, "r+");
      for (let page = 3; page < 20; page++) writeSync(file, Buffer.alloc(2000, 0xa5), 0, 2000, page * 4096);
      closeSync(file);
    },
    truncated: (path) => truncateSync(path, Math.floor(statSync(path).size / 2)),
    "cut inside its header": (path) => truncateSync(path, 60),
    "of length zero": (path) => truncateSync(path, 0),
    "not a database": (path) =>
      writeFileSync(path, "Dear diary, today I wrote over a database. ".repeat(300)),
    "gone, its WAL left behind": (path) => {
      rmSync(path);
      writeFileSync(`${path}-wal`, "frames of something");
    },
  };
  it.each(Object.keys(damages))("%s", (name) => {
    const path = makeFilledWarehouse();
    damages[name]?.(path);
    const errors: unknown[] = [];
    const log = { ...silentLog, error: (fields: unknown) => void errors.push(fields) };
    const warehouse = openTestWarehouse({ path, log });
    expect(warehouse.quarantined[0]?.files.length).toBeGreaterThan(0);
    for (const file of warehouse.quarantined[0]?.files ?? []) {
      expect(file).toMatch(/mds\.sqlite\.aside-2026-03-01T120000Z/);
      expect(existsSync(file)).toBe(true);
    }
    expect(errors).toEqual(warehouse.quarantined);
    expect(write(warehouse).inserted).toBe(500);
    expect(warehouse.connection.database.pragma("integrity_check", { simple: true })).toBe("ok");
  });

  it("stays in place while the disk has no space for the new one, which gets its mode", () => {
    const path = makeFilledWarehouse();
    chmodSync(path, 0o600);
    truncateSync(path, 5000);
    const tiny = () => ({ type: 0xef53, bavail: 10, bsize: 4096 });
    const open = () => openWriter(path, { clock: new ManualClock(), fileSystem: tiny });
    expect(catchFailure(open).code).toBe("disk_full");
    expect(statSync(path).size).toBe(5000);
    expect(openTestWarehouse({ path }).quarantined).toHaveLength(1);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("and a WAL that a crash between the renames left alone is not applied to the new one", () => {
    const path = makeFilledWarehouse();
    const writer = openWriter(path, { clock: new ManualClock() });
    write(writer, 700, 90_000);
    const frames = readFileSync(`${path}-wal`);
    writer.close();
    for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix);
    writeFileSync(`${path}-wal`, frames);
    const warehouse = openTestWarehouse({ path });
    expect(warehouse.quarantined).toMatchObject([{ reason: "a -wal file without its database" }]);
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 0 }]);
  });

  it("uses two names for two damaged files within one second", () => {
    const path = makeFilledWarehouse();
    for (let i = 0; i < 2; i++) {
      truncateSync(path, 0);
      openWriter(path, { clock: new ManualClock() }).close();
    }
    const databases = readdirSync(join(path, "..")).filter((file) => /aside(?!.*-(wal|shm)$)/.test(file));
    expect(databases).toHaveLength(2);
  });

  it("quarantines only the WAL if it belongs to another warehouse, because SQLite would apply it", () => {
    const path = fillWarehouse(temporaryFolder());
    const other = openTestWarehouse();
    write(other, 300);
    copyFileSync(`${other.path}-wal`, `${path}-wal`);
    const warehouse = openTestWarehouse({ path });
    const files = [expect.stringMatching(/Z-wal$/), expect.anything()];
    expect(warehouse.quarantined).toMatchObject([{ reason: "a -wal file of another database", files }]);
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 5000 }]);
    expect(warehouse.connection.database.pragma("integrity_check", { simple: true })).toBe("ok");
  });

  it("does not quarantine a WAL that another program wrote to this file and did not checkpoint yet", () => {
    const path = makeFilledWarehouse();
    const guest = new Database(path);
    guest.exec("CREATE TABLE theirs AS SELECT 7 AS n");
    const warehouse = openTestWarehouse({ path });
    expect(warehouse.quarantined).toEqual([]);
    expect(queryRows(warehouse, "SELECT n FROM theirs")).toEqual([{ n: 7 }]);
    guest.close();
  });

  it.each([
    ["the -shm file is missing: SQLite rebuilds it", ["-wal"], 5010],
    ["the WAL is missing: the file is at its last checkpoint", ["-shm"], 5000],
  ])("quarantines nothing when only %s", (_, left, count) => {
    const path = makeFilledWarehouse();
    const copy = join(temporaryFolder(), "mds.sqlite");
    const warehouse = openTestWarehouse({ path });
    write(warehouse, 10, 90_000);
    for (const suffix of ["", ...left]) copyFileSync(path + suffix, copy + suffix);
    const restored = openTestWarehouse({ path: copy });
    expect(restored.quarantined).toEqual([]);
    expect(queryRows(restored, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: count }]);
    expect(queryRows(restored, "SELECT rows AS n FROM stream_states")).toEqual([{ n: count }]);
  });
});

describe("F11: a copy that replaces the open file", () => {
  it("stays intact, because the leftover WAL of the old file is quarantined", () => {
    const path = makeFilledWarehouse();
    const copy = join(temporaryFolder(), "copy.sqlite");
    copyFileSync(path, copy);
    const warehouse = openTestWarehouse({ path });
    write(warehouse, 700, 90_000);
    renameSync(copy, path);
    expect(catchFailure(() => warehouse.assertFileInPlace())).toMatchObject({ code: "db_replaced" });
    warehouse.close();
    const next = openTestWarehouse({ path });
    expect(next.quarantined).toEqual([]);
    expect(readdirSync(join(path, "..")).filter((name) => /aside-.*-wal$/.test(name))).toHaveLength(1);
    expect(queryRows(next, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 5000 }]);
    expect(next.connection.database.pragma("integrity_check", { simple: true })).toBe("ok");
  });
});

describe("F10: damage found by a check", () => {
  it("does not apply to a file that has replaced the checked one", () => {
    const path = makeFilledWarehouse();
    const copy = join(temporaryFolder(), "copy.sqlite");
    copyFileSync(path, copy);
    const warehouse = openWriter(path, { clock: new ManualClock() });
    warehouse.recordCheckResult("row 7 missing from index");
    warehouse.close();
    renameSync(copy, path);
    const restored = openTestWarehouse({ path });
    expect(restored.quarantined).toEqual([]);
    expect(queryRows(restored, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 5000 }]);
  });
});

describe("F3: a full disk", () => {
  it("rolls back with disk_full, and the same page can be written once there is space", () => {
    const warehouse = openTestWarehouse();
    write(warehouse);
    const { database } = warehouse.connection;
    database.pragma(`max_page_count = ${(database.pragma("page_count", { simple: true }) as number) + 4}`);
    const failure = catchFailure(() => write(warehouse, 20_000, 1000));
    expect(failure).toMatchObject({ code: "disk_full", family: "retry", exit: 75 });
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 500 }]);
    database.pragma("max_page_count = 1000000");
    expect(write(warehouse, 20_000, 1000).inserted).toBe(20_000);
    expect(queryRows(warehouse, "SELECT rows FROM stream_states")).toEqual([{ rows: 20_500 }]);
  });

  it("is detected while some space is left, and writes succeed again once there is more", () => {
    let free = 1e12;
    const fileSystem = () => ({ type: 0xef53, bavail: free / 4096, bsize: 4096 });
    const warehouse = openTestWarehouse({ fileSystem });
    free = 1e6;
    expect(catchFailure(() => write(warehouse)).code).toBe("disk_full");
    free = 1e12;
    expect(write(warehouse).inserted).toBe(500);
  });
});

describe("other disk faults", () => {
  it("F4: after a failed fsync this process writes nothing more", () => {
    const warehouse = openTestWarehouse();
    const failSync = () =>
      warehouse.transaction(() => {
        throw new Database.SqliteError("disk I/O error", "SQLITE_IOERR_FSYNC");
      });
    expect(catchFailure(failSync)).toMatchObject({ code: "io_error", family: "operator", exit: 1 });
    expect(catchFailure(() => write(warehouse)).code).toBe("io_error");
  });

  it.each(["file/deep/mds.sqlite", "/proc/none/mds.sqlite", "/proc/mds.sqlite"])(
    "F5: a directory that cannot be created or written (%s) fails with a remedy and exit 2",
    (path) => {
      const directory = temporaryFolder();
      writeFileSync(join(directory, "file"), "");
      const failure = catchFailure(() => openWriter(resolve(directory, path), { clock: new ManualClock() }));
      expect(failure).toMatchObject({ family: "operator", code: "db_not_writable", exit: 2 });
      expect(failure.remedy).toContain("directory");
    },
  );

  it.each([
    [0x6969, "NFS"],
    [0xff534d42 | 0, "CIFS"],
  ])("F17: a network file system is rejected (%s)", (type, name) => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const failure = catchFailure(() =>
      openWriter(path, { clock: new ManualClock(), fileSystem: () => ({ type, bavail: 1e9, bsize: 4096 }) }),
    );
    expect(failure).toMatchObject({ code: "network_file_system", exit: 2 });
    expect(failure.message).toContain(name);
    expect(existsSync(path)).toBe(false);
  });

  it("F17: a symbolic link is followed with a warning, and uses the lock of the real file", () => {
    const path = makeFilledWarehouse();
    const link = join(temporaryFolder(), "link.sqlite");
    symlinkSync(path, link);
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (_fields: unknown, message: string) => void warnings.push(message) };
    const warehouse = openTestWarehouse({ path: link, log });
    expect(warnings[0]).toContain("symbolic link");
    expect(warehouse.path).toBe(realpathSync(path));
    expect(catchFailure(() => openWriter(path, { clock: new ManualClock() })).code).toBe("writer_elsewhere");
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 5000 }]);
  });
});
