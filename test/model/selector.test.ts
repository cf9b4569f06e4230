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

const lx = [{ id: "blx", labels: ["BLX"] }];
const whole = { unknownNames: [], suggestions: {}, ambiguousNames: [], missing: null };
const list = (candidates: SelectorCandidate[], ...names: string[]) =>
  resolveSelector({ kind: "list", names }, candidates, undefined);

describe("resolveSelector", () => {
  it.each<[selector: Selector, from: SelectorCandidate[], ranking: string[] | undefined, found: object]>([
    [{ kind: "all" }, assets, undefined, { ids: ["1", "2", "3", "4"] }],
    [{ kind: "none" }, assets, undefined, { ids: [] }],
    [{ kind: "top", count: 2 }, assets, ["2", "4", "1", "3"], { ids: ["2", "4"] }],
    // A market has the rank of its base asset.
    [{ kind: "top", count: 1 }, markets, ["1", "2"], { ids: ["m1", "m2"] }],
    [{ kind: "top", count: 2 }, assets, undefined, { ids: [], missing: "ranking" }],
    // The liquid indices have no rank.
    [{ kind: "top", count: 1 }, lx, undefined, { ids: ["blx"] }],
    [{ kind: "top", count: 1 }, [...lx, ...assets], undefined, { ids: ["blx"], missing: "ranking" }],
    [{ kind: "list", names: ["btc", "Ethereum"] }, assets, undefined, { ids: ["1", "2"] }],
    [{ kind: "list", names: ["m3", "BTC/usd"] }, markets, undefined, { ids: ["m1", "m3"] }],
  ])("of %j selects", (selector, from, ranking, found) => {
    expect(resolveSelector(selector, from, ranking)).toEqual({ ...whole, ...found });
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
