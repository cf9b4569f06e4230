import { describe, expect, it } from "vitest";
import { parseCoverageQuery } from "../../src/dashboard/query-params.ts";

describe("the rows query of the heat map", () => {
  it("is rounded to a few sizes, so that similar queries share one cached value", () => {
    const parse = (query: string) => parseCoverageQuery(new URLSearchParams(query));
    expect(parse("rows=ohlcv:MWA,20&rows=index_ticks:GWA,48")).toEqual(
      parse("rows=index_ticks:GWA,33&rows=ohlcv:MWA,9"),
    );
    expect(parse("rows=ohlcv:MWA,999999").shown).toEqual({ "ohlcv:MWA": 408 });
    expect(parse("rows=ohlcv:MWA,1&rows=a b:c,50").shown).toEqual({});
    expect(parse("name= btc &problems=1")).toMatchObject({ name: "btc", onlyProblems: true });
    expect(parse(`name=${"x".repeat(500)}`).name).toHaveLength(80);
  });
});
