import {
  closeSync,
  copyFileSync,
  openSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { IngestThread } from "../../../src/ingest/thread/ingest-thread.ts";
import type { Failure } from "../../../src/model/failure.ts";
import { createBufferingLog, type LogEntry } from "../../../src/runtime/log.ts";
import { readLastShutdown } from "../../../src/warehouse/sqlite/shutdown-marker.ts";
import {
  commitPage,
  coverageSql,
  hole,
  start,
  whole,
  wholePage,
} from "../../support/ingest/ingest-harness.ts";
import { at, liveMessage, pageOf, SECOND, ticks } from "../../support/ingest/pages.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

describe("another program's write lock", () => {
  it("does not keep the thread from closing within seconds, however many commits are queued", async () => {
    const { ingest, query, path } = await start();
    const quant = new Database(path);
    quant.exec("BEGIN IMMEDIATE");
    const pages = Array.from({ length: 10 }, () =>
      commitPage(ingest, wholePage, pageOf(ticks(hole.from, hole.to))).then(
        () => "committed",
        (error: Failure) => error.code,
      ),
    );
    await new Promise((tick) => setTimeout(tick, 200));
    const begun = performance.now();
    await ingest.close();
    expect(performance.now() - begun).toBeLessThan(4_500);
    expect(new Set(await Promise.all(pages))).toEqual(new Set(["stopped"]));
    quant.close();
    expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 0 }]);
  });

  it("is waited through: the page is kept, and the work goes on when the lock is free", async () => {
    const { ingest, query, path, clock } = await start();
    const quant = new Database(path);
    quant.exec("BEGIN IMMEDIATE");
    const commit = commitPage(ingest, wholePage, pageOf(ticks(hole.from, hole.to)));
    while (ingest.state !== "db_locked") await new Promise((tick) => setTimeout(tick, 50));
    // None of these takes room or the lock, so none of them means that storage is well.
    await ingest.call("readPage", { stream: "index_ticks", series: wholePage.series }, [pageOf([])]);
    await ingest.call("ping", undefined);
    await ingest.call("recordIntegrityCheck", undefined);
    await ingest.call("checkStorage", undefined);
    expect(ingest.state).toBe("db_locked");
    expect(ingest.blockedBy).toContain(`holds the write lock of ${path}`);
    quant.exec("ROLLBACK");
    quant.close();
    expect(await clock.runUntil(commit)).toMatchObject({ isComplete: true });
    expect([ingest.state, ingest.blockedBy]).toEqual(["working", undefined]);
    expect(query(coverageSql)).toEqual(whole);
  });

  it("is waited through by the upkeep too, which writes without a transaction of ours", async () => {
    const { ingest, path, clock } = await start();
    await commitPage(ingest, wholePage, pageOf(ticks(hole.from, hole.to)));
    const quant = new Database(path);
    quant.exec("BEGIN IMMEDIATE");
    const tidied = ingest.call("optimizeDatabase", undefined);
    while (ingest.state !== "db_locked") await new Promise((tick) => setTimeout(tick, 50));
    quant.exec("ROLLBACK");
    quant.close();
    expect(await clock.runUntil(tidied)).toMatchObject({ isTruncated: true });
    expect(ingest.state).toBe("working");
  });
});

describe("the WAL", () => {
  it("is moved into the file between the batches of a live feed: it stays short, however many come", async () => {
    const { ingest, query, path } = await start();
    let longest = 0;
    for (let batch = 0; batch < 12; batch++) {
      const ts = at("10:00:00") + batch * 30 * SECOND;
      const messages = Array.from({ length: 6_000 }, (_, n) => liveMessage({ ts, indexId: `index-${n}` }));
      await ingest.call("commitLiveMessages", messages);
      await ingest.call("ping", undefined);
      longest = Math.max(longest, statSync(`${path}-wal`).size);
    }
    expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 72_000 }]);
    // 2,000 pages and one more batch; all of them are 5,000.
    expect(longest).toBeLessThan(13_000_000);
  });
});

describe("a file that is not as usual", () => {
  it("is told of in the log of the main thread: F10 what was set aside, F17 a symbolic link", async () => {
    const folder = temporaryFolder();
    const [path, link] = [join(folder, "mds.sqlite"), join(folder, "link.sqlite")];
    writeFileSync(path, "");
    symlinkSync(path, link);
    const lines: LogEntry[] = [];
    await start({ path: link, log: createBufferingLog(lines) });
    expect(lines).toEqual([
      { level: "warn", fields: { link, path }, message: "warehouse path is a symbolic link" },
      {
        level: "error",
        fields: { reason: "the file is empty", files: [`${path}.aside-2026-03-01T180000Z`] },
        message: "damaged warehouse quarantined",
      },
    ]);
  });
});

describe("a file that fails under the thread", () => {
  const commit = (ingest: IngestThread) => commitPage(ingest, wholePage, pageOf(ticks(hole.from, hole.to)));

  it("F4: is not called clean after an error of the disk outside of a transaction, and nothing more is written", async () => {
    const { ingest, path } = await start();
    await commit(ingest);
    truncateSync(`${path}-wal`, 1000);
    await expect(ingest.call("checkStorage", undefined)).rejects.toMatchObject({ code: "io_error" });
    await expect(commit(ingest)).rejects.toMatchObject({ code: "io_error" });
    await ingest.close();
    expect(readLastShutdown(path)).toEqual({ kind: "unclean" });
  });

  it("F4: is not called clean either when the error comes only as it is closed", async () => {
    const { ingest, path } = await start();
    await commit(ingest);
    truncateSync(`${path}-wal`, 1000);
    await ingest.close();
    expect(readLastShutdown(path)).toEqual({ kind: "unclean" });
  });

  it("F10: is suspect after damage met outside of a transaction", async () => {
    const { path, ingest } = await start();
    const denial = { derivativeType: "futures", exchangeId: "kraken-id", day: "2026-03-01" };
    await ingest.call("commitNoContracts", denial);
    await ingest.call("checkStorage", undefined);
    const quant = new Database(path);
    const root = quant.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'rereads'").pluck().get();
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, (Number(root) - 1) * 4096);
    // The thread has the page in its memory, until somebody else writes to the file.
    quant.exec("UPDATE warehouse_state SET clock_skew = 1");
    quant.close();
    closeSync(file);
    await expect(ingest.call("hasNoContracts", denial)).rejects.toMatchObject({ code: "db_corrupt" });
    await ingest.close();
    expect(readLastShutdown(path)).toEqual({ kind: "suspect" });
  });

  it("F10: is suspect after damage that somebody else met who read it", async () => {
    const { path, ingest } = await start();
    const endedBy = new Database.SqliteError("database disk image is malformed", "SQLITE_CORRUPT");
    await ingest.close({ endedBy: endedBy });
    expect(readLastShutdown(path)).toEqual({ kind: "suspect" });
  });

  it.each(["is noticed", "is not noticed before the end"])(
    "F11: is not written to once another lies in its place, which nobody calls clean; it %s",
    async (when) => {
      const { path, ingest } = await start();
      renameSync(path, `${path}.moved`);
      copyFileSync(`${path}.moved`, path);
      if (when === "is noticed") {
        await expect(ingest.call("checkStorage", undefined)).rejects.toMatchObject({ code: "db_replaced" });
        await expect(commit(ingest)).rejects.toMatchObject({ code: "db_replaced" });
      }
      await ingest.close();
      expect(readLastShutdown(path)).toEqual({ kind: "unclean" });
    },
  );
});
