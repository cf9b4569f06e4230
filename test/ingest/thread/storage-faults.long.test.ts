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
import { createForwardingLog, type LogEntry } from "../../../src/runtime/log.ts";
import { readLastShutdown } from "../../../src/warehouse/sqlite/shutdown-marker.ts";
import {
  commitPage,
  coverageSql,
  gap,
  onlyPage,
  readPage,
  startIngest,
  startIngestThread,
  wholeCoverage,
} from "../../support/ingest/ingest-harness.ts";
import {
  at,
  btc,
  exchangeMessage,
  liveMessage,
  makeTicks,
  SECOND,
  tickPage,
} from "../../support/ingest/pages.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { timeLimit } from "../../support/time-limit.ts";
import { waitUntil } from "../../support/wait-until.ts";

describe("another program's write lock", () => {
  it("does not delay the close by more than a few seconds, even with many queued commits", async () => {
    const { ingest, query, path } = await startIngestThread();
    const quant = new Database(path);
    quant.exec("BEGIN IMMEDIATE");
    const pages = Array.from({ length: 10 }, () =>
      commitPage(ingest, onlyPage, tickPage(makeTicks(gap.from, gap.to))).then(
        () => "committed",
        (error: Failure) => error.code,
      ),
    );
    await new Promise((tick) => setTimeout(tick, 200));
    const startedAt = performance.now();
    await ingest.close();
    expect(performance.now() - startedAt).toBeLessThan(timeLimit(4_500));
    expect(new Set(await Promise.all(pages))).toEqual(new Set(["stopped"]));
    quant.close();
    expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 0 }]);
  });

  it("delays a commit, and the database optimization, which runs outside a transaction, until the lock is free", async () => {
    const [committing, optimizing] = await Promise.all([startIngestThread(), startIngestThread()]);
    await commitPage(optimizing.ingest, onlyPage, tickPage(makeTicks(gap.from, gap.to)));
    const threads = [committing, optimizing];
    const quants = threads.map(({ path }) => new Database(path).exec("BEGIN IMMEDIATE"));
    const commit = commitPage(committing.ingest, onlyPage, tickPage(makeTicks(gap.from, gap.to)));
    const optimized = optimizing.ingest.call("optimizeDatabase", undefined);
    await waitUntil(() => threads.every(({ ingest }) => ingest.state === "db_locked"));
    const { ingest, query, path, clock } = committing;
    // These calls need neither disk space nor the lock, so they do not show that storage works.
    await readPage(ingest, onlyPage, tickPage([]));
    await ingest.call("ping", undefined);
    await ingest.call("recordIntegrityCheck", undefined);
    await ingest.call("checkStorage", undefined);
    expect(ingest.state).toBe("db_locked");
    expect(ingest.blockedBy).toContain(`holds the write lock of ${path}`);
    for (const quant of quants) quant.exec("ROLLBACK").close();
    expect(await clock.runUntil(commit)).toMatchObject({ isComplete: true });
    expect([ingest.state, ingest.blockedBy]).toEqual(["working", undefined]);
    expect(query(coverageSql)).toEqual(wholeCoverage);
    expect(await optimizing.clock.runUntil(optimized)).toMatchObject({ isTruncated: true });
    expect(optimizing.ingest.state).toBe("working");
  });
});

