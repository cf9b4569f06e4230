import { expect, it } from "vitest";
import { bucketOf } from "../../src/model/buckets.ts";

it("a series keeps its bucket for ever: daemons of several versions divide the series among them", () => {
  expect([bucketOf("GWA", "BTC"), bucketOf("MWA", "BTC"), bucketOf("", "")]).toEqual([43, 37, 13]);
});
