import { describe, expect, it } from "vitest";
import type { Quirks } from "../../../src/simulator/market/quirks.ts";
import { startEngine } from "../../support/sync/backfill-harness.ts";

const settings = `sync: { exchangeTickers: false, derivatives: false, ohlcv: { GWA: [LIBRA, LUNA], MWA: none, LX: none },
  intraday: { GWA: [BTC, LIBRA], MWA: none, LX: all, days: 1 } }`;

/** Choices that the specification leaves open, a few at a time, so that each is met with several others. */
const services: [what: string, quirks: Partial<Quirks>][] = [
  [
    "ends with its own id, repeats the cursor's row, and compares bars by their end",
    {
      lastPage: "own-id",
      cursor: "inclusive",
      ohlcvTimestamp: "end",
      barEnd: "midnight",
      upperBound: "exclusive",
      noData: "empty",
    },
  ],
  [
    "has opaque ids, numbers for decimals, unknown properties in any order",
    {
      ids: "opaque",
      decimals: "number",
      extraProperties: true,
      reorderedProperties: true,
      fractionDigits: 6,
      lastPage: "absent",
    },
  ],
  [
    "ignores the size beside a cursor, and whose dead cursors lead to empty pages",
    {
      sizeBesideStartAfter: "ignored",
      deadCursor: "empty",
      lastPage: "empty",
      fractionDigits: 0,
      partialBar: false,
    },
  ],
  [
    "lacks some ticks, and hands out the same token again",
    {
      missingPerMille: 30,
      tokenReissue: "same",
      awkwardTokens: true,
      upperBound: "exclusive",
      barTimestamp: true,
    },
  ],
];

describe("a service that", () => {
  it.each(services)("%s is copied whole", async (_, quirks) => {
    const engine = await startEngine({ settings, simulator: { quirks } });
    const report = await engine.run();
    expect(report.problems).toEqual([]);
    expect(report.exit).toBe(0);
    const { rows } = engine.expectTruth();
    expect(rows).toBeGreaterThan(10_000);
  });
});
