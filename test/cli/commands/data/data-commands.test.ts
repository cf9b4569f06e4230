import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWarehouse, type Warehouse } from "../../../../src/library/open-warehouse.ts";
import { Failure } from "../../../../src/model/failure.ts";
import { formatTimestamp } from "../../../../src/model/time.ts";
import { runInProcess } from "../../../support/cli/run-command.ts";
import { fillTicks, getStart, MINUTE } from "../../../support/library/ticks-warehouse.ts";
import { createWarehouse, DAY, HOUR, nowTs } from "../../../support/warehouse/filled-warehouse.ts";
import { tick } from "../../../support/warehouse/records.ts";
import { writeRecords } from "../../../support/warehouse/write-records.ts";

let path: string;
let folder: string;
let warehouse: Warehouse;
beforeAll(() => {
  path = createWarehouse(fillTicks, { hasAllViews: true, atEnd: afterAll });
  folder = dirname(path);
  warehouse = openWarehouse(path);
});
afterAll(() => warehouse.close());

const run = (...args: string[]) => runInProcess([...args, "--warehouse", path], { cwd: folder });
const json = async (...args: string[]) => JSON.parse((await run(...args, "--json")).stdout) as unknown;
const start = getStart();
const [from, to] = [formatTimestamp(start), formatTimestamp(start + HOUR)];
const hour = ["--from", from, "--to", to];

describe("mds-sync bars", () => {
  it("writes the rows of the library in every format", async () => {
    const rows = warehouse.bars("BTC", { every: "20m", from, to });
    const args = ["bars", "BTC", "--every", "20m", ...hour];
    expect(await json(...args)).toEqual(rows);
    const { stdout: lines } = await run(...args, "--format", "ndjson");
    expect(JSON.parse(`[${lines.trimEnd().replaceAll("\n", ",")}]`)).toEqual(rows);
    const columns = "time,high_exact,volume_24h";
    const { stdout: csv, stderr } = await run(...args, "--format", "csv", "--columns", columns);
    expect(csv.split("\r\n").slice(0, 2)).toEqual([columns, `${from},123456789.123456789012,1019`]);
    expect(stderr).toMatch(/^3 rows in \d+ ms\n$/);
  });

  it("writes the bar that is not over with --running only", async () => {
    const args = ["bars", "ETH", "--every", "1w", "--columns", "quality"];
    const eth = createWarehouse((transaction) => {
      fillTicks(transaction);
      const ticks = [start - 14 * DAY, nowTs].map((ts) => tick(ts, "1", { indexId: "eth-id" }));
      writeRecords(transaction, "index_ticks", ticks, "rest");
    });
    const read = async (...more: string[]) => {
      const { stdout } = await runInProcess([...args, ...more, "--json", "--warehouse", eth], {
        cwd: folder,
      });
      return JSON.parse(stdout) as unknown;
    };
    const over = { quality: "not proven whole" };
    expect(await read()).toEqual([over]);
    expect(await read("--running")).toEqual([over, { quality: "in progress" }]);
  });

  it("shows several series side by side with --wide", async () => {
    const since = formatTimestamp(start - 18 * DAY);
    const args = ["bars", "BTC", "BTC/USD", "--every", "1d", "--from", since, "--wide"];
    const rows = (await json(...args)) as Record<string, unknown>[];
    expect(Object.keys(rows[0] ?? {})).toEqual(["ts", "time", "BTC", "BTC/USD", "is_complete"]);
    expect(rows[0]).toMatchObject({ BTC: null, "BTC/USD": 20.25, is_complete: 0 });
    expect(rows.at(-1)).toMatchObject({ ts: start, "BTC/USD": null });
    const [several] = (await json(...args, "--columns", "open,close")) as Record<string, unknown>[];
    expect(Object.keys(several ?? {})).toEqual(
      "ts time BTC_open BTC_close BTC/USD_open BTC/USD_close is_complete".split(" "),
    );
  });

  it("exits 4 with the missing ranges, and writes nothing, if it must be complete", async () => {
    const file = join(folder, "whole.csv");
    const args = ["bars", "BTC", "--every", "1h", "--from", from, "--out", file, "--require-complete"];
    const missing = await run(...args, "--to", formatTimestamp(start + 3 * HOUR));
    const gap = `[${formatTimestamp(start + HOUR)}, ${formatTimestamp(start + 2 * HOUR)})`;
    expect(missing).toEqual({
      stdout: "",
      stderr: `BTC index_ticks: ${gap} open: pending\nmds-sync: not complete: BTC: 1 range is missing: \`mds-sync backfill\` fetches what is open\n`,
      status: 4,
    });
    expect(existsSync(file)).toBe(false);
    expect(await run(...args, "--to", to)).toMatchObject({ status: 0 });
    expect(readFileSync(file, "utf8").split("\r\n")).toHaveLength(3);
  });

  it("says which series have no rows, and that daily bars reach further back", async () => {
    const { stderr, status } = await run("bars", "ETH", "--every", "1h");
    expect(status).toBe(0);
    expect(stderr).toMatch(/^mds-sync: note: the warehouse has no ticks of ETH\n0 rows/);
    const both = await run("bars", "BTC", "BTC/USD", "--every", "1h", "--format", "csv");
    expect(both.stdout).toBe((await run("bars", "BTC", "--every", "1h", "--format", "csv")).stdout);
    expect(both.stderr).toContain("mds-sync: note: the warehouse has no ticks of BTC/USD, only daily bars\n");
  });

  it("creates no folder for its file", async () => {
    const file = join(folder, "no/where.csv");
    expect(await run("ticks", "BTC", "--out", "no/where.csv")).toEqual({
      stdout: "",
      stderr: `mds-sync: cannot write ${file} (ENOENT): create its folder first\n`,
      status: 2,
    });
  });
});

