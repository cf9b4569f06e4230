import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { backUp } from "../../src/warehouse/backup.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { restoreWarehouse } from "../../src/warehouse/restore.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";
import { usePostgres } from "../support/postgres.ts";
import { addHours, bothStores, HOURS_BEGIN, shareInto } from "../support/share/share-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { writeRecords } from "../support/warehouse/write-records.ts";

const server = usePostgres();
const minute = (n: number) => HOURS_BEGIN + n * 60_000_000;

async function expectEqual(database: string, warehouse: WarehouseWriter): Promise<void> {
  for (const relation of ["index_ticks", "exchange_ticks", "coverage"]) {
    const { sqlite, postgres } = await bothStores(server, database, warehouse, relation);
    expect(postgres, relation).toEqual(sqlite);
  }
}

function correct(warehouse: WarehouseWriter, ts: number, price: string): void {
  warehouse.transaction((transaction) => writeRecords(transaction, "index_ticks", [tick(ts, price)], "rest"));
}

it("I7: compares everything after a restore, even if as many changes follow as before", async () => {
  const database = await server.createDatabase();
  const copy = join(temporaryFolder(), "copy.sqlite");
  const first = openWriter(join(temporaryFolder(), "mds.sqlite"), { clock: systemClock });
  addHours(first, 0, 2);
  const reader = openReader(first.path);
  backUp(reader, copy);
  reader.close();
  correct(first, minute(10), "1.5");
  await shareInto(server, database, first);
  first.close();
  restoreWarehouse(copy, first.path, HOURS_BEGIN);
  const restored = openTestWarehouse({ path: first.path });
  correct(restored, minute(20), "2.5");
  expect(await shareInto(server, database, restored)).toMatchObject({ mended: 1 });
  await expectEqual(database, restored);
});
