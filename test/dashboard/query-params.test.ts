import { describe, expect, it } from "vitest";
import { parseCoverageQuery } from "../../src/dashboard/query-params.ts";

describe("the query of the heat map", () => {
  it("names groups in any order, so that similar queries share one cached value", () => {
    const parse = (query: string) => parseCoverageQuery(new URLSearchParams(query));
    const unfolded = ["index_ticks:GWA", "ohlcv:MWA"];
    expect(parse("all=ohlcv:MWA&all=a b:c&all=index_ticks:GWA&all=ohlcv:MWA").unfolded).toEqual(unfolded);
    expect(parse("name= btc &problems=1")).toMatchObject({ name: "btc", onlyProblems: true });
    expect(parse(`name=${"x".repeat(500)}`).name).toHaveLength(80);
  });
});
