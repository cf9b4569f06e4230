import { closeSync, openSync, readdirSync, writeSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { readLastCrash } from "../../src/warehouse/sqlite/crash-marker.ts";
import { noteEnd, readLastEnd } from "../../src/warehouse/sqlite/shutdown-marker.ts";
import { daemonUnderTest } from "../support/daemon/daemon-harness.ts";

const HOUR = 3_600_000;
const only = (assets: string, exchanges: string) => `
sync:
  ohlcv: false
  intraday: { GWA: [${assets}], MWA: none, LX: none, days: 1 }
  exchangeTickers: ${exchanges === "" ? "false" : `{ exchanges: [${exchanges}], markets: [BTC/USD] }`}
  marketCap: false
  derivatives: false
`;

const wanted = `SELECT s.name, w.from_ts AS "from", w.to_ts AS "to" FROM wanted_ranges w JOIN series s USING (series)
  WHERE w.stream = 'index_ticks' ORDER BY s.name, w.from_ts`;
const watched = `SELECT s.index_id AS id, w.to_ts AS "to" FROM wanted_ranges w JOIN series s USING (series)
  WHERE w.stream = 'exchange_ticks' ORDER BY w.to_ts IS NULL`;
const rowsOf = (name: string) =>
  `SELECT count(*) AS n, max(ts) AS newest FROM index_ticks WHERE name = '${name}'`;

describe("a daemon that starts on a warehouse from before", () => {
  it("ends what is no longer selected at that moment, follows what is new, and goes on with what is selected again", async () => {
    const daemon = await daemonUnderTest({ settings: only("BTC, ETH", "Kraken, Binance") });
    const { clock, query } = daemon;
    const micros = () => clock.now() * 1000;
    await (await daemon.start()).stop();
    expect(query(watched)).toEqual([
      expect.objectContaining({ to: null }),
      expect.objectContaining({ to: null }),
    ]);

    daemon.configure(only("BTC, SOL", "Kraken"));
    await clock.advance(2 * HOUR);
    const before = micros();
    const second = await daemon.start();
    await second.until(() => query(watched).filter(({ to }) => to === null).length === 1);
    // It ends when the daemon learned of it, not when it was last seen: the time in between was wanted, and is filled.
    await second.until(() => Number(query(rowsOf("ETH"))[0]?.newest) > before - 120e6);
    await second.stop();
    const after = query(wanted);
    expect(after.map(({ name, to }) => [name, to === null])).toEqual([
      ["BTC", true],
      ["ETH", false],
      ["SOL", true],
    ]);
    const ended = Number(after[1]?.to);
    expect(ended).toBeGreaterThanOrEqual(before - 1e6);
    expect(ended).toBeLessThan(before + 60e6);
    const [eth] = query(rowsOf("ETH"));
    daemon.expectTruth();

    daemon.configure(only("ETH", ""));
    await clock.advance(26 * HOUR);
    const third = await daemon.start();
    await third.until(() => query(watched).every(({ to }) => to !== null));
    await third.stop();
    // A day back is wanted anew, and what lies between is nobody's: the first range still ends where it ended.
    expect(query(wanted).filter(({ name }) => name === "ETH")).toEqual([
      { name: "ETH", from: after[1]?.from, to: ended },
      { name: "ETH", from: expect.any(Number), to: null },
    ]);
    expect(Number(query(rowsOf("ETH"))[0]?.n)).toBeGreaterThan(Number(eth?.n) + 2000);
    expect(query(rowsOf("SOL"))[0]?.n).toBeGreaterThan(2000);
    daemon.expectTruth();
  }, 120_000);

  it("on an old copy fetches what the copy lacks, and ends at the truth", async () => {
    const daemon = await daemonUnderTest({ settings: only("BTC, ETH", "Kraken") });
    const { clock, query, path, folder } = daemon;
    const first = await daemon.start();
    const copy = join(folder, "copy.sqlite");
    // As `mds-sync backup` does: one moment of the file while the daemon writes.
    const source = new Database(path, { readonly: true });
    source.exec(`VACUUM INTO '${copy}'`);
    source.close();
    const until = clock.monotonic() + HOUR / 2;
    await first.until(() => clock.monotonic() > until);
    await first.stop();
    const [whole] = query(rowsOf("BTC"));

    const second = await daemon.start(copy);
    await second.stop();
    daemon.expectTruth(copy);
    const [restored] = query(rowsOf("BTC"), copy);
    expect(Number(restored?.n)).toBeGreaterThanOrEqual(Number(whole?.n));
    // What nobody can fetch any more is not hidden.
    const lost = query(
      "SELECT state, reason, to_ts - from_ts AS span FROM gaps WHERE stream = 'exchange_ticks'",
      copy,
    );
    expect(lost.some(({ state, span }) => state === "lost" && Number(span) > 0.45 * HOUR * 1000)).toBe(true);
  }, 120_000);

  it("checks a large file beside its work after an unclean end, and sets a damaged one aside at the next start", async () => {
    const daemon = await daemonUnderTest({ settings: only("BTC", "") });
    const { path, folder, clock } = daemon;
    await (await daemon.start()).stop();
    const database = new Database(path);
    database.exec("CREATE TABLE ballast (bytes BLOB); INSERT INTO ballast VALUES (zeroblob(80000000))");
    database.close();
    const file = openSync(path, "r+");
    writeSync(file, Buffer.alloc(4, 255), 0, 4, 10_000 * 4096);
    closeSync(file);

    const second = await daemon.start();
    expect((await second.get("/readyz")).status).toBe(200);
    await expect(clock.runUntil(second.done)).rejects.toMatchObject({ code: "db_corrupt" });
    const third = await daemon.start();
    // What ended the one before is told by this one, and stays known to `status`.
    const told = JSON.parse((await third.get("/api/daemon")).text) as { errors: unknown[] };
    const line = expect.stringContaining("is damaged");
    expect(told.errors).toContainEqual(
      expect.objectContaining({ where: "daemon", code: "db_corrupt", message: line }),
    );
    expect(JSON.parse((await third.get("/api/status")).text)).toMatchObject({
      last_crash: { code: "db_corrupt", line },
    });
    // As an exception that nobody catches does before it ends the process.
    (process as NodeJS.EventEmitter).emit("uncaughtExceptionMonitor", new Error("thrown at\n random"));
    expect(readLastCrash(path)).toMatchObject({ code: "unexpected", line: "Error: thrown at random" });
    await third.stop();
    expect(readdirSync(folder).filter((name) => /\.aside-.*Z$/.test(name))).toHaveLength(1);
    daemon.expectTruth();

    // Damage that only who reads beside the writer meets, in a file that looks untouched, is told to the next start too.
    const [{ root } = {}] = daemon.query(
      "SELECT rootpage AS root FROM sqlite_master WHERE name = 'job_runs'",
    );
    const rotten = openSync(path, "r+");
    writeSync(rotten, Buffer.alloc(4096, 255), 0, 4096, (Number(root) - 1) * 4096);
    closeSync(rotten);
    noteEnd(path, "clean");
    await expect(daemon.start()).rejects.toMatchObject({
      code: "db_corrupt",
      remedy: expect.stringContaining("start again"),
    });
    expect(readLastEnd(path)).toEqual({ kind: "suspect" });
  }, 120_000);
});
