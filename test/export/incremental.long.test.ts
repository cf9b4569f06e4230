import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { prune } from "../../src/warehouse/rows/retention.ts";
import type { Transaction } from "../../src/warehouse/tables/transaction.ts";
import {
  expectSame,
  exportIn,
  inCatalogue,
  inWarehouse,
  shareExport,
} from "../support/export/read-export.ts";
import { lookups, month, monthStart } from "../support/export/sample-data.ts";
import { DAY, midnight, STEP } from "../support/warehouse/filled-warehouse.ts";
import { bar, exchangeTick, tick } from "../support/warehouse/records.ts";
import { settle } from "../support/warehouse/settle.ts";
import { storeTicks, writeRecords, writeTicks } from "../support/warehouse/write-records.ts";

const exported = shareExport();

const gwa = (back: number) => `index_ticks/index_type=GWA/month=${month(back)}/data.parquet`;
const btc = (transaction: Transaction) => transaction.dictionary.getSeriesKey("GWA", "btc-id");

describe("a second export", () => {
  it("writes only the months that have changed", async () => {
    const { folder, warehouse } = exported();
    const path = join(folder, "export", gwa(3));
    const before = statSync(path);
    const step = async (change: (transaction: Transaction) => void) => {
      warehouse.transaction(change);
      return (await exportIn(folder)).months_written;
    };
    expect(await step(() => {})).toEqual([]);
    const ts = (back: number) => monthStart(back) + 9 * DAY;
    const write = (t: Transaction, back: number, price: string, quality: string | null = null) =>
      writeTicks(t, [tick(ts(back), price, { quality })]);
    // Late rows.
    const late = await step((t) => {
      for (const back of [3, 2, 1]) write(t, back, "5.5");
      write(t, 0, "5.5", "so so");
    });
    expect(late).toEqual([3, 2, 1, 0].map(gwa));
    // In one month each: a correction, a doubt, what the ledger proves, and another doubt.
    const changed = await step((t) => {
      write(t, 3, "5.6");
      write(t, 2, "5.5", "so so");
      write(t, 1, "5.5");
      settle(t, { stream: "index_ticks", series: btc(t) }, { from: ts(1), to: ts(1) + STEP }, "rows");
      write(t, 0, "5.5", "so no");
      // A bar that is not settled is replaced without a revision.
      writeRecords(t, "ohlcv", [bar(midnight, "2", { recordId: null })]);
    });
    expect(changed).toEqual([...[3, 2, 1, 0].map(gwa), "ohlcv/index_type=GWA/data.parquet"]);
    // Somebody who had the old file open goes on reading it.
    expect(statSync(path).ino).not.toBe(before.ino);
    await expectSame(folder, "index_ticks", "ohlcv", "coverage", "revisions");
  });

  it("writes the file of each index type whose ticks came in one batch", async () => {
    const { folder, warehouse } = exported();
    const ts = monthStart(0) + 9 * DAY;
    const ids = { GWA: "btc-id", MWA: "btc-usd-id", LX: "lx/1 %" } as const;
    const types = ["GWA", "LX", "MWA"] as const;
    const ticks = types.map((indexType) => tick(ts, "5.5", { indexType, indexId: ids[indexType] }));
    storeTicks(warehouse, ticks, "live");
    const { months_written } = await exportIn(folder);
    const files = types.map((type) => gwa(0).replace("GWA", type));
    expect(months_written.filter((path) => path.startsWith("index_ticks"))).toEqual(files);
    await expectSame(folder, "index_ticks");
  });

  it("writes every month of a renamed series, and drops a month whose rows are gone and does not cover it", async () => {
    const { folder, warehouse } = exported();
    const place = join(folder, "export/exchange_ticks");
    expect(readdirSync(place).sort()).toEqual([`month=${month(1)}`, `month=${month(0)}`]);
    warehouse.transaction((t) => {
      t.dictionary.nameSeries(t.dictionary.getSeriesKey("LX", "lx/1 %"), "ELX");
      prune(t, "exchange_ticks", monthStart(0));
    });
    const { months_written } = await exportIn(folder);
    expect(months_written).toContain(`index_ticks/index_type=LX/month=${month(3)}/data.parquet`);
    expect(months_written.filter((path) => path.startsWith("index_ticks"))).toHaveLength(1);
    expect(readdirSync(place)).toEqual([`month=${month(0)}`]);
    await expectSame(folder, "index_ticks", "exchange_ticks", "coverage");
  });

  it("with --since keeps older months, and covers of them only what the previous export covered", async () => {
    const { folder, warehouse } = exported();
    const ts = monthStart(3) + 20 * DAY;
    warehouse.transaction((t) => {
      const series = btc(t);
      for (const at of [ts, monthStart(0) + DAY]) {
        writeTicks(t, [tick(at, "5.5")]);
        settle(t, { stream: "index_ticks", series }, { from: at, to: at + STEP }, "rows");
      }
      writeRecords(t, "exchange_ticks", [exchangeTick(monthStart(1), "5")]);
    });
    const { months_written } = await exportIn(folder, { since: monthStart(1) + DAY });
    expect(months_written).toEqual([
      `index_ticks/index_type=GWA/month=${month(0)}/data.parquet`,
      `exchange_ticks/month=${month(1)}/data.parquet`,
    ]);
    const asked = (relation: string, at: number) =>
      inCatalogue(
        join(folder, "export/mds.duckdb"),
        `SELECT count(*)::INTEGER FROM ${relation} WHERE stream = 'index_ticks' AND name = 'BTC' AND from_ts <= ${at} AND to_ts > ${at}`,
      );
    expect(await asked("coverage", ts)).toEqual([[0]]);
    expect(await asked("(FROM gaps WHERE reason = 'not exported')", ts)).toEqual([[1]]);
    expect(await asked("coverage", monthStart(0) + DAY)).toEqual([[1]]);
    expect(await asked("coverage", monthStart(2))).toEqual([[1]]);
    await expectSame(folder, "exchange_ticks");
    // The next one without it makes up for that: it writes all that has changed since the last export that read everything.
    expect((await exportIn(folder)).months_written).toContain(gwa(3));
    expect((await exportIn(folder)).months_written).toEqual([]);
    await expectSame(folder, "index_ticks", "coverage");
    // Where an older file is gone every month is looked at: the manifest does not say that some were left alone.
    const manifest = () => JSON.parse(readFileSync(join(folder, "export/manifest.json"), "utf8"));
    await exportIn(folder, { since: monthStart(1) });
    expect(manifest().since).toBe(month(1));
    const { version } = manifest().files.find(({ path }: { path: string }) => path === gwa(3));
    rmSync(join(folder, "export", version));
    await exportIn(folder, { since: monthStart(1) });
    expect(manifest().since).toBe(null);
  });

  it("writes every month again after an export by a version with other columns, even with --since", async () => {
    const { folder } = exported();
    const file = join(folder, "export/manifest.json");
    const manifest = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(file, JSON.stringify({ ...manifest, columns: "of another version" }));
    const { months_written } = await exportIn(folder, { since: monthStart(0) });
    expect(months_written).toContain(gwa(3));
    await expectSame(folder, "index_ticks", "market_caps");
  });

  it("cuts many daily bars into years, very many ticks into days, and removes files of the other cut", async () => {
    const { folder, warehouse } = exported();
    const files = (relation: string) =>
      readdirSync(join(folder, "export", relation), { recursive: true, encoding: "utf8" })
        .filter((path) => path.endsWith("/data.parquet"))
        .sort();
    // The rows of a stream are known by the writer's own count.
    const setRows = (stream: string, rows: number) =>
      warehouse.transaction((t) =>
        t.statement("UPDATE stream_states SET rows = ? WHERE stream = ?").run([rows, stream]),
      );
    expect(files("ohlcv")).toEqual(["index_type=GWA/data.parquet"]);
    setRows("ohlcv", 1_000_001);
    setRows("index_ticks", 1_000_000_000);
    await exportIn(folder, { since: midnight });
    const years = new Set(inWarehouse(warehouse.path, "SELECT substr(day, 1, 4) FROM ohlcv").map(String));
    expect(files("ohlcv")).toEqual(
      [...years].sort().map((year) => `index_type=GWA/year=${year}/data.parquet`),
    );
    const days = inWarehouse(
      warehouse.path,
      "SELECT DISTINCT index_type, substr(time, 1, 10) FROM index_ticks",
    );
    // A day that is not over has several files.
    const folders = readdirSync(join(folder, "export/index_ticks"), { recursive: true, encoding: "utf8" });
    expect(folders.filter((path) => /day=[^/]*$/.test(path)).sort()).toEqual(
      days.map(([type, day]) => `index_type=${type}/day=${day}`).sort(),
    );
    await expectSame(folder, "ohlcv", "index_ticks", "coverage", "bars_1d");
    // Years before the one of --since are not read again.
    warehouse.transaction((t) => writeRecords(t, "ohlcv", [bar(midnight, "3", { recordId: null })]));
    const { months_written } = await exportIn(folder, { since: midnight });
    const thisYear = new Date(midnight / 1000).toISOString().slice(0, 4);
    expect(months_written).toEqual([`ohlcv/index_type=GWA/year=${thisYear}/data.parquet`]);
    setRows("ohlcv", 10);
    await exportIn(folder);
    expect(files("ohlcv")).toEqual(["index_type=GWA/data.parquet"]);
    await expectSame(folder, "ohlcv", "coverage");
  });

  it("updates the lookups too, and what they rename", async () => {
    const { folder, warehouse } = exported();
    warehouse.transaction((t) => lookups(t, "ACTIVE"));
    const { months_written, files_written } = await exportIn(folder);
    expect(months_written).toEqual([]);
    // assets and status_changes; and gaps, where the open heads have grown since.
    expect([2, 3]).toContain(files_written);
    await expectSame(folder, "assets", "status_changes");
    expect(existsSync(join(folder, "export/.mds-sync/work"))).toBe(false);
  });
});
