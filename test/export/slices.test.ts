import { readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import type { Micros } from "../../src/model/time.ts";
import { periodOf } from "../../src/warehouse/read/export-periods.ts";
import { recordClockSkew } from "../../src/warehouse/tables/warehouse-state.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { readTableRows } from "../support/export/delta-reader.ts";
import { expectSame, exportIn, inCatalogue, shareExport } from "../support/export/read-export.ts";
import { month, monthStart } from "../support/export/sample-data.ts";
import { DAY, HOUR } from "../support/warehouse/filled-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { settle } from "../support/warehouse/settle.ts";
import { storeTicks, writeTicks } from "../support/warehouse/write-records.ts";

const start = monthStart(1);
const now = start + 2 * DAY + 10.75 * HOUR;
const slice = (unit: "day" | "hour", ts: Micros) => `data-${periodOf(unit, ts)}.parquet`;

function setPresent(warehouse: WarehouseWriter, present: Micros): void {
  warehouse.transaction((t) => recordClockSkew(t, present - Date.now() * 1000));
}

/** Two ticks an hour from the first of the month until `now`, in a warehouse that counts as large. */
function fill(warehouse: WarehouseWriter): void {
  warehouse.transaction((t) => {
    const count = Math.floor((now - start) / (HOUR / 2)) + 1;
    const ticks = Array.from({ length: count }, (_, i) => tick(start + i * (HOUR / 2), `${60_000 + i}.25`));
    writeTicks(t, ticks);
    const series = t.dictionary.getSeriesKey("GWA", "btc-id");
    settle(t, { stream: "index_ticks", series }, { from: start, to: start + 2 * DAY }, "rows");
    t.statement("UPDATE stream_states SET rows = 300000 WHERE stream = 'index_ticks'").run([]);
  });
  setPresent(warehouse, now);
}

const exported = shareExport(fill);
let folder: string;
let warehouse: WarehouseWriter;
beforeEach(() => {
  ({ folder, warehouse } = exported());
});

const place = () => `index_ticks/index_type=GWA/month=${month(1)}`;
const files = () => readdirSync(join(folder, "export", place())).sort();

/** Each reader finds every tick of the warehouse once: by the catalogue, by the table's log, by the folders. */
async function expectEveryReader(count: number): Promise<void> {
  await expectSame(folder, "index_ticks", "coverage");
  const times = (await readTableRows(join(folder, "export/versions/index_ticks"))).map(({ ts }) => ts);
  expect([times.length, new Set(times).size]).toEqual([count, count]);
  const glob = `SELECT count(*)::INTEGER, count(DISTINCT ts)::INTEGER FROM read_parquet('${folder}/export/index_ticks/**/*.parquet')`;
  expect(await inCatalogue(join(folder, "export/mds.duckdb"), glob)).toEqual([[count, count]]);
}

const STORED = 118;

it("writes only the hour that has changed of a month that is not over, and one file once it is over", async () => {
  const hours = Array.from({ length: 11 }, (_, i) => slice("hour", start + 2 * DAY + i * HOUR));
  expect(files()).toEqual([slice("day", start), slice("day", start + DAY), ...hours]);
  await expectEveryReader(STORED);

  storeTicks(warehouse, [tick(now, "5.5")], "live");
  expect((await exportIn(folder)).months_written).toEqual([`${place()}/${slice("hour", now)}`]);
  await expectEveryReader(STORED + 1);
  expect((await exportIn(folder)).months_written).toEqual([]);

  // The day is over.
  setPresent(warehouse, start + 3 * DAY + 3 * HOUR);
  expect((await exportIn(folder)).months_written).toEqual([`${place()}/${slice("day", now)}`]);
  expect(files()).toEqual([0, 1, 2].map((day) => slice("day", start + day * DAY)));
  await expectEveryReader(STORED + 1);

  setPresent(warehouse, monthStart(0) + 3 * HOUR);
  expect((await exportIn(folder)).months_written).toEqual([`${place()}/data.parquet`]);
  expect(files()).toEqual(["data.parquet"]);
  await expectEveryReader(STORED + 1);
});