describe("pages of many walks", () => {
  it("are stored without a second fetch after another program held the write lock for 20 seconds", async () => {
    const { ingest, query, path, clock } = await startIngestThread();
    const quant = new Database(path).exec("BEGIN IMMEDIATE");
    const commits = Promise.all(
      Array.from({ length: 16 }, (_, walk) => {
        const indexId = `walk-${walk}`;
        const ticks = makeTicks(gap.from, gap.to).map((tick) => ({ ...tick, indexId }));
        return commitPage(ingest, { ...onlyPage, series: { ...btc, indexId } }, tickPage(ticks));
      }),
    );
    await waitUntil(() => ingest.state === "db_locked");
    await clock.advance(20_000);
    quant.exec("ROLLBACK").close();
    await clock.runUntil(commits);
    expect(query(coverageSql)).toEqual(Array.from({ length: 16 }, () => wholeCoverage[0]));
  });

  it("stay until their commit, however many wait", async () => {
    const { ingest, query } = await startIngest();
    const body = () => tickPage(makeTicks(gap.from, gap.to));
    const commit = await readPage(ingest, onlyPage, body());
    for (let page = 0; page < 200; page++) await readPage(ingest, onlyPage, body());
    await commit();
    expect(query(coverageSql)).toEqual(wholeCoverage);
  });
});

describe("calls behind one that storage blocks", () => {
  const exchangeTick = (marketId: string, time: string) => exchangeMessage(time, { marketId });

  /** The commit of a tick waits for a lock that is free again; ticks of the next period are behind it. */
  async function blockTick() {
    const { ingest, query, path, clock } = await startIngestThread();
    const exchanges = [{ exchangeId: "kraken", since: at("17:50:00") }];
    await ingest.call("commitLiveFeedChange", { exchanges, cadence: 30 * SECOND });
    await ingest.call("commitLiveMessages", [exchangeTick("btc", "17:50:00")]);
    const quant = new Database(path).exec("BEGIN IMMEDIATE");
    const stored: string[] = [];
    const commit = (name: string, ...messages: string[]) =>
      ingest.call("commitLiveMessages", messages).then(
        () => void stored.push(name),
        (error: Failure) => error.code,
      );
    const blocked = commit("eth", exchangeTick("eth", "17:50:01"));
    const inFlight = commit("btc", exchangeTick("btc", "17:50:30"));
    await waitUntil(() => ingest.state === "db_locked");
    quant.exec("ROLLBACK").close();
    const later = commit("later", exchangeTick("btc", "17:51:00"));
    return { ingest, query, clock, stored, commits: [blocked, inFlight, later] };
  }
  const ticks = "SELECT market_id FROM exchange_ticks ORDER BY ts";

  it("are committed after it, in order", async () => {
    const { clock, stored, commits, query } = await blockTick();
    await clock.runUntil(Promise.all(commits));
    expect(stored).toEqual(["eth", "btc", "later"]);
    expect(query(ticks).map(({ market_id: market }) => market)).toEqual(["btc", "eth", "btc", "btc"]);
  });

  it("are not committed if it never is: a period is not covered without its rows", async () => {
    const { ingest, commits, query } = await blockTick();
    // It needs neither disk space nor the lock.
    await ingest.call("ping", undefined);
    await ingest.close();
    expect(await Promise.all(commits)).toEqual(["stopped", "stopped", "stopped"]);
    expect(query(ticks)).toHaveLength(1);
    expect(query(coverageSql)).toEqual([]);
  });
});

it("the WAL is checkpointed between live batches, so that it stays short", async () => {
  const { ingest, query, path } = await startIngest();
  const note = "x".repeat(12_000);
  let longest = 0;
  for (let batch = 0; batch < 36; batch++) {
    const ts = at("10:00:00") + batch * 30 * SECOND;
    const messages = Array.from({ length: 100 }, (_, n) =>
      liveMessage({ ts, indexId: `index-${n}` }).replace("}", `,"note":"${note}"}`),
    );
    await ingest.call("commitLiveMessages", messages);
    await ingest.call("ping", undefined);
    longest = Math.max(longest, statSync(`${path}-wal`).size);
  }
  expect(query("SELECT count(*) AS rows FROM index_ticks")).toEqual([{ rows: 3_600 }]);
  // The limit is 8,000 pages plus one batch; without checkpoints it would be twice as long.
  expect(longest).toBeLessThan(40_000_000);
});

