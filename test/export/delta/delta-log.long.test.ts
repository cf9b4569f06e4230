import { mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCheckpointFormat } from "../../../src/export/delta/checkpoint.ts";
import { commitTable, type LogFiles } from "../../../src/export/delta/delta-log.ts";
import { openFolderStore } from "../../../src/export/folder-store.ts";
import { type Manifest, readManifest } from "../../../src/export/manifest.ts";
import { ParquetWriter } from "../../../src/export/parquet-writer.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { parquetTypes, readSnapshot, readTableRows } from "../../support/export/delta-reader.ts";
import { exportIn, inWarehouse, shareExport } from "../../support/export/read-export.ts";
import { monthStart } from "../../support/export/sample-data.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { STEP } from "../../support/warehouse/filled-warehouse.ts";
import { tick } from "../../support/warehouse/records.ts";
import { storeTicks } from "../../support/warehouse/write-records.ts";

const table = (folder: string, relation: string) => join(folder, "export/versions", relation);
const log = (folder: string, relation: string) => join(table(folder, relation), "_delta_log");
const entry = (version: number) => `${String(version).padStart(20, "0")}.json`;
const versionOf = async (folder: string, relation: string) =>
  (await readSnapshot(table(folder, relation))).version;

/** A clock that stands still, so that the open heads among the gaps do not grow. */
const at = (ms: number) => ({ clock: { ...systemClock, now: () => ms } });

const exported = shareExport();

/** Changes one month of the index ticks. */
const change = (warehouse: WarehouseWriter, i: number) =>
  storeTicks(warehouse, [tick(monthStart(2) + (5000 + i) * STEP, `${i}.5`)]);

describe("the Delta tables of an export", () => {
  it("have the files of the manifest with their rows, the types of these files, and bounds that hold", async () => {
    const { folder } = exported();
    const rows = await readTableRows(table(folder, "index_ticks"));
    const figures = rows.map(({ index_type, name, ts, price }) => [index_type, name, Number(ts), price]);
    const sql = "SELECT index_type, name, ts, price FROM index_ticks";
    expect(figures.map(String).sort()).toEqual(
      inWarehouse(join(folder, "mds.sqlite"), sql).map(String).sort(),
    );
    const types: Record<string, string> = {
      BYTE_ARRAY: "string",
      INT64: "long",
      INT32: "integer",
      DOUBLE: "double",
      BOOLEAN: "boolean",
    };
    const { files, tables } = readManifest(join(folder, "export")) as Manifest;
    const relations = readdirSync(join(folder, "export/versions")).filter((name) => name !== "generations");
    for (const relation of relations) {
      const snapshot = await readSnapshot(table(folder, relation));
      const { adds, fields, partitionColumns, protocol, version } = snapshot;
      expect([version, tables?.[relation]], relation).toEqual([0, 0]);
      expect(adds.map(({ path }) => decodeURIComponent(path)).sort()).toEqual(
        files
          .filter((file) => file.relation === relation)
          .map((file) => file.version.slice(`versions/${relation}/`.length))
          .sort(),
      );
      const zoneless = fields.some(({ type }) => type === "timestamp_ntz");
      expect(protocol).toMatchObject(
        zoneless
          ? { minReaderVersion: 3, minWriterVersion: 7, readerFeatures: ["timestampNtz"] }
          : { minReaderVersion: 1, minWriterVersion: 2 },
      );
      for (const { path, stats } of adds) {
        const schema = await parquetTypes(join(table(folder, relation), decodeURIComponent(path)));
        const real = schema.map(({ name, type, logical_type, converted_type }) => {
          if (logical_type?.type === "TIMESTAMP")
            return { name, type: logical_type.isAdjustedToUTC ? "timestamp" : "timestamp_ntz" };
          return { name, type: converted_type === "DATE" ? "date" : types[type ?? ""] };
        });
        const own = fields.filter(({ name }) => !partitionColumns.includes(name));
        expect(own.map(({ name, type }) => ({ name, type }))).toEqual(real);
        const { numRecords, minValues, maxValues } = JSON.parse(stats);
        const file = files.find(({ version }) => version.endsWith(decodeURIComponent(path)));
        expect(numRecords).toBe(file?.rows);
        if (relation === "index_ticks") expect(minValues.ts <= maxValues.ts).toBe(true);
        if (relation === "ohlcv") expect(minValues.day < maxValues.day).toBe(true);
      }
    }
    expect((await readSnapshot(table(folder, "index_ticks"))).partitionColumns).toEqual(["index_type"]);
    expect((await readSnapshot(table(folder, "ohlcv"))).protocol.minReaderVersion).toBe(1);
  });
});

/** A table of two files, one of which each commit replaces, in a folder without an export. */
async function syntheticTable() {
  const folder = temporaryFolder();
  const { work, tableLog } = openFolderStore(folder);
  const writer = await ParquetWriter.open(work);
  onTestFinished(() => writer.close());
  const files = tableLog("t");
  const file = (i: number, part: string) => ({
    relation: "t",
    partition: { kind: part },
    path: `t/${part}/data.parquet`,
    version: `versions/t/kind=${encodeURIComponent(part)}/${i}.parquet`,
    rows: i,
    bytes: 100 + i,
    sha256: "",
    fingerprint: "",
    times: { first: i, last: i + 1 },
  });
  const columns = [
    { name: "ts", type: "BIGINT" },
    { name: "time", type: "TIMESTAMP" },
  ];
  const commit = (i: number, now: number, log = files) =>
    commitTable(
      log,
      { relation: "t", columns, partitionColumn: "kind", files: [file(i, "a b%"), file(7, "c")] },
      {
        checkpoints: createCheckpointFormat(writer, work),
        program: "0",
        generation: String(i),
        isNewer: () => false,
        now,
        keepMs: 3_600_000,
        cleanUp: (work) => work(),
      },
    );
  return { commit, files, place: join(folder, "versions/t") };
}

