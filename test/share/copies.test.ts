import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { backUp } from "../../src/warehouse/backup.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { attachSource } from "../../src/warehouse/merge/merge-source.ts";
import { mergeWarehouse } from "../../src/warehouse/merge/merge-warehouse.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { restoreWarehouse } from "../../src/warehouse/restore.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";
import { exchangeTick } from "../support/export/sample-data.ts";
import { usePostgres } from "../support/postgres.ts";
import { addHours, bothStores, HOURS_BEGIN, shareInto } from "../support/share/share-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";

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

it("forwards what a merge adds, replaces and withdraws, also where nothing is proven", async () => {
  const database = await server.createDatabase();
  const [ours, theirs] = [openTestWarehouse(), openTestWarehouse()];
  addHours(ours, 0, 1);
  addHours(ours, 5, 1);
  // Unproven rows: the other warehouse has proven one of them to be wrong, and one not to exist.
  for (const n of [70, 75.5]) correct(ours, minute(n), "9.5");
  ours.transaction((transaction) =>
    writeRecords(transaction, "exchange_ticks", [exchangeTick(minute(90), "1")], "rest"),
  );
  await shareInto(server, database, ours);
  addHours(theirs, 1, 1);
  theirs.transaction((transaction) => {
    writeRecords(transaction, "index_ticks", [tick(minute(150), "7.5")], "live");
    writeRecords(transaction, "exchange_ticks", [exchangeTick(minute(80), "2")], "rest");
    const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
    settle(transaction, { stream: "index_ticks", series }, { from: minute(180), to: minute(200) }, "empty");
  });
  const source = attachSource(ours.connection, theirs.path);
  for (const _ of mergeWarehouse(ours));
  source.detach();
  expect(await shareInto(server, database, ours)).toMatchObject({ compared: 0 });
  await expectEqual(database, ours);
});
