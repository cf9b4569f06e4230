import { describe, expect, it } from "vitest";
import { queryFormats, renderings } from "../../../src/cli/output/row-formats.ts";

describe("every format of a query", () => {
  it.each(queryFormats)(
    "%s writes rows as they come, so that it holds few of them however many there are",
    (format) => {
      let asked = 0;
      const endless = (function* () {
        for (;;) yield [++asked, "text"];
      })();
      const pieces = renderings[format](["n", "t"], endless)[Symbol.iterator]();
      let written = "";
      for (let i = 0; i < 4; i++) written += pieces.next().value;
      expect(written).toContain("text");
      expect(asked).toBeLessThanOrEqual(2_000);
    },
  );
});
