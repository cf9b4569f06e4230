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

const whole = { unknownNames: [], suggestions: {}, ambiguousNames: [], missing: null };
const list = (candidates: SelectorCandidate[], ...names: string[]) =>
  resolveSelector({ kind: "list", names }, candidates, undefined);

describe("resolveSelector", () => {
  it("selects all or none", () => {
    const all = resolveSelector({ kind: "all" }, assets, undefined);
    expect(all).toEqual({ ids: ["1", "2", "3", "4"], ...whole });
    expect(resolveSelector({ kind: "none" }, assets, undefined)).toEqual({ ids: [], ...whole });
  });

  it("selects the top N by rank, and markets by the rank of their base asset", () => {
    const top = resolveSelector({ kind: "top", count: 2 }, assets, ["2", "4", "1", "3"]);
    expect(top).toEqual({ ids: ["2", "4"], ...whole });
    expect(resolveSelector({ kind: "top", count: 1 }, markets, ["1", "2"]).ids).toEqual(["m1", "m2"]);
  });

  it("is unresolved for top without a known ranking", () => {
    const top = resolveSelector({ kind: "top", count: 2 }, assets, undefined);
    expect(top).toMatchObject({ ids: [], missing: "ranking" });
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
    const top = (from: SelectorCandidate[]) => resolveSelector({ kind: "top", count: 1 }, from, undefined);
    expect(top(lx)).toMatchObject({ ids: ["blx"], missing: null });
    expect(top([...lx, ...assets])).toMatchObject({ ids: ["blx"], missing: "ranking" });
  });

  it("selects listed symbols, pairs, names and ids, case-insensitively", () => {
    expect(list(assets, "btc", "Ethereum").ids).toEqual(["1", "2"]);
    expect(list(markets, "m3", "BTC/usd").ids).toEqual(["m1", "m3"]);
  });

  it("selects all that share a symbol, and reports ambiguous and unknown names", () => {
    const odd = { ambiguousNames: ["GRT"], unknownNames: ["NOPE"] };
    expect(list(assets, "GRT", "NOPE")).toEqual({ ...whole, ids: ["3", "4"], ...odd });
  });

  it("suggests the closest label of each unknown name", () => {
    const selection = list(assets, "BCT", "XYZZYPLUGH", "btc");
    expect(selection).toMatchObject({ unknownNames: ["BCT", "XYZZYPLUGH"], suggestions: { BCT: "BTC" } });
    expect(Object.keys(selection.suggestions)).toEqual(["BCT"]);
    expect(formatUnknownNames(selection)).toBe("BCT (did you mean BTC?), XYZZYPLUGH");
  });
});
