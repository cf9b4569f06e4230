import { expect, it } from "vitest";
import { systemClock } from "../../src/runtime/clock.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { digestTicks, moveDay } from "../../src/warehouse/rows/moved-rows.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { DAY, HOUR, midnight } from "../support/export/sample-data.ts";
import { usePostgres } from "../support/postgres.ts";
import { shareInto } from "../support/share/share-harness.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";

const server = usePostgres();

it("F21: ticks that left the warehouse stay in PostgreSQL, which says where they are if it never had them", async () => {
  const warehouse = openTestWarehouse({ clock: systemClock });
  const start = midnight - 3 * DAY;
  const key = warehouse.transaction((t) => {
    const series = t.dictionary.getSeriesKey("GWA", "btc-id");
    const ticks = Array.from({ length: 48 }, (_, i) => tick(start + i * HOUR, `${i}.5`));
    writeRecords(t, "index_ticks", ticks, "rest");
    settle(t, { stream: "index_ticks", series }, { from: start, to: start + 2 * DAY }, "rows");
    return series;
  });
  const [first, later] = [await server.createDatabase(), await server.createDatabase()];
  await shareInto(server, first, warehouse);
  const day = { series: key, from: start, to: start + DAY };
  warehouse.transaction((t) => {
    // A change that is not forwarded yet.
    writeRecords(t, "index_ticks", [tick(start + HOUR, "7.5")], "rest");
    expect(moveDay(t, { ...day, digest: digestTicks(t, key, day) ?? "" }, "/lake")).toBe(24);
  });
  await shareInto(server, first, warehouse);
  await shareInto(server, first, warehouse, { verify: true });
  await shareInto(server, later, warehouse);
  const content = async (database: string) => ({
    rows: (await server.query<{ n: string }>(database, "SELECT count(*) AS n FROM mds.index_ticks"))[0]?.n,
    reasons: (
      await server.query<{ proof: string; reason: string | null }>(
        database,
        "SELECT proof, reason FROM mds.coverage WHERE stream = 'index_ticks' ORDER BY from_ts",
      )
    ).map(({ proof, reason }) => [proof, reason]),
  });
  expect(await content(first)).toEqual({ rows: "48", reasons: [["rows", null]] });
  expect(await content(later)).toEqual({
    rows: "24",
    reasons: [
      ["rows", "moved to /lake"],
      ["rows", null],
    ],
  });
});
