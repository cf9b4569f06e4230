import { spawn } from "node:child_process";
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { IngestThread } from "../../../../src/ingest/thread/ingest-thread.ts";
import { systemClock } from "../../../../src/runtime/clock.ts";
import { silentLog } from "../../../../src/runtime/log.ts";
import { backUp, openForBackup } from "../../../../src/warehouse/backup.ts";
import { readLastShutdown } from "../../../../src/warehouse/sqlite/shutdown-marker.ts";
import { commitHour, ROWS_PER_HOUR } from "../../../support/cli/backup-pages.ts";
import { runInProcess } from "../../../support/cli/run-command.ts";
import { standardContent } from "../../../support/cli/standard-content.ts";
import { startIngestInProcess } from "../../../support/ingest/in-process-ingest.ts";
import { startProgram } from "../../../support/program-process.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";
import { createWarehouse, openForWriting } from "../../../support/warehouse/filled-warehouse.ts";
import { catchFailure } from "../../../support/warehouse/open-warehouse.ts";
import { changeFile, queryFile } from "../../../support/warehouse/warehouse-file.ts";

/** A closed warehouse with three hours of ticks, created once and copied for each test. */
const original = join(temporaryFolder(afterAll), "mds.sqlite");
const ROWS = 3 * ROWS_PER_HOUR;

beforeAll(async () => {
  const ingest = await startIngest(original);
  for (let n = 0; n < 3; n++) await commitHour(ingest, n);
  await ingest.close();
});

const startIngest = (path: string) =>
  new IngestThread({ path, clock: systemClock, log: silentLog, startWorker: startIngestInProcess }).start();

function folderWithWarehouse(): string {
  const folder = temporaryFolder();
  copyFileSync(original, join(folder, "mds.sqlite"));
  return folder;
}

function backup(folder: string, ...args: string[]) {
  return runInProcess(["backup", ...args], { cwd: folder, env: { MDS_WAREHOUSE: "mds.sqlite" } });
}

/** Copies in this process. */
function copyOf(folder: string, name: string): string {
  const reader = openForBackup(join(folder, "mds.sqlite"));
  try {
    backUp(reader, join(folder, name));
    return join(folder, name);
  } finally {
    reader.close();
  }
}

/** The number of stored rows, and the number of rows that the ledger claims. */
function rowsAndClaim(file: string) {
  const [row] = queryFile(
    file,
    `SELECT (SELECT count(*) FROM index_ticks) AS rows,
      (SELECT coalesce(sum(to_ts - from_ts), 0) / 30000000 FROM coverage WHERE proof = 'rows') AS claimed`,
  );
  return { rows: Number(row?.rows), claimed: Number(row?.claimed) };
}

