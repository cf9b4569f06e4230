import { randomBytes } from "node:crypto";
import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { openReader } from "../../../src/warehouse/reader.ts";
import { MIN_FREE_BYTES } from "../../../src/warehouse/sqlite/disk.ts";
import { findLockHolders } from "../../../src/warehouse/sqlite/lock-holders.ts";
import { readWalBytes, truncateLongWal, truncateWal } from "../../../src/warehouse/sqlite/wal.ts";
import { assertNoWriter } from "../../../src/warehouse/sqlite/writer-lock.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { makeEmptyWarehouse } from "../../support/ingest/ingest-harness.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { catchFailure, openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";
import { startPeerProcess } from "../../support/warehouse/start-peer-process.ts";
import { storeTicks, writeTicks } from "../../support/warehouse/write-records.ts";

const page = (from: number) => Array.from({ length: 500 }, (_, i) => tick(from + i, "1.5"));
const write = (warehouse: WarehouseWriter, from = 0) => storeTicks(warehouse, page(from));

describe("the writer", () => {
  it("F9: blocks a second writer, even while stopped by SIGSTOP, until it is killed; the error names its pid", async () => {
    const path = makeEmptyWarehouse();
    const first = startPeerProcess("writer", path);
    expect(await first.nextLine()).toBe("open");
    expect(await first.act()).toBe("wrote 1");
    const open = () => openWriter(path, { clock: new ManualClock() });
    const refused = catchFailure(open);
    expect(refused).toMatchObject({ code: "writer_elsewhere", exit: 75 });
    expect(refused.summary).toContain(`pid ${first.pid} on `);
    expect(refused.summary.split("\n")).toHaveLength(1);
    first.signal("SIGSTOP");
    expect(catchFailure(open).code).toBe("writer_elsewhere");
    first.signal("SIGCONT");
    expect(await first.act()).toBe("wrote 2");
    await first.kill();
    const second = openTestWarehouse({ path });
    expect(queryRows(second, "SELECT ts FROM index_ticks")).toEqual([{ ts: 1 }, { ts: 2 }]);
    expect(second.quarantined).toEqual([]);
  });

  it("F9: cannot commit after another writer has raised the epoch, even if it lost its lock unnoticed", () => {
    const warehouse = openTestWarehouse();
    write(warehouse);
    const other = new Database(warehouse.path);
    other.exec("UPDATE warehouse_state SET epoch = epoch + 1");
    other.close();
    expect(catchFailure(() => write(warehouse, 9000))).toMatchObject({
      code: "writer_replaced",
      family: "operator",
    });
    expect(catchFailure(() => write(warehouse, 9000)).code).toBe("writer_replaced");
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 500 }]);
  });

  it.each([
    ["zeros", Buffer.alloc(4096), 3],
    ["half a database", Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(84, 0xff)]), 2],
  ])(
    "H10: opens with a lock file that holds %s; of processes that start at once, one wins",
    async (_, bytes, processes) => {
      const path = makeEmptyWarehouse();
      writeFileSync(`${path}.lock`, bytes);
      expect(() => assertNoWriter(path)).not.toThrow();
      const peers = Array.from({ length: processes }, () => startPeerProcess("writer", path));
      const lines = await Promise.all(peers.map((peer) => peer.nextLine()));
      const winners = peers.filter((_peer, n) => lines[n] === "open");
      expect(winners.length, lines.join("\n")).toBeLessThanOrEqual(1);
      // Two that meet at the same moment may both step back.
      const winner = winners[0] ?? startPeerProcess("writer", path);
      if (winners.length === 0) expect(await winner.nextLine()).toBe("open");
      for (const line of lines.filter((text) => text !== "open"))
        expect(line).toMatch(/^failure writer_elsewhere 75/);
      expect(await winner.act()).toBe("wrote 1");
      expect(catchFailure(() => openWriter(path, { clock: new ManualClock() })).code).toBe(
        "writer_elsewhere",
      );
    },
  );

  it("H10: the lock survives garbage that is written into its file", async () => {
    const path = makeEmptyWarehouse();
    const first = startPeerProcess("writer", path);
    expect(await first.nextLine()).toBe("open");
    writeFileSync(`${path}.lock`, randomBytes(4096));
    expect(catchFailure(() => openWriter(path, { clock: new ManualClock() })).code).toBe("writer_elsewhere");
    expect(catchFailure(() => assertNoWriter(path)).code).toBe("writer_elsewhere");
    expect(await first.act()).toBe("wrote 1");
  });

  it("keeps its lock when the same process tries to open the warehouse again", () => {
    const path = join(temporaryFolder(), "mds.sqlite");
    const warehouse = openTestWarehouse({ path });
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(catchFailure(() => openWriter(path, { clock: new ManualClock() })).code).toBe(
        "writer_elsewhere",
      );
    }
    expect(write(warehouse).inserted).toBe(500);
  });

  it("keeps its WAL within the reserved disk space without explicit checkpoints", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => t.statement("CREATE TABLE heavy (load BLOB)").run());
    for (let load = 0; load < 24; load++)
      warehouse.transaction((t) => t.statement("INSERT INTO heavy VALUES (zeroblob(4000000))").run());
    expect(readWalBytes(warehouse.path)).toBeLessThan(MIN_FREE_BYTES + 8_000_000);
  });

  it("F8: takes the write lock at the start of every transaction, so that no other commit can interfere", () => {
    const warehouse = openTestWarehouse();
    const other = new Database(warehouse.path, { timeout: 0 });
    warehouse.transaction((transaction) => {
      transaction.statement("SELECT count(*) FROM series").get();
      expect(() => other.exec("UPDATE warehouse_state SET clock_skew = 1")).toThrow("database is locked");
      writeTicks(transaction, page(0));
    });
    other.close();
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 500 }]);
  });
});