it("F10, F17: an unusual file is logged by the main thread: a quarantined file, a symbolic link", async () => {
  const folder = temporaryFolder();
  const [path, link] = [join(folder, "mds.sqlite"), join(folder, "link.sqlite")];
  for (const file of [path, `${path}.crash`]) writeFileSync(file, "");
  symlinkSync(path, link);
  const entries: LogEntry[] = [];
  await startIngest({ path: link, log: createForwardingLog((entry) => entries.push(entry)) });
  expect(entries).toEqual([
    {
      level: "error",
      fields: { reason: "the file is empty", files: [`${path}.aside-2026-03-01T180000Z`] },
      message: "damaged warehouse quarantined",
    },
    { level: "warn", fields: { link, path }, message: "warehouse path is a symbolic link" },
  ]);
});

describe("a file that fails while it is open", () => {
  const commit = (ingest: IngestThread) =>
    commitPage(ingest, onlyPage, tickPage(makeTicks(gap.from, gap.to)));

  it("F4: is marked unclean after an I/O error outside a transaction, and nothing more is written", async () => {
    const { ingest, path } = await startIngest();
    await commit(ingest);
    truncateSync(`${path}-wal`, 1000);
    // A short WAL is not read. The thread has the one open that was at its path.
    renameSync(`${path}-wal`, `${path}-short`);
    writeFileSync(`${path}-wal`, "");
    truncateSync(`${path}-wal`, 64 * 1024 * 1024);
    await expect(ingest.call("checkStorage", undefined)).rejects.toMatchObject({ code: "io_error" });
    await expect(commit(ingest)).rejects.toMatchObject({ code: "io_error" });
    await ingest.close();
    expect(readLastShutdown(path)).toEqual({ kind: "unclean" });
  });

  it("F4: is marked unclean if the I/O error occurs on close", async () => {
    const { ingest, path } = await startIngest();
    await commit(ingest);
    truncateSync(`${path}-wal`, 1000);
    await ingest.close();
    expect(readLastShutdown(path)).toEqual({ kind: "unclean" });
  });

  it("F10: is marked suspect after damage found outside a transaction", async () => {
    const { path, ingest } = await startIngest();
    const entry = { derivativeType: "futures", exchangeId: "kraken-id", day: "2026-03-01" };
    await ingest.call("commitNoContracts", entry);
    await ingest.call("optimizeDatabase", undefined);
    const quant = new Database(path);
    const root = quant.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'rechecks'").pluck().get();
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(4096, 0xa5), 0, 4096, (Number(root) - 1) * 4096);
    // The thread has cached the page until another connection writes to the file.
    quant.exec("UPDATE warehouse_state SET clock_skew = 1");
    quant.close();
    closeSync(file);
    await expect(ingest.call("commitNoContracts", entry)).rejects.toMatchObject({ code: "db_corrupt" });
    await ingest.close();
    expect(readLastShutdown(path)).toEqual({ kind: "suspect" });
  });

  it("F10: is marked suspect after damage that a reader found", async () => {
    const { path, ingest } = await startIngest();
    const endedBy = new Database.SqliteError("database disk image is malformed", "SQLITE_CORRUPT");
    await ingest.close({ endedBy });
    expect(readLastShutdown(path)).toEqual({ kind: "suspect" });
  });

  it.each(["noticed", "not noticed"])(
    "F11: is not written to after it was replaced, and the new file is not marked clean (%s)",
    async (when) => {
      const { path, ingest } = await startIngest();
      renameSync(path, `${path}.moved`);
      copyFileSync(`${path}.moved`, path);
      if (when === "noticed") {
        await expect(ingest.call("checkStorage", undefined)).rejects.toMatchObject({ code: "db_replaced" });
        await expect(commit(ingest)).rejects.toMatchObject({ code: "db_replaced" });
      }
      await ingest.close();
      expect(readLastShutdown(path)).toEqual({ kind: "unclean" });
    },
  );
});
