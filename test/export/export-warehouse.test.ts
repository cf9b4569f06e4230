import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Manifest, ManifestFile } from "../../src/export/manifest.ts";
import { barWidths } from "../../src/model/time.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { compareRelations, exportIn, inWarehouse, type Row } from "../support/export/read-export.ts";
import {
  extremes,
  fillEverything,
  filledRelations,
  monthStart,
  openAt,
} from "../support/export/sample-data.ts";

const relations = [
  ...filledRelations,
  ...Object.keys(barWidths).map((width) => `bars_${width}`),
  "reconcile_ohlcv",
  "reconcile_market_caps",
];

const folder = mkdtempSync(join(tmpdir(), "mds-export-"));
let warehouse: WarehouseWriter;
let instance: DuckDBInstance;
let connection: DuckDBConnection;
let manifest: Manifest;

beforeAll(async () => {
  warehouse = openAt(folder);
  warehouse.transaction(fillEverything);
  await exportIn(folder);
  instance = await DuckDBInstance.create(join(folder, "export/mds.duckdb"), {
    access_mode: "READ_ONLY",
    threads: "1",
  });
  connection = await instance.connect();
  manifest = JSON.parse(readFileSync(join(folder, "export/manifest.json"), "utf8")) as Manifest;
});
afterAll(() => {
  instance.closeSync();
  warehouse.close();
  rmSync(folder, { recursive: true, force: true });
});

async function ask(sql: string): Promise<Row[]> {
  return (await connection.runAndReadAll(sql)).getRowsJson() as Row[];
}

/** The rows of a file as another program reads them. */
function readParquet({ path }: ManifestFile): Promise<Record<string, unknown>[]> {
  const compressors = { ZSTD: (input: Uint8Array) => zstdDecompressSync(input) };
  return asyncBufferFromFile(join(folder, "export", path)).then((file) =>
    parquetReadObjects({ file, compressors }),
  );
}

