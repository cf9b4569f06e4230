import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { SPACE_RESERVE_BYTES } from "../../../src/warehouse/sqlite/disk.ts";
import { lockHolders } from "../../../src/warehouse/sqlite/lock-holders.ts";
import { truncateWal, walBytes } from "../../../src/warehouse/sqlite/wal.ts";
import { openWarehouse, type Warehouse } from "../../../src/warehouse/writer.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { failureOf, openScratch, rows, scratch } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";
import { startHolder } from "../../support/warehouse/start-writer-process.ts";

const page = (from: number) => Array.from({ length: 500 }, (_, i) => tick(from + i, "1.5"));
const write = (warehouse: Warehouse, from = 0) =>
  warehouse.transaction((t) => writeRecords(t, "index_ticks", page(from), "rest"));

describe("one writer", () => {
  it("F9: a second one is told who writes, also while the first is stopped, and may begin once it is killed", async () => {
    const path = join(scratch(), "mds.sqlite");
    const first = startHolder("writer", path);
    expect(await first.next()).toBe("open");
    expect(await first.act()).toBe("wrote 1");
    const open = () => openWarehouse(path, { clock: new TurnedClock() });
    const refused = failureOf(open);
    expect(refused).toMatchObject({ code: "writer_elsewhere", exit: 75 });
    expect(refused.line).toContain(`pid ${first.pid} on `);
    expect(refused.line.split("\n")).toHaveLength(1);
    first.signal("SIGSTOP");
    expect(failureOf(open).code).toBe("writer_elsewhere");
    first.signal("SIGCONT");
    expect(await first.act()).toBe("wrote 2");
    await first.kill();
    const second = openScratch({ path });
    expect(rows(second, "SELECT ts FROM index_ticks")).toEqual([{ ts: 1 }, { ts: 2 }]);
    expect(second.setAside).toEqual([]);
  });

  it("F9: a zombie whose epoch is over cannot commit, even if its lock was taken from it", () => {
    const warehouse = openScratch();
    write(warehouse);
    const other = new Database(warehouse.path);
    other.exec("UPDATE warehouse_state SET epoch = epoch + 1");
    other.close();
    expect(failureOf(() => write(warehouse, 9000))).toMatchObject({
      code: "writer_replaced",
      family: "operator",
    });
    expect(failureOf(() => write(warehouse, 9000)).code).toBe("writer_replaced");
    expect(rows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 500 }]);
  });

  it("keeps its lock when the same process tries to open the warehouse again", () => {
    const path = join(scratch(), "mds.sqlite");
    const warehouse = openScratch({ path });
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(failureOf(() => openWarehouse(path, { clock: new TurnedClock() })).code).toBe(
        "writer_elsewhere",
      );
    }
    expect(write(warehouse).inserted).toBe(500);
  });

  it("has the durability that it asked for", () => {
    const { database } = openScratch().connection;
    const pragma = (name: string) => database.pragma(name, { simple: true });
    expect([pragma("journal_mode"), pragma("synchronous"), pragma("busy_timeout")]).toEqual(["wal", 2, 2000]);
  });

  it("keeps its WAL within the space that is reserved for it, also where nobody else sees to it", () => {
    const warehouse = openScratch();
    warehouse.transaction((t) => t.statement("CREATE TABLE heavy (load BLOB)").run());
    for (let load = 0; load < 24; load++)
      warehouse.transaction((t) => t.statement("INSERT INTO heavy VALUES (zeroblob(4000000))").run());
    expect(walBytes(warehouse.path)).toBeLessThan(SPACE_RESERVE_BYTES + 8_000_000);
  });

  it("refuses a nested transaction and one that waits", () => {
    const warehouse = openScratch();
    expect(() => warehouse.transaction(() => warehouse.transaction(() => 1))).toThrow("open already");
    const escaping = () =>
      warehouse.transaction(async (t) => writeRecords(t, "index_ticks", page(0), "rest"));
    expect(escaping).toThrow("must be synchronous");
    expect(rows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 0 }]);
    expect(write(warehouse).inserted).toBe(500);
  });

  it("F8: begins every transaction as a writer, so that another's commit cannot spoil it halfway", () => {
    const warehouse = openScratch();
    const other = new Database(warehouse.path, { timeout: 0 });
    warehouse.transaction((transaction) => {
      transaction.statement("SELECT count(*) FROM series").get();
      expect(() => other.exec("UPDATE warehouse_state SET clock_skew = 1")).toThrow("database is locked");
      writeRecords(transaction, "index_ticks", page(0), "rest");
    });
    other.close();
    expect(rows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 500 }]);
  });
});

