import { expect, it } from "vitest";
import { streamTable } from "../../../src/model/streams.ts";
import { Fault } from "../../simulator/faults.ts";
import { barsOf, onlyTicks, startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const exchangeTickers = "{ exchanges: [Kraken], markets: all }";
const settings = onlyTicks("[BTC]", { ohlcv: barsOf("[BTC]"), exchangeTickers, marketCap: "{ every: 5m }" });
/** A page of an odd number of records ends between two of one moment. */
const cases = [
  ["index_ticks", 101],
  ["ohlcv", 33],
  ["market_caps", 2000],
  ["exchange_ticks", 2000],
] as const;

it("C19: of each stream with two records of a moment every one is kept once", async () => {
  const faults = cases.map(([stream, rows]) =>
    Fault.secondRecords(rows, { on: streamTable[stream].endpoint }),
  );
  const engine = await startBackfillHarness({ settings, simulator: { refreshSeconds: 120, faults } });
  const content = () =>
    cases.map(([stream]) => {
      const { table } = streamTable[stream];
      const [counts] = engine.query(`SELECT (SELECT count(*) FROM ${table}) AS rows,
        (SELECT count(*) FROM ${table} WHERE details ->> '$.quality' = 'second record of one moment') AS noted,
        (SELECT count(*) FROM rejects WHERE stream = '${stream}' AND reason = 'second record of one moment') AS seconds,
        (SELECT count(*) FROM rejects WHERE stream = '${stream}') AS rejects,
        (SELECT count(*) FROM revisions WHERE stream = '${stream}') AS revisions`);
      return {
        stream,
        ...(counts as Record<"rows" | "noted" | "seconds" | "rejects" | "revisions", number>),
      };
    });
  const expectBoth = (stored: ReturnType<typeof content>) => {
    for (const { stream, rows, noted, ...rest } of stored) {
      expect(noted, stream).toBeGreaterThan(5);
      // The last page of a walk may end between two records, below what is selected.
      expect([noted, noted + 1], stream).toContain(rows);
      expect({ stream, ...rest }).toEqual({ stream, seconds: noted, rejects: noted, revisions: 0 });
    }
  };
  const first = await engine.run();
  const stored = content();
  expectBoth(stored);
  const rejected = stored.map(({ stream }) => first.streams.find((each) => each.stream === stream)?.rejected);
  expect(first).toMatchObject({ exit: 4, problems: [] });
  expect(rejected).toEqual(stored.map(({ noted }) => noted));

  expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
  expect(content()).toEqual(stored);
  expect(await engine.verify()).toMatchObject({ differences: [], problems: [] });
  // Its pages may reach further back than the selected day.
  expectBoth(content());
  engine.expectMatchesService();
});
