import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { prune } from "../../src/warehouse/rows/retention.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../src/warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { bothSides, exportIn, inCatalogue, inWarehouse } from "../support/export/read-export.ts";
import {
  DAY,
  exchangeTick,
  fillEverything,
  lookups,
  midnight,
  month,
  monthStart,
  openAt,
  STEP,
} from "../support/export/sample-data.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { bar, tick } from "../support/warehouse/records.ts";

async function exported(): Promise<{ folder: string; warehouse: WarehouseWriter }> {
  const folder = temporaryFolder();
  const warehouse = openAt(folder);
  onTestFinished(() => warehouse.close());
  warehouse.transaction(fillEverything);
  await exportIn(folder);
  return { folder, warehouse };
}

async function expectSame(folder: string, ...relations: string[]): Promise<void> {
  for (const relation of relations) {
    const { catalogue, warehouse } = await bothSides(folder, relation);
    expect(catalogue, relation).toEqual(warehouse);
  }
}

const gwa = (back: number) => `index_ticks/index_type=GWA/month=${month(back)}/data.parquet`;
const btc = (transaction: Transaction) => transaction.dictionary.getSeriesKey("GWA", "btc-id");

describe("a second export", () => {
  it("writes only the months that have changed", async () => {
    const { folder, warehouse } = await exported();
    const path = join(folder, "export", gwa(3));
    const before = statSync(path);
    const step = async (change: (transaction: Transaction) => void) => {
      warehouse.transaction(change);
      return (await exportIn(folder)).months_written;
    };
    expect(await step(() => {})).toEqual([]);
    const ts = monthStart(3) + 20 * DAY;
    // A late row, its correction, and what changes no figure of a row: a doubt, and what the ledger proves.
    expect(await step((t) => writeRecords(t, "index_ticks", [tick(ts, "5.5")], "rest"))).toEqual([gwa(3)]);
    expect(await step((t) => writeRecords(t, "index_ticks", [tick(ts, "5.6")], "rest"))).toEqual([gwa(3)]);
    const doubtful = tick(ts, "5.6", { quality: "so so" });
    expect(await step((t) => writeRecords(t, "index_ticks", [doubtful], "rest"))).toEqual([gwa(3)]);
    const worse = tick(ts, "5.6", { quality: "so no" });
    expect(await step((t) => writeRecords(t, "index_ticks", [worse], "rest"))).toEqual([gwa(3)]);
    const line = (t: Transaction) => ({ stream: "index_ticks", series: btc(t) }) as const;
    const settled = await step((t) => {
      writeRecords(t, "index_ticks", [worse], "rest");
      settle(t, line(t), { from: ts, to: ts + STEP }, "rows");
    });
    expect(settled).toEqual([gwa(3)]);
    // A bar that is not settled is replaced without a revision.
    const today = bar(midnight, "2", { recordId: null });
    const written = await step((t) => writeRecords(t, "ohlcv", [today], "rest"));
    expect(written).toEqual(["ohlcv/index_type=GWA/data.parquet"]);
    // Somebody who had the old file open goes on reading it.
    expect(statSync(path).ino).not.toBe(before.ino);
    await expectSame(folder, "index_ticks", "ohlcv", "coverage", "revisions");
  });

  it("writes every month of a series that was renamed", async () => {
    const { folder, warehouse } = await exported();
    warehouse.transaction((t) => t.dictionary.nameSeries(t.dictionary.getSeriesKey("LX", "lx/1 %"), "ELX"));
    const { months_written } = await exportIn(folder);
    expect(months_written).toEqual([`index_ticks/index_type=LX/month=${month(3)}/data.parquet`]);
    await expectSame(folder, "index_ticks");
  });

  it("drops a month whose rows are gone, and does not cover it", async () => {
    const { folder, warehouse } = await exported();
    const place = join(folder, "export/exchange_ticks");
    expect(readdirSync(place).sort()).toEqual([`month=${month(1)}`, `month=${month(0)}`]);
    warehouse.transaction((t) => prune(t, "exchange_ticks", monthStart(0)));
    await exportIn(folder);
    expect(readdirSync(place)).toEqual([`month=${month(0)}`]);
    await expectSame(folder, "exchange_ticks", "coverage");
  });

  it("with --since keeps older months, and covers of them only what the previous export covered", async () => {
    const { folder, warehouse } = await exported();
    const ts = monthStart(3) + 20 * DAY;
    warehouse.transaction((t) => {
      const series = btc(t);
      for (const at of [ts, monthStart(0) + DAY]) {
        writeRecords(t, "index_ticks", [tick(at, "5.5")], "rest");
        settle(t, { stream: "index_ticks", series }, { from: at, to: at + STEP }, "rows");
      }
      writeRecords(t, "exchange_ticks", [exchangeTick(monthStart(1), "5")], "rest");
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
    // The next one without it makes up for that.
    expect((await exportIn(folder)).months_written).toEqual([gwa(3)]);
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
    const { folder } = await exported();
    const file = join(folder, "export/manifest.json");
    const manifest = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(file, JSON.stringify({ ...manifest, columns: "of another version" }));
    const { months_written } = await exportIn(folder, { since: monthStart(0) });
    expect(months_written).toContain(gwa(3));
    await expectSame(folder, "index_ticks", "market_caps");
  });

  it("cuts many daily bars into years, very many ticks into days, and removes files of the other cut", async () => {
    const { folder, warehouse } = await exported();
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
    expect(files("index_ticks")).toEqual(
      days.map(([type, day]) => `index_type=${type}/day=${day}/data.parquet`).sort(),
    );
    await expectSame(folder, "ohlcv", "index_ticks", "coverage", "bars_1d");
    // Years before the one of --since are not read again.
    warehouse.transaction((t) => writeRecords(t, "ohlcv", [bar(midnight, "3", { recordId: null })], "rest"));
    const { months_written } = await exportIn(folder, { since: midnight });
    const thisYear = new Date(midnight / 1000).toISOString().slice(0, 4);
    expect(months_written).toEqual([`ohlcv/index_type=GWA/year=${thisYear}/data.parquet`]);
    setRows("ohlcv", 10);
    await exportIn(folder);
    expect(files("ohlcv")).toEqual(["index_type=GWA/data.parquet"]);
    await expectSame(folder, "ohlcv", "coverage");
  });

  it("replaces the files of an export by an earlier version, whose daily bars were cut by month", async () => {
    const { folder } = await exported();
    const to = join(folder, "export");
    const manifest = JSON.parse(readFileSync(join(to, "manifest.json"), "utf8"));
    const old = `ohlcv/index_type=GWA/month=${month(0)}`;
    const version = `versions/${old}/0123456789abcdef.parquet`;
    for (const place of [old, `versions/${old}`]) mkdirSync(join(to, place), { recursive: true });
    for (const path of [version, `${old}/data.parquet`]) writeFileSync(join(to, path), "PAR1");
    const files = [{ relation: "ohlcv", partition: {}, path: `${old}/data.parquet`, version }];
    for (const name of ["manifest.json", `versions/generations/${manifest.generation}.json`])
      writeFileSync(join(to, name), JSON.stringify({ ...manifest, format: 2, files }));
    writeFileSync(join(to, "export.lock"), "");
    rmSync(join(to, ".mds-sync"), { recursive: true });
    await exportIn(folder, { since: midnight });
    expect(readdirSync(join(to, "ohlcv/index_type=GWA"))).toEqual(["data.parquet"]);
    expect(existsSync(join(to, "export.lock"))).toBe(false);
    await expectSame(folder, "ohlcv", "index_ticks", "coverage");
    // A reader of the old file list keeps its files for an hour.
    expect(existsSync(join(to, version))).toBe(true);
    const tomorrow = Date.now() + 86_400_000;
    for (const now of [tomorrow, tomorrow + 7_200_000])
      await exportIn(folder, { clock: { ...systemClock, now: () => now } });
    expect(existsSync(join(to, version))).toBe(false);
  });

  it("updates the lookups too, and what they rename", async () => {
    const { folder, warehouse } = await exported();
    warehouse.transaction((t) => lookups(t, "ACTIVE"));
    const { months_written, files_written } = await exportIn(folder);
    expect(months_written).toEqual([]);
    // assets and status_changes; and gaps, where the open heads have grown since.
    expect([2, 3]).toContain(files_written);
    await expectSame(folder, "assets", "status_changes");
    expect(existsSync(join(folder, "export/.mds-sync/work"))).toBe(false);
  });
});
