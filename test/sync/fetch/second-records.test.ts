import { expect, it } from "vitest";
import { streamTable } from "../../../src/model/streams.ts";
import { Fault } from "../../simulator/faults.ts";
import { startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const settings = `
service: { refreshSeconds: 120 }
sync:
  ohlcv: { GWA: [BTC], MWA: none, LX: none }
  intraday: { GWA: [BTC], MWA: none, LX: none, days: 1 }
  exchangeTickers: { exchanges: [Kraken], markets: all }
  derivatives: false
`;
/** A page of an odd number of records ends between two of one moment. */
const cases = [
  ["index_ticks", 101],
  ["ohlcv", 33],
  ["market_caps", 2000],
  ["exchange_ticks", 2000],
] as const;

it.each(cases)(
  "C19: of %s with two records of a moment, %s to a page, every one is kept once",
  async (stream, rows) => {
    const { table, endpoint } = streamTable[stream];
    const engine = await startBackfillHarness({
      settings,
      simulator: { refreshSeconds: 120, faults: [Fault.secondRecords(rows, { on: endpoint })] },
    });
    const content = () =>
      engine.query(`SELECT (SELECT count(*) FROM ${table}) AS rows,
      (SELECT count(*) FROM ${table} WHERE details ->> '$.quality' = 'second record of one moment') AS noted,
      (SELECT count(*) FROM rejects WHERE reason = 'second record of one moment') AS seconds,
      (SELECT count(*) FROM rejects) AS rejects, (SELECT count(*) FROM revisions) AS revisions`)[0];
    const expectBoth = (stored: ReturnType<typeof content>) => {
      const { rows, noted } = stored ?? {};
      expect(Number(noted)).toBeGreaterThan(5);
      // The last page of a walk may end between two records, below what is selected.
      expect([noted, Number(noted) + 1]).toContain(rows);
      expect(stored).toEqual({ rows, noted, seconds: noted, rejects: noted, revisions: 0 });
    };
    const first = await engine.run();
    const stored = content();
    expectBoth(stored);
    const rejected = first.streams.find((each) => each.stream === stream)?.rejected;
    expect({ ...first, rejected }).toMatchObject({ exit: 4, problems: [], rejected: stored?.noted });

    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    expect(content()).toEqual(stored);
    expect(await engine.verify()).toMatchObject({ differences: [], problems: [] });
    // Its pages may reach further back than the selected day.
    expectBoth(content());
    engine.expectMatchesService();
  },
);
