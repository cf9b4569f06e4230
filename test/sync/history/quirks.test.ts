import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import type { Quirks } from "../../simulator/quirks.ts";
import { startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const settings = `service: { refreshSeconds: 120 }
sync: { exchangeTickers: false, derivatives: false, ohlcv: { GWA: [LIBRA, LUNA], MWA: none, LX: none },
  intraday: { GWA: [BTC, LIBRA], MWA: none, LX: [BLX], days: 1 } }`;

/** Choices that the specification leaves open, in groups, so that each is tested together with others. */
const services: [what: string, quirks: Partial<Quirks>, faults?: readonly Fault[]][] = [
  [
    "ends with its own id, repeats the row of the cursor, and finds bars by their end",
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
    "has opaque ids, numeric decimals and unknown properties in any order",
    { ids: "opaque", lastPage: "absent" },
    [Fault.decimals("number"), Fault.unknownFields(), Fault.reorderedFields(), Fault.timestamps("us")],
  ],
  [
    "ignores the size next to a cursor, and has no bar of today",
    { sizeBesideStartAfter: "ignored", lastPage: "empty", partialBar: false },
    [Fault.timestamps("seconds")],
  ],
  [
    "lacks some ticks, and has tokens that must be encoded",
    {
      missingPerMille: 30,
      awkwardTokens: true,
      compression: "gzip",
      upperBound: "exclusive",
      barTimestamp: true,
    },
  ],
];

describe("a service that", () => {
  it.each(services)("%s is copied completely", async (_, quirks, faults = []) => {
    const engine = await startBackfillHarness({
      settings,
      simulator: { refreshSeconds: 120, quirks: { maxPageRows: 200, ...quirks }, faults },
    });
    const report = await engine.run();
    expect(report.problems).toEqual([]);
    expect(report.exit).toBe(0);
    const { rows } = engine.expectMatchesService();
    expect(rows).toBeGreaterThan(1_350);
  });
});
