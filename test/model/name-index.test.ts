import { describe, expect, it } from "vitest";
import { NameIndex } from "../../src/model/name-index.ts";

const firstDays: Record<string, string> = {
  ...{ luna1: "2019-05-07", luna2: "2022-05-28", uni1: "2020-09-17", uni2: "2020-09-30" },
};
const known = [
  { id: "btc", labels: ["BTC", "Bitcoin"], indexType: "GWA" },
  { id: "btcusd", labels: ["BTC/USD"], indexType: "MWA" },
  { id: "luna1", labels: ["LUNA", "Terra Classic"], indexType: "GWA" },
  { id: "luna2", labels: ["LUNA", "Terra"], indexType: "GWA" },
  { id: "uni1", labels: ["UNI", "Uniswap"], indexType: "GWA" },
  { id: "uni2", labels: ["UNI", "Unicorn"], indexType: "GWA" },
  { id: "odd1", labels: ["ODD"], indexType: "GWA" },
  { id: "odd2", labels: ["ODD"], indexType: "GWA" },
  { id: "blx", labels: ["BLX"], indexType: "LX" },
  { id: "blxcoin", labels: ["BLX", "Blockcoin"], indexType: "GWA" },
  { id: "named-btc", labels: ["NB", "BTC"], indexType: "GWA" },
  { id: "at", labels: ["A@2020"], indexType: "GWA" },
  { id: "nameless", labels: [""], indexType: "GWA" },
  { id: "kraken", labels: ["Kraken"], indexType: null },
];
const index = new NameIndex(known, ({ id }) => firstDays[id]);

describe("a name", () => {
  it.each([
    ["btc", ["btc"]],
    ["BTC", ["btc"]],
    ["Btc", ["btc", "named-btc"]],
    ["bitcoin", ["btc"]],
    ["gwa:BTC", ["btc"]],
    ["MWA:btc/usd", ["btcusd"]],
    ["MWA:BTC", []],
    ["LUNA", ["luna1", "luna2"]],
    ["LUNA@2022", ["luna2"]],
    ["GWA:LUNA@2019-05", ["luna1"]],
    ["Terra", ["luna2"]],
    ["UNI@2020", ["uni1", "uni2"]],
    ["UNI@2020-09-30", ["uni2"]],
    ["LUNA@2021", []],
    ["ODD@2020", []],
    ["A@2020", ["at"]],
    ["BLX", ["blx", "blxcoin"]],
    ["LX:BLX", ["blx"]],
    ["kraken", ["kraken"]],
    ["nothing:BTC", []],
    ["GWA:", []],
  ])("%s means %j", (given, ids) => {
    expect(index.find(given).map(({ id }) => id)).toEqual(ids);
  });

  it("means what a type selects, unless it says its own", () => {
    expect(index.find("BLX", "LX").map(({ id }) => id)).toEqual(["blx"]);
    expect(index.find("GWA:BLX", "LX").map(({ id }) => id)).toEqual(["blxcoin"]);
  });

  it.each([
    ["BCT", "BTC"],
    ["LX:BTC", "GWA:BTC"],
    ["zzzzzzz", undefined],
  ])("%s may have meant %s", (given, suggestion) => {
    expect(index.suggest(given)).toBe(suggestion);
  });

  it.each([["LUNA"], ["UNI"], ["BLX"], ["ODD"]])("of each that shares %s means only that one", (shared) => {
    const all = index.find(shared);
    for (const named of all) expect(index.find(index.distinguish(named, all))).toEqual([named]);
  });

  it("is as short as it can be", () => {
    const distinguish = (shared: string) => {
      const all = index.find(shared);
      return all.map((named) => index.distinguish(named, all));
    };
    expect(distinguish("LUNA")).toEqual(["LUNA@2019", "LUNA@2022"]);
    expect(distinguish("UNI")).toEqual(["UNI@2020-09-17", "UNI@2020-09-30"]);
    expect(distinguish("BLX")).toEqual(["LX:BLX", "GWA:BLX"]);
    expect(distinguish("ODD")).toEqual(["GWA:odd1", "GWA:odd2"]);
  });
});
