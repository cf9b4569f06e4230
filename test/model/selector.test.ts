import { describe, expect, it } from "vitest";
import {
  formatUnknownNames,
  resolveSelector,
  type Selector,
  type SelectorCandidate,
} from "../../src/model/selector.ts";

const assets: SelectorCandidate[] = [
  { id: "1", labels: ["BTC", "Bitcoin"], rankingAssetId: "1" },
  { id: "2", labels: ["ETH", "Ethereum"], rankingAssetId: "2" },
  { id: "3", labels: ["GRT", "The Graph"], rankingAssetId: "3" },
  { id: "4", labels: ["GRT", "Golden Ratio"], rankingAssetId: "4" },
];
const markets: SelectorCandidate[] = [
  { id: "m1", labels: ["BTC/USD"], rankingAssetId: "1" },
  { id: "m2", labels: ["BTC/EUR"], rankingAssetId: "1" },
  { id: "m3", labels: ["ETH/USD"], rankingAssetId: "2" },
];

describe("resolveSelector", () => {
  it("selects all or none", () => {
    const whole = { unknownNames: [], suggestions: {}, ambiguousNames: [], missing: null };
    expect(resolveSelector({ kind: "all" }, assets, undefined)).toEqual({
      ids: ["1", "2", "3", "4"],
      ...whole,
    });
    expect(resolveSelector({ kind: "none" }, assets, undefined)).toEqual({ ids: [], ...whole });
  });

  it("selects the top N by rank, and markets by the rank of their base asset", () => {
    expect(resolveSelector({ kind: "top", count: 2 }, assets, ["2", "4", "1", "3"])).toEqual({
      ids: ["2", "4"],
      unknownNames: [],
      suggestions: {},
      ambiguousNames: [],
      missing: null,
    });
    expect(resolveSelector({ kind: "top", count: 1 }, markets, ["1", "2"]).ids).toEqual(["m1", "m2"]);
  });

  it("is unresolved for top without a known ranking", () => {
    expect(resolveSelector({ kind: "top", count: 2 }, assets, undefined)).toMatchObject({
      ids: [],
      missing: "ranking",
    });
  });

  it("is unresolved if nothing can be selected, unless it is a list of names or none", () => {
    const lacking = (selector: Selector, ranking?: string[]) =>
      resolveSelector(selector, [], ranking).missing;
    expect(lacking({ kind: "all" })).toBe("candidates");
    expect(lacking({ kind: "top", count: 3 })).toBe("candidates");
    expect(lacking({ kind: "top", count: 3 }, ["1"])).toBe("candidates");
    expect(resolveSelector({ kind: "top", count: 1 }, markets, ["4", "1"]).missing).toBe("candidates");
    expect(lacking({ kind: "none" })).toBeNull();
    expect(lacking({ kind: "list", names: ["BLX"] })).toBeNull();
  });

  it("selects everything that has no rank (the liquid indices) for top", () => {
    const lx = [{ id: "blx", labels: ["BLX"] }];
    expect(resolveSelector({ kind: "top", count: 1 }, lx, undefined)).toMatchObject({
      ids: ["blx"],
      missing: null,
    });
    expect(resolveSelector({ kind: "top", count: 1 }, [...lx, ...assets], undefined)).toMatchObject({
      ids: ["blx"],
      missing: "ranking",
    });
  });

  it("selects listed symbols, pairs, names and ids, case-insensitively", () => {
    expect(resolveSelector({ kind: "list", names: ["btc", "Ethereum"] }, assets, undefined).ids).toEqual([
      "1",
      "2",
    ]);
    expect(resolveSelector({ kind: "list", names: ["m3", "BTC/usd"] }, markets, undefined).ids).toEqual([
      "m1",
      "m3",
    ]);
  });

  it("selects all that share a symbol, and reports ambiguous and unknown names", () => {
    expect(resolveSelector({ kind: "list", names: ["GRT", "NOPE"] }, assets, undefined)).toEqual({
      ids: ["3", "4"],
      ambiguousNames: ["GRT"],
      unknownNames: ["NOPE"],
      suggestions: {},
      missing: null,
    });
  });

  it("suggests the closest label of each unknown name", () => {
    const selection = resolveSelector(
      { kind: "list", names: ["BCT", "XYZZYPLUGH", "btc"] },
      assets,
      undefined,
    );
    expect(selection).toMatchObject({ unknownNames: ["BCT", "XYZZYPLUGH"], suggestions: { BCT: "BTC" } });
    expect(Object.keys(selection.suggestions)).toEqual(["BCT"]);
    expect(formatUnknownNames(selection)).toBe("BCT (did you mean BTC?), XYZZYPLUGH");
  });

  it("prefers the exact case if symbols differ only by case", () => {
    const pair = [
      { id: "a", labels: ["ONE"] },
      { id: "b", labels: ["One"] },
    ];
    expect(resolveSelector({ kind: "list", names: ["One"] }, pair, undefined)).toMatchObject({
      ids: ["b"],
      ambiguousNames: [],
    });
    expect(resolveSelector({ kind: "list", names: ["one"] }, pair, undefined)).toMatchObject({
      ids: ["a", "b"],
      ambiguousNames: ["one"],
    });
  });
});
