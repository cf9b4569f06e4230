import { describe, expect, it } from "vitest";
import { type ChartSeries, SeriesSearch, searchPages } from "../../../src/warehouse/read/page-search.ts";

const series = (index_type: string, index_id: string, name: string, title = ""): ChartSeries => ({
  ...{ index_type, index_id, name, title },
  has_ticks: index_type !== "MWA",
});
const search = new SeriesSearch([
  series("LX", "1", "BLX"),
  series("GWA", "2", "BTC", "Bitcoin"),
  series("GWA", "3", "BTC", "Bitcoin, another one"),
  series("GWA", "4", "UBTC", "Unit Bitcoin"),
  series("MWA", "5", "BTC/USD"),
]);
const find = (text: string) => search.find(text, 9).map(({ slug, match }) => `${slug} ${match}`);

describe("a search of series", () => {
  it("knows the name in an address, which the best-known of several series has", () => {
    expect(find("btc")).toEqual(["BTC exact", "GWA:3 exact", "BTC-USD part", "UBTC part"]);
    expect(find("BTC-USD")[0]).toBe("BTC-USD exact");
    expect(find("btc/usd")[0]).toBe("BTC-USD exact");
    expect(find("LX:BLX")).toEqual(["BLX exact"]);
    expect(find("GWA:3")).toEqual(["GWA:3 exact"]);
    expect(find("MWA:btc")).toEqual(["BTC-USD part"]);
    expect(find("mwa:")).toEqual(["BTC-USD part"]);
  });

  it("also looks into the names of assets, and for similar names if nothing matches", () => {
    expect(find("bitcoin")).toEqual(["BTC part", "GWA:3 part", "UBTC part"]);
    expect(find("BTX")).toEqual(["BLX similar", "BTC similar", "GWA:3 similar", "UBTC similar"]);
    expect(find("something else")).toEqual([]);
  });
});

describe("a search of pages", () => {
  it("leads to assets, bars, exchanges, derivatives and relations, those first whose name begins with the text", () => {
    const pages = {
      pairs: [
        { pair: "WBTC/USD", exchanges: 9 },
        { pair: "BTC/USD", exchanges: 1 },
      ],
      exchanges: [
        { name: "Kraken", pairs: 2, pair: "BTC/USD" },
        { name: "It's closed", pairs: 0, pair: null },
        { name: "BTX", pairs: 1, pair: "BTC/USD" },
      ],
      assets: [{ asset_id: "2", symbol: "BTC", contracts: 1_200, exchanges: "[]" }],
      schema: [{ title: "Bars", relations: [{ name: "bars_1h", summary: "hourly bars", columns: [] }] }],
    };
    const found = (text: string) =>
      searchPages(text, search.find(text, 6), pages).map(({ note, href }) => [href, note]);
    expect(found("BTC").slice(6)).toEqual([
      ["/exchanges/BTC-USD", "on one exchange"],
      ["/exchanges/WBTC-USD", "on 9 exchanges"],
      ["/derivatives/BTC", "1,200 contracts"],
    ]);
    expect(found("BTC").slice(0, 5)).toEqual([
      ["/assets/BTC", "everything about it"],
      ["/assets/3", "everything about it"],
      ["/bars/BTC", "GWA"],
      ["/bars/GWA:3", "GWA"],
      ["/bars/BTC-USD", "MWA, daily bars"],
    ]);
    expect(found("krak")).toEqual([["/exchanges/BTC-USD?q=Kraken", "2 pairs"]]);
    // Not the series with similar names.
    expect(found("btx")).toEqual([["/exchanges/BTC-USD?q=BTX", "one pair"]]);
    expect(found("closed")).toEqual([
      ["/explore#sql=SELECT+*+FROM+exchanges+WHERE+name+%3D+%27It%27%27s+closed%27", "no quotes are synced"],
    ]);
    expect(found("bars_1h")).toEqual([["/explore#sql=SELECT+*+FROM+bars_1h+LIMIT+100", "hourly bars"]]);
  });
});
