import { expect, it } from "vitest";
import { decodePage } from "../../../src/ingest/decode/decode-page.ts";
import { toPlainNotation } from "../../../src/model/decimal.ts";
import type { MarketCapRecord } from "../../simulator/oracle.ts";
import { startRestClient } from "../../support/simulator/rest-client.ts";
import { openTestWarehouse, queryRows } from "../../support/warehouse/open-warehouse.ts";
import { writeRecords } from "../../support/warehouse/write-records.ts";

const families = {
  change: "marketCapPercentChange",
  price_change: "pricePercentChange",
  volume_change: "volumePercentChange",
  total_market_cap_change: "totalMarketCapPercentChange",
} as const satisfies Readonly<Record<string, keyof MarketCapRecord>>;

it("market_caps has every percent change that the service sends, with all its digits", async () => {
  const client = await startRestClient();
  const { body } = await client.get("/market-cap", { percentChange: true });
  const served: MarketCapRecord[] = body.content;
  const { records, unknownFields } = decodePage("market_caps", JSON.stringify(body));
  expect(unknownFields).toEqual([]);

  const warehouse = openTestWarehouse({ hasAllViews: true });
  warehouse.transaction((transaction) => writeRecords(transaction, "market_caps", records));
  const expected = served.map((record) => {
    const changes = Object.entries(families).flatMap(([column, family]) => {
      const { change24h, change7d, change30d } = record[family] as Readonly<
        Record<"change24h" | "change7d" | "change30d", string | null>
      >;
      return [
        [`${column}_24h_exact`, exact(change24h)],
        [`${column}_7d_exact`, exact(change7d)],
        [`${column}_30d_exact`, exact(change30d)],
      ];
    });
    return { ...Object.fromEntries(changes), rank: record.marketCapRank, extra: null };
  });
  const names = Object.keys(expected[0] ?? {}).join(", ");
  for (const relation of ["market_caps", "latest_market_caps"])
    expect(queryRows(warehouse, `SELECT ${names} FROM ${relation} ORDER BY rank`)).toEqual(expected);
});

function exact(text: string | null): string | null {
  return text === null ? null : (toPlainNotation(text) ?? null);
}