describe("mds-sync ticks", () => {
  it("writes Parquet with exact digits and real types", async () => {
    const file = join(folder, "ticks.parquet");
    expect(await run("ticks", "BTC", "--out", file)).toMatchObject({ status: 0 });
    const rows = await parquetReadObjects({
      file: await asyncBufferFromFile(file),
      compressors: { ZSTD: (bytes) => zstdDecompressSync(bytes) },
    });
    const expected = warehouse.ticks("BTC").map((row) => ({
      ...row,
      ts: BigInt(row.ts),
      time: new Date(row.ts / 1000),
      is_settled: row.is_settled === 1,
    }));
    expect(rows).toEqual(expected);
    expect(readdirSync(folder).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("draws a progress bar on a terminal", async () => {
    const args = ["ticks", "BTC", "--warehouse", path, "--out", "ticks.ndjson"];
    const { stderr } = await runInProcess(args, { cwd: folder, onTerminal: true });
    expect(stderr).toMatch(/rows +█+ 100 % +180 rows/);
    expect(stderr).toMatch(/180 rows written to ticks\.ndjson in \d+ ms\n$/);
  });

  it.each(["csv", "parquet"])("leaves no %s file behind if it is stopped", async (format) => {
    const stop = new AbortController();
    stop.abort(new Failure("stopped by SIGINT", { code: "stopped", exit: 0 }));
    const args = ["ticks", "BTC", "--warehouse", path, "--out", `stopped.${format}`];
    const { status, stderr } = await runInProcess(args, { cwd: folder, stopping: stop.signal });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^mds-sync: stopped by SIGINT: .*stopped\.\w+ was not written\n$/);
    expect(readdirSync(folder).filter((name) => name.includes("stopped"))).toEqual([]);
  });
});

describe("mds-sync asof", () => {
  it("takes a relative time, and writes the price of each series", async () => {
    expect(await json("asof", "-1m", "BTC", "BTC/USD")).toMatchObject([
      { name: "BTC", ts: start + 179 * MINUTE, source: "ticks", is_complete: 0 },
      { name: "BTC/USD", price: 17.25, source: "ohlcv", is_complete: 0 },
    ]);
  });

  it("exits 4 if a later price may be missing", async () => {
    const { status, stderr } = await run("asof", "now", "BTC", "--require-complete");
    expect({ status, stderr }).toEqual({
      status: 4,
      stderr: "mds-sync: a later price may be missing: BTC: `mds-sync gaps` shows what is missing, and why\n",
    });
    const whole = await run("asof", formatTimestamp(start + 30 * MINUTE), "BTC", "--require-complete");
    expect(whole.status).toBe(0);
  });
});
