import { describe, expect, it } from "vitest";
import { QUERY_FORMATS, rowRenderers } from "../../../src/cli/output/row-formats.ts";

describe("every format of a query", () => {
  it.each(QUERY_FORMATS)("%s streams its rows, and holds only a few of them in memory", (format) => {
    let pulled = 0;
    const endless = (function* () {
      for (;;) yield [++pulled, "text"];
    })();
    const pieces = rowRenderers[format](["n", "t"], endless)[Symbol.iterator]();
    let written = "";
    for (let i = 0; i < 4; i++) written += pieces.next().value;
    expect(written).toContain("text");
    expect(pulled).toBeLessThanOrEqual(2_000);
  });
});
