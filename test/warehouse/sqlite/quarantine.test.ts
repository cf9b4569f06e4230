import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/runtime/log.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { observe } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { follow } from "../../../src/warehouse/coverage/targets.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { openWarehouse, type Warehouse } from "../../../src/warehouse/writer.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { failureOf, openScratch, rows, scratch } from "../../support/warehouse/open-warehouse.ts";
import { at, tick } from "../../support/warehouse/records.ts";

const write = (warehouse: Warehouse, count = 500, from = 0) =>
  warehouse.transaction((transaction) =>
    writeRecords(
      transaction,
      "index_ticks",
      Array.from({ length: count }, (_, i) => tick(from + i, "1.5")),
      "rest",
    ),
  );

/** A warehouse with rows, closed. */
function filled(): string {
  const path = join(scratch(), "mds.sqlite");
  const warehouse = openWarehouse(path, { clock: new TurnedClock() });
  write(warehouse, 5000);
  warehouse.close();
  return path;
}

function withDatabase<T>(path: string, work: (database: Database.Database) => T): T {
  const database = new Database(path);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

describe("F10: a damaged file is set aside under a dated name, never deleted, and a new one takes its place", () => {
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
    const path = filled();
    damages[name]?.(path);
    const errors: unknown[] = [];
    const log = { ...silentLog, error: (fields: unknown) => void errors.push(fields) };
    const warehouse = openScratch({ path, log });
    expect(warehouse.setAside[0]?.files.length).toBeGreaterThan(0);
    for (const file of warehouse.setAside[0]?.files ?? []) {
      expect(file).toMatch(/mds\.sqlite\.aside-2026-03-01T120000Z/);
      expect(existsSync(file)).toBe(true);
    }
    expect(errors).toEqual(warehouse.setAside);
    expect(write(warehouse).inserted).toBe(500);
    expect(warehouse.connection.database.pragma("integrity_check", { simple: true })).toBe("ok");
  });

  /** A warehouse from a month ago that was followed for a year, with a ledger that can still be read. */
  function damagedBelowItsLedger(): string {
    const path = join(scratch(), "mds.sqlite");
    const old = openWarehouse(path, { clock: new TurnedClock("2026-02-01T00:00:00Z") });
    old.transaction((transaction) => {
      observe(transaction, {
        stream: "exchange_ticks",
        exchangeId: "kraken-id",
        at: at("2026-02-01T00:00:00Z"),
        cadence: 30_000_000,
      });
      writeRecords(
        transaction,
        "index_ticks",
        Array.from({ length: 9000 }, (_, i) => tick(at("2025-02-01T00:00:00Z") + i, "1.5")),
        "rest",
      );
      const line = { stream: "index_ticks", series: transaction.dictionary.series("GWA", "btc-id") } as const;
      const [from, to] = [at("2025-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z")];
      const keptFor = 200 * 86_400_000_000;
      follow(transaction, { line, from, settleDelay: 60_000_000, step: 1, keptFor }, false);
      settle(transaction, line, { from, to: from + 5 }, "empty", "nothing older");
      settle(transaction, line, { from: from + 5, to }, "rows");
    });
    old.close();
    const [first, pages] = withDatabase(path, (database) => [
      database
        .prepare("SELECT rootpage FROM sqlite_master WHERE name = 'index_tick_rows'")
        .pluck()
        .get() as number,
      database.pragma("page_count", { simple: true }) as number,
    ]);
    const file = openSync(path, "r+");
    for (const page of [first, pages]) writeSync(file, Buffer.alloc(2000, 0xa5), 0, 2000, (page - 1) * 4096);
    closeSync(file);
    return path;
  }

  const lost = [
    {
      stream: "exchange_ticks",
      index_id: "kraken-id",
      from_time: "2026-02-01T00:00:00.000000Z",
      to_time: "2026-03-01T12:00:00.000000Z",
      proof: "lost",
      reason: "warehouse damaged",
    },
    {
      stream: "index_ticks",
      index_id: "btc-id",
      from_time: "2025-01-01T00:00:00.000000Z",
      to_time: "2025-01-01T00:00:00.000005Z",
      proof: "empty",
      reason: "nothing older",
    },
    {
      stream: "index_ticks",
      index_id: "btc-id",
      from_time: "2025-01-01T00:00:00.000005Z",
      // 200 days before the newest that the old ledger has proven: what is younger may still be fetched.
      to_time: "2025-07-16T00:00:30.000000Z",
      proof: "lost",
      reason: "warehouse damaged",
    },
  ];
  const coverage = (warehouse: Warehouse) =>
    rows(
      warehouse,
      "SELECT stream, index_id, from_time, to_time, proof, reason FROM coverage ORDER BY stream, from_ts",
    );

  it("and what cannot be fetched again is entered as lost: what was observed, and what the service forgets", () => {
    const warehouse = openScratch({ path: damagedBelowItsLedger() });
    expect(warehouse.setAside[0]?.files).toHaveLength(1);
    expect(coverage(warehouse)).toEqual(lost);
    // All of it is still wanted, as it was.
    expect(rows(warehouse, "SELECT min(from_time) AS first FROM gaps WHERE stream = 'index_ticks'")).toEqual([
      { first: "2025-01-01T00:00:00.000005Z" },
    ]);
  });

  it("and it is entered by the next start when this one failed in between, which also ends what was half done", () => {
    const path = damagedBelowItsLedger();
    const tiny = () => ({ type: 0xef53, bavail: 10, bsize: 4096 });
    const open = () => openWarehouse(path, { clock: new TurnedClock(), fileSystem: tiny });
    expect(failureOf(open).code).toBe("disk_full");
    expect(existsSync(path)).toBe(false);
    // As if it had been killed before this one was renamed too.
    writeFileSync(`${path}-wal`, "frames of the old file");
    const errors: unknown[] = [];
    const log = { ...silentLog, error: (fields: unknown) => void errors.push(fields) };
    const warehouse = openWarehouse(path, { clock: new TurnedClock(), log });
    expect(warehouse.setAside).toMatchObject([
      {
        reason: expect.stringContaining("quick_check"),
        files: [expect.stringMatching(/Z$/), expect.stringMatching(/Z-wal$/)],
      },
    ]);
    expect(errors).toEqual(warehouse.setAside);
    expect(coverage(warehouse)).toEqual(lost);
    warehouse.close();
    // Once.
    expect(openScratch({ path }).setAside).toEqual([]);
  });

  it("twice in one second, under two names", () => {
    const path = filled();
    for (let i = 0; i < 2; i++) {
      truncateSync(path, 0);
      openWarehouse(path, { clock: new TurnedClock() }).close();
    }
    expect(readdirSync(join(path, "..")).filter((file) => file.includes("aside"))).toHaveLength(2);
  });

  it("only its WAL, where that is another warehouse's: SQLite would take it for the file's own", () => {
    const path = filled();
    const other = openScratch();
    write(other, 300);
    copyFileSync(`${other.path}-wal`, `${path}-wal`);
    const warehouse = openScratch({ path });
    expect(warehouse.setAside).toMatchObject([
      {
        reason: "a -wal file of another database",
        files: [expect.stringMatching(/Z-wal$/), expect.anything()],
      },
    ]);
    expect(rows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 5000 }]);
    expect(warehouse.connection.database.pragma("integrity_check", { simple: true })).toBe("ok");
  });

  it("not when a guest has written to it since, and its WAL is not moved into the file yet", () => {
    const path = filled();
    const guest = new Database(path);
    guest.exec("CREATE TABLE theirs AS SELECT 7 AS n");
    const warehouse = openScratch({ path });
    expect(warehouse.setAside).toEqual([]);
    expect(rows(warehouse, "SELECT n FROM theirs")).toEqual([{ n: 7 }]);
    guest.close();
  });

  it.each([
    ["the index of the WAL is missing: that is rebuilt", ["-wal"], 5010],
    ["the WAL is missing: the file is as it was at its last checkpoint", ["-shm"], 5000],
  ])("not when only %s", (_, left, count) => {
    const path = filled();
    const copy = join(scratch(), "mds.sqlite");
    const warehouse = openScratch({ path });
    write(warehouse, 10, 90_000);
    for (const end of ["", ...left]) copyFileSync(path + end, copy + end);
    const restored = openScratch({ path: copy });
    expect(restored.setAside).toEqual([]);
    expect(rows(restored, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: count }]);
    expect(rows(restored, "SELECT rows AS n FROM stream_states")).toEqual([{ n: count }]);
  });
});