describe("mds-sync backup", () => {
  it("F15: copies a consistent state of the warehouse while another process commits", async () => {
    const folder = temporaryFolder();
    const path = join(folder, "mds.sqlite");
    const writer = spawn(
      process.execPath,
      [join(import.meta.dirname, "../../../support/cli/backup-writer.ts"), path],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    onTestFinished(() => void writer.kill("SIGKILL"));
    const lines = createInterface({ input: writer.stdout })[Symbol.asyncIterator]();
    const committed = async () => Number(/\d+/.exec((await lines.next()).value ?? "")?.[0]);
    while ((await committed()) < 8);
    // The writer would stop at a full pipe.
    void (async () => {
      while (!(await lines.next()).done);
    })();

    const sizes: number[] = [];
    for (const name of ["first.sqlite", "second.sqlite"]) {
      const before = rowsAndClaim(path).rows;
      const { stdout, stderr, status } = await backup(folder, name, "--json");
      expect(stderr).toMatch(/mds\.sqlite is copied to .*\.sqlite: [\d.]+ [KM]iB in \d+\.\d s\n$/);
      expect(status).toBe(0);
      const file = join(folder, name);
      const report = JSON.parse(stdout);
      expect(report).toEqual({
        warehouse: path,
        file,
        bytes: statSync(file).size,
        seconds: expect.any(Number),
      });
      expect(queryFile(file, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
      const { rows, claimed } = rowsAndClaim(file);
      expect(rows).toBe(claimed);
      expect(rows % ROWS_PER_HOUR).toBe(0);
      expect(rows).toBeGreaterThanOrEqual(before);
      expect(rowsAndClaim(path).rows).toBeGreaterThan(rows);
      sizes.push(rows);
    }
    expect(sizes[1]).toBeGreaterThan(sizes[0] ?? 0);
    expect(readdirSync(folder).filter((name) => name.includes("unfinished"))).toEqual([]);
  });

  it("makes a copy on which a daemon can continue", async () => {
    const folder = folderWithWarehouse();
    const copy = copyOf(folder, "old.sqlite");
    const ingest = await startIngest(copy);
    onTestFinished(() => ingest.close());
    expect(rowsAndClaim(copy)).toEqual({ rows: ROWS, claimed: ROWS });
    await commitHour(ingest, 3);
    expect(rowsAndClaim(copy)).toEqual({ rows: ROWS + ROWS_PER_HOUR, claimed: ROWS + ROWS_PER_HOUR });
    expect(queryFile(copy, "PRAGMA journal_mode")).toEqual([{ journal_mode: "wal" }]);
  });

  it("copies a warehouse of an older version without migrating it, for a backup before an upgrade", () => {
    const folder = folderWithWarehouse();
    changeFile(join(folder, "mds.sqlite"), "DELETE FROM __drizzle_migrations; PRAGMA user_version = 0");
    expect(rowsAndClaim(copyOf(folder, "copy.sqlite")).rows).toBe(ROWS);
  });
});

describe("mds-sync backup rejects in one line", () => {
  it("a file that exists, unless --force is given", async () => {
    const folder = folderWithWarehouse();
    const file = join(folder, "copy.sqlite");
    writeFileSync(file, "something else");
    expect(await backup(folder, "copy.sqlite")).toEqual({
      stdout: "",
      stderr: `mds-sync: ${file} exists: give another name, or --force to replace it\n`,
      status: 2,
    });
    expect(statSync(file).size).toBe("something else".length);
    expect((await backup(folder, "copy.sqlite", "--force")).status).toBe(0);
    expect(rowsAndClaim(file).rows).toBe(ROWS);
  });

  it("names that no copy can have, even with --force", () => {
    const folder = folderWithWarehouse();
    mkdirSync(join(folder, "folder"));
    symlinkSync("mds.sqlite", join(folder, "link.sqlite"));
    writeFileSync(join(folder, "used.sqlite-wal"), "what another database was about to write");
    const refusals: [string, RegExp][] = [
      ["mds.sqlite", /mds\.sqlite is the warehouse itself: give the copy another name$/],
      ["link.sqlite", /mds\.sqlite is the warehouse itself: give the copy another name$/],
      ["folder", /folder is not a file: give the name of the copy$/],
      ["used.sqlite", /used\.sqlite-wal shows that .*used\.sqlite is in use: close .*$/],
      ["nowhere/copy.sqlite", /nowhere.* \(ENOENT\): create the directory.*$/],
    ];
    const reader = openForBackup(join(folder, "mds.sqlite"));
    onTestFinished(() => reader.close());
    for (const [name, line] of refusals) {
      const failure = catchFailure(() => backUp(reader, join(folder, name), { replace: true }));
      expect(failure.exit).toBe(2);
      expect(failure.summary).toMatch(line);
    }
    expect(rowsAndClaim(join(folder, "mds.sqlite")).rows).toBe(ROWS);
  });

  it("a missing warehouse", () => {
    const failure = catchFailure(() => copyOf(temporaryFolder(), "copy.sqlite"));
    expect(failure.exit).toBe(4);
    expect(failure.summary).toMatch(/^there is no warehouse at .*mds\.sqlite: nothing is synced yet: /);
  });
});

describe("mds-sync backup writes nothing", () => {
  it("if the disk has too little space, and reports it before the copy starts", () => {
    const folder = folderWithWarehouse();
    const reader = openForBackup(join(folder, "mds.sqlite"));
    onTestFinished(() => reader.close());
    const fileSystem = () => ({ type: 0xef53, bavail: 1, bsize: 64 * 1024 * 1024 });
    const failure = catchFailure(() => backUp(reader, join(folder, "copy.sqlite"), { fileSystem }));
    expect(failure).toMatchObject({ code: "disk_full", exit: 75 });
    expect(failure.summary).toMatch(
      /not enough space for the copy .*: only 64 MiB are free, 65 MiB are needed: free/,
    );
    expect(readdirSync(folder).filter((name) => name.startsWith("copy"))).toEqual([]);
  });

  it("from a damaged warehouse", () => {
    const folder = folderWithWarehouse();
    const path = join(folder, "mds.sqlite");
    const beyond = statSync(path).size;
    changeFile(path, "CREATE TABLE ballast AS SELECT randomblob(1000000) AS bytes");
    const descriptor = openSync(path, "r+");
    const page = 4096;
    for (let at = beyond + 2 * page; at < statSync(path).size; at += 7 * page) {
      writeSync(descriptor, Buffer.alloc(page, 0xee), 0, page, at);
    }
    closeSync(descriptor);
    const failure = catchFailure(() => copyOf(folder, "copy.sqlite"));
    expect(failure).toMatchObject({ code: "db_corrupt", exit: 1 });
    expect(failure.summary).toContain(`${path} is damaged`);
    expect(readdirSync(folder).filter((name) => name.startsWith("copy"))).toEqual([]);
  });

  it("if the copy fails its check", () => {
    const folder = folderWithWarehouse();
    // Damage that SQLite copies without an error: a NULL in a NOT NULL column.
    changeFile(
      join(folder, "mds.sqlite"),
      `CREATE TABLE odd (x); INSERT INTO odd VALUES (NULL); PRAGMA writable_schema = ON;
      UPDATE sqlite_schema SET sql = 'CREATE TABLE odd (x NOT NULL)' WHERE name = 'odd'`,
    );
    const failure = catchFailure(() => copyOf(folder, "copy.sqlite"));
    expect(failure.summary).toMatch(/the copy for .*copy\.sqlite is damaged \(NULL value in odd\.x\): check/);
    expect(readdirSync(folder).filter((name) => name.startsWith("copy"))).toEqual([]);
  });
});

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
