import { describe, expect, it } from "vitest";
import { measureGoodput } from "../../support/service/goodput.ts";
import {
  failureRow,
  type GoodputRow,
  limitRow,
  measureRow,
  overloadRow,
  pauseRow,
} from "../../support/service/goodput-table.ts";

const seed = 20260301;
/** Pages per second without faults: eight requests in flight, 20 ms each. */
const CLEAN = 400;

// The short form of `npm run bench -- goodput`.
describe("pages per second on a bad network", () => {
  it("is not limited while nothing fails", async () => {
    const { pagesPerSecond } = await measureGoodput({ faults: [], seconds: 0.75, seed });
    expect(pagesPerSecond).toBeGreaterThan(0.9 * CLEAN);
  });

  const rows: [string, GoodputRow][] = [
    failureRow(0.75, "500", 3),
    limitRow(10, "second", 45),
    pauseRow(0.1, 20),
    overloadRow(2, 3),
  ].map((row) => [row.situation, row]);

  it.each(rows)("B17: %s", async (_, row) => {
    const { ratio, rejectedShare, isMet } = await measureRow(row, CLEAN, seed);
    expect({ ratio, rejectedShare, isMet }).toMatchObject({ isMet: true });
  });
});
