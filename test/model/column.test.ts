import { describe, expect, it } from "vitest";
import { camelCase, isSlim } from "../../src/model/column.ts";
import { exchangeTickColumns } from "../../src/model/stream-columns.ts";

describe("columns", () => {
  it("have their name in camel case as a property of records, the second time as the first", () => {
    for (const _ of [1, 2]) expect(camelCase("tick_volume_24h")).toBe("tickVolume24h");
  });

  it("of a slim view are those that cost nothing to compute", () => {
    expect(exchangeTickColumns.filter((column) => !isSlim(column)).map(({ name }) => name)).toEqual([
      ...["time", "last_moved", "unmoved_seconds", "is_stale"],
      "extra",
    ]);
  });
});