describe("F11: a file that is taken away while it is open", () => {
  it.each(["removed", "replaced"])("%s", (how) => {
    const path = filled();
    const warehouse = openScratch({ path });
    warehouse.assertFileInPlace();
    renameSync(path, `${path}.moved`);
    if (how === "replaced") writeFileSync(path, "");
    expect(failureOf(() => warehouse.assertFileInPlace())).toMatchObject({ code: "db_replaced" });
    expect(failureOf(() => warehouse.assertFileInPlace()).message).toContain(how);
  });
});

describe("F11: a copy that is put in the place of the file that is open", () => {
  it("is whole afterwards: what is left of the old one's WAL goes aside", () => {
    const path = filled();
    const copy = join(scratch(), "copy.sqlite");
    copyFileSync(path, copy);
    const warehouse = openScratch({ path });
    write(warehouse, 700, 90_000);
    renameSync(copy, path);
    expect(failureOf(() => warehouse.assertFileInPlace())).toMatchObject({ code: "db_replaced" });
    warehouse.close();
    const next = openScratch({ path });
    expect(next.setAside).toMatchObject([{ reason: "the -wal file of a database that was moved away" }]);
    expect(rows(next, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 5000 }]);
    expect(next.connection.database.pragma("integrity_check", { simple: true })).toBe("ok");
  });
});