/** A figure as another reader has it, in the plain types of the warehouse. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "boolean") return value ? 1 : 0;
  return value ?? null;
}

describe("an export", () => {
  it("has the same rows in DuckDB as in the warehouse, in every relation", async () => {
    expect(await compareRelations(folder, relations, connection)).toEqual([]);
    await compareRelations(folder, ["gaps"], connection, "state = 'lost' AND reason = 'aged out'");
  });

  it("has the same rows for another Parquet reader, sorted by series and time", async () => {
    const columns =
      "index_id, name, ts, price, volume, tick_volume, is_settled, source, quality, extra".split(", ");
    for (const file of manifest.files) expect((await readParquet(file)).length, file.path).toBe(file.rows);
    for (const type of ["GWA", "MWA", "LX"]) {
      const files = manifest.files.filter(({ partition }) => partition.index_type === type);
      const ticks = files.filter(({ relation }) => relation === "index_ticks");
      const read = (await Promise.all(ticks.map(readParquet))).flat();
      expect(read.map((row) => columns.map((column) => plain(row[column])))).toEqual(
        inWarehouse(
          warehouse.path,
          `SELECT ${columns.join(", ")} FROM index_ticks WHERE index_type = '${type}' ORDER BY substr(time, 1, 7), name, ts`,
        ),
      );
      // Where a double does not hold the figure, its digits stand beside it; elsewhere they would only take room.
      const exact = inWarehouse(
        warehouse.path,
        "SELECT ts, json_extract(details, '$.price') FROM index_tick_rows",
      );
      const digits = new Map(exact.map(([ts, text]) => [ts, text]));
      if (type === "LX")
        for (const row of read) expect(row.price_digits ?? null).toBe(digits.get(plain(row.ts)));
    }
  });

  it("uses only encodings that old readers know", async () => {
    const found = await ask(
      `SELECT DISTINCT unnest(string_split(encodings, ', ')) FROM parquet_metadata('${join(folder, "export")}/*/**/*.parquet') ORDER BY 1`,
    );
    expect(["PLAIN", "PLAIN_DICTIONARY", "RLE", "RLE_DICTIONARY"]).toEqual(
      expect.arrayContaining(found.map(([encoding]) => encoding)),
    );
    expect(found.length).toBeGreaterThan(0);
  });

  it("has nothing but data in the folders of its relations, and its lock in a folder that readers skip", async () => {
    const root = join(folder, "export");
    const names = manifest.files.map(({ relation }) => relation);
    expect(readdirSync(root).sort()).toEqual(
      [...new Set([...names, ".mds-sync", "manifest.json", "mds.duckdb", "versions"])].sort(),
    );
    for (const name of names)
      for (const entry of readdirSync(join(root, name), { recursive: true, withFileTypes: true }))
        if (entry.isFile()) expect(entry.name).toBe("data.parquet");
    const [rows] = await ask(
      `SELECT count(*)::INTEGER FROM read_parquet('${root}/ohlcv/**', hive_partitioning = true)`,
    );
    expect(rows).toEqual(inWarehouse(warehouse.path, "SELECT count(*) FROM ohlcv")[0]);
  });

  it("F16: has real timestamps, and decimals that are exact or NULL", async () => {
    const types = await ask("DESCRIBE index_ticks");
    const typeOf = new Map(types.map(([name, type]) => [name, type]));
    expect(
      ["ts", "time", "price", "price_exact", "price_decimal", "is_settled"].map((name) => typeOf.get(name)),
    ).toEqual(["BIGINT", "TIMESTAMP", "DOUBLE", "VARCHAR", "DECIMAL(38,18)", "BOOLEAN"]);
    const rows = await ask(
      `SELECT price_exact, price_decimal::VARCHAR, price_decimal::VARCHAR::DECIMAL(38, 18) = price_decimal
        FROM index_ticks WHERE index_type = 'LX' AND price IS NOT NULL ORDER BY ts`,
    );
    expect(rows.length).toBe(extremes.length);
    for (const [exact, decimal] of rows) {
      const [whole = "", fraction = ""] = String(exact).replace("-", "").split(".");
      if (whole.length > 20 || fraction.length > 18) expect(decimal, String(exact)).toBeNull();
      else expect(String(decimal).replace(/\.?0*$/, ""), String(exact)).toBe(exact);
    }
    const [first] = await ask(
      `SELECT count(*)::INTEGER FROM index_ticks WHERE is_settled = 1
      AND time >= '2020-01-01' AND epoch_us(time) = ts`,
    );
    expect(first).toEqual(
      inWarehouse(
        warehouse.path,
        "SELECT count(*) FROM index_ticks WHERE is_settled = 1 AND time >= '2020-01-01'",
      )[0],
    );
  });

  it("gives the price of each series as of a timestamp, and bars of any length that no window cuts", async () => {
    const at = monthStart(2) + 45_000_000;
    expect(
      await ask(`SELECT name, ts::DOUBLE FROM index_ticks_as_of(make_timestamp(${at})) ORDER BY name`),
    ).toEqual(
      inWarehouse(
        warehouse.path,
        `SELECT name, max(ts) FROM index_ticks WHERE ts <= ${at} GROUP BY name ORDER BY name`,
      ),
    );
    const bars = await ask(
      `SELECT time::VARCHAR, n_ticks::INTEGER, expected_ticks::INTEGER, coverage, is_complete, quality
        FROM bars('BTC', INTERVAL 30 MINUTE, make_timestamp(${monthStart(2)} - 1), make_timestamp(${monthStart(2)} + 3600000001)) ORDER BY ts`,
    );
    const monthly = "FROM bars('BTC', INTERVAL 1 MONTH, TIMESTAMP '2020-01-01', TIMESTAMP '2030-01-01')";
    await expect(ask(monthly)).rejects.toThrow(/bars have a fixed length/);
    expect(bars.map(([, ...rest]) => rest)).toEqual([
      [60, 60, 1, true, null],
      [60, 60, 40 / 60, false, "not proven whole"],
      [60, 60, 0, false, "not proven whole"],
    ]);
  });

  it("lists its files in a manifest: rows, bytes, checksums, and the warehouse", () => {
    expect(manifest).toMatchObject({ format: 3, program: "0.0.0", warehouse: warehouse.path, since: null });
    expect(manifest.rows).toBe(manifest.files.reduce((sum, { rows }) => sum + rows, 0));
    const lx = manifest.files.find(({ partition }) => partition.index_type === "LX");
    expect(lx?.path).toMatch(/^index_ticks\/index_type=LX\/month=\d{4}-\d{2}\/data\.parquet$/);
  });
});