describe("readers", () => {
  it("see one snapshot, block no writer and are blocked by none", () => {
    const warehouse = openScratch();
    write(warehouse);
    const reader = openReader(warehouse.path);
    const count = () => reader.database.prepare("SELECT count(*) FROM index_ticks").pluck().get();
    reader.database.exec("BEGIN");
    expect(count()).toBe(500);
    write(warehouse, 1000);
    expect(count()).toBe(500);
    reader.database.exec("COMMIT");
    warehouse.transaction((transaction) => {
      writeRecords(transaction, "index_ticks", page(2000), "rest");
      expect(count()).toBe(1000);
      expect(readStatus(reader, 0).streams).toHaveLength(9);
    });
    expect(() => reader.database.exec("DELETE FROM index_tick_rows")).toThrow("readonly");
    reader.close();
  });

  it("F6: one that stays keeps the WAL from shrinking, is named, and the WAL is cut once it ends", async () => {
    const warehouse = openScratch();
    write(warehouse);
    const reader = startHolder("reader", warehouse.path);
    expect(await reader.next()).toBe("open");
    for (let i = 1; i < 20; i++) write(warehouse, i * 1000);
    const blocked = truncateWal(warehouse.connection);
    expect(blocked).toMatchObject({ isTruncated: false, holders: { readers: [reader.pid] } });
    expect(blocked.walBytes).toBeGreaterThan(100_000);
    expect(warehouse.connection.database.pragma("busy_timeout", { simple: true })).toBe(2000);
    expect(write(warehouse, 99_000).inserted).toBe(500);
    expect(await reader.act()).toBe("closed");
    expect(truncateWal(warehouse.connection)).toMatchObject({ isTruncated: true, walBytes: 0 });
    expect(walBytes(warehouse.path)).toBe(0);
  });

  it("F6: one that is in the way of moving the WAL delays it, and only until it ends", () => {
    const warehouse = openScratch();
    const waiting = () => {
      const [wal] = rows(warehouse, "PRAGMA wal_checkpoint(NOOP)");
      return Number(wal?.log) - Number(wal?.checkpointed);
    };
    write(warehouse);
    const reader = openReader(warehouse.path);
    reader.database.exec("BEGIN; SELECT count(*) FROM index_ticks");
    write(warehouse, 1_000);
    warehouse.shortenWal(1);
    expect(waiting()).toBeGreaterThan(0);
    reader.close();
    write(warehouse, 2_000);
    warehouse.shortenWal(1);
    expect(waiting()).toBe(0);
  });

  it("F7: a quant's write transaction makes the writer wait, then say db_locked and who; its end heals", async () => {
    const warehouse = openScratch();
    const blocker = startHolder("blocker", warehouse.path);
    expect(await blocker.next()).toBe("open");
    warehouse.connection.database.pragma("busy_timeout = 50");
    const refused = failureOf(() => write(warehouse));
    expect(refused).toMatchObject({ code: "db_locked", family: "retry", exit: 75 });
    expect(refused.line).toContain(`another program (pid ${blocker.pid}) holds the write lock`);
    // Our own process is nobody to name.
    const reader = openReader(warehouse.path);
    reader.database.exec("BEGIN");
    reader.database.prepare("SELECT count(*) FROM index_ticks").get();
    expect(lockHolders(warehouse.path)).toEqual({ readers: [blocker.pid], writers: [blocker.pid] });
    reader.close();
    expect(await blocker.act()).toBe("closed");
    expect(write(warehouse).inserted).toBe(500);
  });
});