describe("F10: what was found out about a file", () => {
  it("is not held against the one that was put in its place", () => {
    const path = filled();
    const copy = join(scratch(), "copy.sqlite");
    copyFileSync(path, copy);
    const warehouse = openWarehouse(path, { clock: new TurnedClock() });
    warehouse.noteCheck("row 7 missing from index");
    warehouse.close();
    renameSync(copy, path);
    const restored = openScratch({ path });
    expect(restored.setAside).toEqual([]);
    expect(rows(restored, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 5000 }]);
  });
});

describe("F3: a full disk", () => {
  it("rolls back, says disk_full, and the same page goes in once there is space", () => {
    const warehouse = openScratch();
    write(warehouse);
    const { database } = warehouse.connection;
    database.pragma(`max_page_count = ${(database.pragma("page_count", { simple: true }) as number) + 4}`);
    expect(failureOf(() => write(warehouse, 20_000, 1000))).toMatchObject({
      code: "disk_full",
      family: "retry",
      exit: 75,
    });
    expect(rows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 500 }]);
    database.pragma("max_page_count = 1000000");
    expect(write(warehouse, 20_000, 1000).inserted).toBe(20_000);
    expect(rows(warehouse, "SELECT rows FROM stream_states")).toEqual([{ rows: 20_500 }]);
  });

  it("is noticed before it is full, and heals", () => {
    let free = 1e12;
    const fileSystem = () => ({ type: 0xef53, bavail: free / 4096, bsize: 4096 });
    const warehouse = openScratch({ fileSystem });
    free = 1e6;
    expect(failureOf(() => write(warehouse)).code).toBe("disk_full");
    free = 1e12;
    expect(write(warehouse).inserted).toBe(500);
  });
});

describe("other faults of the disk", () => {
  it("F4: an error on sync is not retried: nothing more is written by this process", () => {
    const warehouse = openScratch();
    const failSync = () =>
      warehouse.transaction(() => {
        throw new Database.SqliteError("disk I/O error", "SQLITE_IOERR_FSYNC");
      });
    expect(failureOf(failSync)).toMatchObject({ code: "io_error", family: "operator", exit: 1 });
    expect(failureOf(() => write(warehouse)).code).toBe("io_error");
  });

  it("F5: a directory that cannot be made or a file that cannot be written is said with its remedy, exit 2", () => {
    const directory = scratch();
    writeFileSync(join(directory, "file"), "");
    mkdirSync(join(directory, "mds.sqlite"));
    const clock = new TurnedClock();
    for (const path of [join(directory, "file/deep/mds.sqlite"), join(directory, "mds.sqlite")]) {
      const failure = failureOf(() => openWarehouse(path, { clock }));
      expect(failure).toMatchObject({ family: "operator", code: "db_not_writable", exit: 2 });
      expect(failure.remedy).toContain("directory");
    }
  });

  it.each([
    [0x6969, "NFS"],
    [0xff534d42 | 0, "CIFS"],
  ])("F17: a network file system is refused (%s)", (type, name) => {
    const path = join(scratch(), "mds.sqlite");
    const failure = failureOf(() =>
      openWarehouse(path, {
        clock: new TurnedClock(),
        fileSystem: () => ({ type, bavail: 1e9, bsize: 4096 }),
      }),
    );
    expect(failure).toMatchObject({ code: "network_file_system", exit: 2 });
    expect(failure.message).toContain(name);
    expect(existsSync(path)).toBe(false);
  });

  it("F17: a symbolic link is followed with a warning, and leads to the same lock", () => {
    const path = filled();
    const link = join(scratch(), "link.sqlite");
    symlinkSync(path, link);
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (_fields: unknown, message: string) => void warnings.push(message) };
    const warehouse = openScratch({ path: link, log });
    expect(warnings[0]).toContain("symbolic link");
    expect(warehouse.path).toBe(realpathSync(path));
    expect(failureOf(() => openWarehouse(path, { clock: new TurnedClock() })).code).toBe("writer_elsewhere");
    expect(rows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 5000 }]);
  });
});
