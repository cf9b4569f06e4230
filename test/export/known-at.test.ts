import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import { resolveKnownAt } from "../../src/library/reading/read-plan.ts";
import { showKnownAt } from "../../src/warehouse/tables/known-at.ts";
import { expectSame, exportIn, inCatalogue, shareExport } from "../support/export/read-export.ts";
import { lookups, monthStart } from "../support/export/sample-data.ts";
import { DAY, midnight } from "../support/warehouse/filled-warehouse.ts";
import { bar, exchangeTick, tick } from "../support/warehouse/records.ts";
import { settle } from "../support/warehouse/settle.ts";
import { writeRecords, writeTicks } from "../support/warehouse/write-records.ts";

const exported = shareExport();

const relations = [
  ...["index_ticks", "ohlcv", "exchange_ticks", "market_caps", "derivative_ticks", "coverage", "revisions"],
  ...["assets", "markets", "exchanges", "derivative_contracts", "status_changes", "rejects"],
];
/** Every row as a text. */
const readAll = (folder: string) => {
  const all = relations.map((name) => `SELECT '${name}', CAST(to_json(r) AS VARCHAR) FROM ${name} r`);
  return inCatalogue(join(folder, "export/mds.duckdb"), `${all.join(" UNION ALL ")} ORDER BY ALL`);
};

it("an export of an earlier state is the export of then, and the next one has the newest state again", async () => {
  const { folder, warehouse } = exported();
  const then = await readAll(folder);
  const path = join(folder, "mds.sqlite");
  using reader = openWarehouse(path);
  const token = reader.cite();
  warehouse.transaction((transaction) => {
    const ts = monthStart(3) + 9 * DAY;
    const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
    writeTicks(transaction, [tick(ts, "5.5"), tick(ts + 5, "7")]);
    writeRecords(transaction, "ohlcv", [bar(midnight, "2")]);
    writeRecords(transaction, "exchange_ticks", [exchangeTick(ts, "8")]);
    settle(transaction, { stream: "index_ticks", series }, { from: ts, to: ts + DAY }, "lost", "gone");
    lookups(transaction, "DELISTED");
  });
  const showState = (connection: Parameters<typeof showKnownAt>[0]) =>
    showKnownAt(connection, resolveKnownAt(connection, token));
  const result = await exportIn(folder, { showState });
  expect(result.known_at).toBe(token);
  expect(await readAll(folder)).toEqual(then);
  const manifest = JSON.parse(readFileSync(join(folder, "export/manifest.json"), "utf8"));
  expect(manifest.known_at).toBe(token);
  expect((await exportIn(folder)).known_at).toBeUndefined();
  expect(await readAll(folder)).not.toEqual(then);
  await expectSame(folder, ...relations);
});