describe("readers", () => {
  it("F6: an open reader prevents the truncation of the WAL, is reported by pid, and allows it once it ends", async () => {
    const warehouse = openTestWarehouse();
    write(warehouse);
    const reader = startPeerProcess("reader", warehouse.path);
    expect(await reader.nextLine()).toBe("open");
    for (let i = 1; i < 20; i++) write(warehouse, i * 1000);
    const blocked = truncateWal(warehouse.connection);
    expect(blocked).toMatchObject({ isTruncated: false, holders: { readers: [reader.pid] } });
    expect(blocked.walBytes).toBeGreaterThan(100_000);
    expect(warehouse.connection.database.pragma("busy_timeout", { simple: true })).toBe(2000);
    expect(write(warehouse, 99_000).inserted).toBe(500);
    expect(await reader.act()).toBe("closed");
    expect(truncateWal(warehouse.connection)).toMatchObject({ isTruncated: true, walBytes: 0 });
    expect(readWalBytes(warehouse.path)).toBe(0);
  });

  it("that have not blocked a checkpoint leave a short WAL, which is not truncated", () => {
    const warehouse = openTestWarehouse();
    write(warehouse);
    const short = readWalBytes(warehouse.path);
    expect(truncateLongWal(warehouse.connection)).toMatchObject({ walBytes: short, isTruncated: false });
    expect(readWalBytes(warehouse.path)).toBe(short);
    truncateSync(`${warehouse.path}-wal`, 64 * 1024 * 1024);
    expect(truncateLongWal(warehouse.connection)).toMatchObject({ walBytes: 0, isTruncated: true });
    expect(queryRows(warehouse, "SELECT count(*) AS n FROM index_ticks")).toEqual([{ n: 500 }]);
  });

  it("F7: another program's write transaction fails ours with db_locked and its pid; after its end writes succeed", async () => {
    const warehouse = openTestWarehouse();
    const blocker = startPeerProcess("blocker", warehouse.path);
    expect(await blocker.nextLine()).toBe("open");
    warehouse.connection.database.pragma("busy_timeout = 50");
    const refused = catchFailure(() => write(warehouse));
    expect(refused).toMatchObject({ code: "db_locked", family: "retry", exit: 75 });
    expect(refused.summary).toContain(`another program (pid ${blocker.pid}) holds the write lock`);
    // Our own process is not reported.
    const reader = openReader(warehouse.path);
    reader.database.exec("BEGIN");
    reader.database.prepare("SELECT count(*) FROM index_ticks").get();
    expect(findLockHolders(warehouse.path)).toEqual({ readers: [blocker.pid], writers: [blocker.pid] });
    reader.close();
    expect(await blocker.act()).toBe("closed");
    expect(write(warehouse).inserted).toBe(500);
  });
});