describe("the log of a table", () => {
  it("gets a version only for what changed, and old versions stay readable while readers may use them", async () => {
    const { folder, warehouse } = exported();
    const now = Date.now();
    const before = await readTableRows(table(folder, "index_ticks"));
    change(warehouse, 1);
    await exportIn(folder, at(now));
    await exportIn(folder, at(now));
    expect(await versionOf(folder, "index_ticks")).toBe(1);
    expect(await versionOf(folder, "ohlcv")).toBe(0);
    expect(readManifest(join(folder, "export"))?.tables).toMatchObject({ index_ticks: 1, ohlcv: 0 });
    const actions = readFileSync(join(log(folder, "index_ticks"), entry(1)), "utf8")
      .trimEnd()
      .split("\n");
    expect(actions.map((line) => Object.keys(JSON.parse(line))[0])).toEqual(["commitInfo", "remove", "add"]);
    expect(await readTableRows(table(folder, "index_ticks"), 0)).toEqual(before);
    expect((await readTableRows(table(folder, "index_ticks"))).length).toBe(before.length + 1);
    // A day later the files of the first version are gone, unless the export was told to keep them.
    const day = 86_400_000;
    for (const late of [now + day, now + day + 7_200_000])
      await exportIn(folder, { ...at(late), keep: 7 * day * 1000 });
    expect(await readTableRows(table(folder, "index_ticks"), 0)).toEqual(before);
    await exportIn(folder, at(now + day + 7_200_000));
    await expect(readTableRows(table(folder, "index_ticks"), 0)).rejects.toThrow(/ENOENT/);
    expect((await readTableRows(table(folder, "index_ticks"))).length).toBe(before.length + 1);
  });

  it("has a checkpoint every ten versions, and loses what no reader needs before it", async () => {
    const { commit, files, place: versions } = await syntheticTable();
    const hour = 3_600_000;
    const start = Date.now() - 30 * hour;
    for (let i = 0; i < 30; i++) {
      expect(await commit(i, start + i * hour)).toBe(i);
      for (const name of readdirSync(files.place))
        if (Number(name.slice(0, 20)) === i)
          utimesSync(join(files.place, name), 0, (start + i * hour) / 1000);
      const { version, adds } = await readSnapshot(versions);
      expect(version).toBe(i);
      expect(
        adds.map(({ path, size, partitionValues }) => [path, Number(size), partitionValues.kind]).sort(),
      ).toEqual([
        [`kind=a%2520b%2525/${i}.parquet`, 100 + i, "a b%"],
        ["kind=c/7.parquet", 107, "c"],
      ]);
    }
    const { protocol, partitionColumns, fields } = await readSnapshot(versions);
    expect(protocol.readerFeatures).toEqual(["timestampNtz"]);
    expect([partitionColumns, fields.length]).toEqual([["kind"], 3]);
    // At version 20 the checkpoint 10 was ten hours old: the entries before it went. A reader may be at 10 and later.
    expect(readdirSync(files.place)[0]).toBe(entry(10).replace("json", "checkpoint.parquet"));
    expect((await readSnapshot(versions, 29)).adds.length).toBe(2);
  });

  it("F16: takes a version that another program has committed for a conflict, and commits on the new state", async () => {
    const { commit, files, place } = await syntheticTable();
    await commit(0, Date.now());
    const { adds } = await readSnapshot(place);
    const intrude = async (name: string) =>
      writeFileSync(
        join(files.place, name),
        `${JSON.stringify({ add: { ...adds[0], path: "foreign" } })}\n`,
        { flag: "wx" },
      );
    const slow: LogFiles = {
      ...files,
      async create(name, text) {
        if (name === entry(1)) await intrude(name);
        return files.create(name, text);
      },
    };
    expect(await commit(1, Date.now(), slow)).toBe(2);
    const after = await readSnapshot(place);
    expect(after.version).toBe(2);
    expect(after.adds.map(({ path }) => path).sort()).toEqual([
      "kind=a%2520b%2525/1.parquet",
      "kind=c/7.parquet",
    ]);
    // A program that never stops is named.
    const busy: LogFiles = {
      ...files,
      async create(name, text) {
        await intrude(name);
        return files.create(name, text);
      },
    };
    await expect(commit(2, Date.now(), busy)).rejects.toMatchObject({ code: "export_elsewhere", exit: 75 });
  });

  it("refuses a log that cannot be read with its remedy, which helps", async () => {
    const { commit, files, place } = await syntheticTable();
    await commit(0, Date.now());
    writeFileSync(join(files.place, entry(1)), '{"add":');
    await expect(commit(1, Date.now())).rejects.toMatchObject({
      exit: 2,
      summary: `the table log ${files.place} cannot be read (entry 1 is no JSON): remove that folder; the next export begins a new log`,
    });
    rmSync(join(files.place, entry(1)));
    writeFileSync(join(files.place, entry(2)), "{}");
    await expect(commit(1, Date.now())).rejects.toThrow(/an entry is missing/);
    rmSync(files.place, { recursive: true });
    mkdirSync(files.place);
    expect(await commit(1, Date.now())).toBe(0);
    expect((await readSnapshot(place)).adds.length).toBe(2);
  });
});
