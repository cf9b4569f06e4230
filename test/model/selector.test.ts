import { describe, expect, it } from "vitest";
import { nearest } from "../../src/model/did-you-mean.ts";
import { type Candidate, select } from "../../src/model/selector.ts";

const assets: Candidate[] = [
  { id: "1", labels: ["BTC", "Bitcoin"], rankedBy: "1" },
  { id: "2", labels: ["ETH", "Ethereum"], rankedBy: "2" },
  { id: "3", labels: ["GRT", "The Graph"], rankedBy: "3" },
  { id: "4", labels: ["GRT", "Golden Ratio"], rankedBy: "4" },
];
const markets: Candidate[] = [
  { id: "m1", labels: ["BTC/USD"], rankedBy: "1" },
  { id: "m2", labels: ["BTC/EUR"], rankedBy: "1" },
  { id: "m3", labels: ["ETH/USD"], rankedBy: "2" },
];

describe("select", () => {
  it("takes all or none", () => {
    expect(select({ kind: "all" }, assets, undefined).ids).toEqual(["1", "2", "3", "4"]);
    expect(select({ kind: "none" }, assets, undefined)).toMatchObject({ ids: [], resolved: true });
  });

  it("takes the top N by rank, and for markets those whose base asset is among the N", () => {
    expect(select({ kind: "top", count: 2 }, assets, ["2", "4", "1", "3"]).ids).toEqual(["2", "4"]);
    expect(select({ kind: "top", count: 1 }, markets, ["1", "2"]).ids).toEqual(["m1", "m2"]);
  });

  it("is unresolved when top is asked and no ranking was ever seen", () => {
    expect(select({ kind: "top", count: 2 }, assets, undefined)).toMatchObject({ ids: [], resolved: false });
  });

  it("takes all of what has no rank under top: the liquid indices", () => {
    const lx = [{ id: "blx", labels: ["BLX"] }];
    expect(select({ kind: "top", count: 1 }, lx, undefined)).toMatchObject({ ids: ["blx"], resolved: true });
  });

  it("takes listed symbols, pairs, names and ids, whatever the case", () => {
    expect(select({ kind: "list", names: ["btc", "Ethereum"] }, assets, undefined).ids).toEqual(["1", "2"]);
    expect(select({ kind: "list", names: ["m3", "BTC/usd"] }, markets, undefined).ids).toEqual(["m1", "m3"]);
  });

  it("selects all that share a symbol and says so, and names what fits nothing", () => {
    expect(select({ kind: "list", names: ["GRT", "NOPE"] }, assets, undefined)).toEqual({
      ids: ["3", "4"],
      shared: ["GRT"],
      unknown: ["NOPE"],
      resolved: true,
    });
  });

  it("prefers the exact case where symbols differ by case alone", () => {
    const pair = [
      { id: "a", labels: ["ONE"] },
      { id: "b", labels: ["One"] },
    ];
    expect(select({ kind: "list", names: ["One"] }, pair, undefined)).toMatchObject({
      ids: ["b"],
      shared: [],
    });
    expect(select({ kind: "list", names: ["one"] }, pair, undefined)).toMatchObject({
      ids: ["a", "b"],
      shared: ["one"],
    });
  });
});

describe("nearest", () => {
  it.each([
    ["concurency", "concurrency"],
    ["BASEURL", "baseUrl"],
    ["prot", "port"],
    ["qqqq", undefined],
  ])("of %s is %s", (word, meant) => {
    expect(nearest(word, ["concurrency", "baseUrl", "port", "host"])).toBe(meant);
  });
});
