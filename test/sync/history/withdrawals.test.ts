import { describe, expect, it } from "vitest";
import { readStatus } from "../../../src/warehouse/read/status.ts";
import { Fault } from "../../simulator/faults.ts";
import {
  type BackfillHarness,
  onlyTicks,
  startBackfillHarness,
  startDenseHarness,
} from "../../support/sync/backfill-harness.ts";
import { gapsAt } from "../../support/warehouse/gaps.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const settings = onlyTicks("[BTC, ETH]");
const DAY_MS = 86_400_000;
const withdrawn = { since: "2026-03-01T00:00:00Z", until: "2026-03-01T08:00:00Z" };
const WITHDRAWN_ROWS = 240;

async function startWithdrawal(options: { settings?: string } = {}): Promise<BackfillHarness> {
  const engine = await startBackfillHarness({ settings, mustRepeatClaims: true, ...options });
  expect((await engine.run()).exit).toBe(0);
  const btc = engine.simulator.universe.assets.find(({ symbol }) => symbol === "BTC")?.id;
  const { since, until } = withdrawn;
  engine.simulator.setFaults(Fault.withdraw(since, until, { on: "/index-ticker", query: { indexId: btc } }));
  return engine;
}

const storedRows = (engine: BackfillHarness) =>
  engine.query(`SELECT count(*) AS n FROM index_ticks WHERE name = 'BTC'
    AND ts >= ${parseTs(withdrawn.since)} AND ts < ${parseTs(withdrawn.until)}`)[0]?.n;
/** The open ranges but the head, by the view `gaps` at the manual clock instead of SQLite's. */
function openRanges(engine: BackfillHarness) {
  const { query, clock } = engine;
  return query(`SELECT name, substr(from_time, 12, 5) AS since, substr(to_time, 12, 5) AS until, reason
    FROM ${gapsAt(query, clock.now())} WHERE state = 'open' AND to_ts < ${(clock.now() - 600_000) * 1000}`);
}
const status = (engine: BackfillHarness) =>
  engine.withReader((reader) => readStatus(reader, engine.clock.now() * 1000));

describe("H5: the service withdraws eight hours of one series for good", () => {
  it("H5: two nights of backfill believe it, and keep the rows in revisions", async () => {
    const engine = await startWithdrawal();
    await engine.clock.advance(DAY_MS / 2);
    const startedAt = engine.clock.now();
    const first = await engine.run();
    // It does not wait for the confirmation.
    expect(engine.clock.now() - startedAt).toBeLessThan(60_000);
    expect(first).toMatchObject({ exit: 4, problems: [{ what: "GWA BTC", code: "withdrawal_unconfirmed" }] });
    expect(storedRows(engine)).toBe(WITHDRAWN_ROWS);
    // Only the unconfirmed range is open, not the day around it.
    expect(openRanges(engine)).toEqual([
      { name: "BTC", since: "00:00", until: "08:00", reason: "withdrawal unconfirmed" },
    ]);
    expect(status(engine).withdrawals).toMatchObject([
      { name: "BTC", rows: WITHDRAWN_ROWS, believed_at: null },
    ]);

    await engine.clock.advance(DAY_MS);
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    expect(storedRows(engine)).toBe(0);
    expect(openRanges(engine)).toEqual([]);
    expect(engine.query("SELECT count(*) AS n FROM revisions WHERE after IS NULL")).toEqual([
      { n: WITHDRAWN_ROWS },
    ]);
    expect(status(engine).withdrawals).toMatchObject([
      { name: "BTC", rows: WITHDRAWN_ROWS, believed_at: expect.stringContaining("2026-03-03") },
    ]);
    expect(engine.logged.filter(({ message }) => message === "mass withdrawal believed")).toHaveLength(1);
    expect((await engine.run()).exit).toBe(0);
  });

  it("H5: is not believed while the answers differ", async () => {
    const engine = await startWithdrawal();
    await engine.clock.advance(DAY_MS / 2);
    expect((await engine.run()).exit).toBe(4);
    engine.simulator.setFaults();
    await engine.clock.advance(3_600_000);
    expect((await engine.run()).exit).toBe(0);
    expect(storedRows(engine)).toBe(WITHDRAWN_ROWS);
    expect(engine.query("SELECT * FROM revisions")).toEqual([]);
    expect(status(engine).withdrawals).toEqual([]);
    engine.expectMatchesService();
  });

  it("H5: verify reports it each time until it is believed; with accept it believes at once", async () => {
    const engine = await startWithdrawal();
    for (let turn = 0; turn < 2; turn++) {
      const verified = await engine.verify();
      expect(verified.differences).toMatchObject([
        { name: "BTC", withdrawn: 0, unconfirmed: WITHDRAWN_ROWS },
      ]);
      expect(verified.problems).toMatchObject([{ what: "GWA BTC", code: "withdrawal_unconfirmed" }]);
      expect(storedRows(engine)).toBe(WITHDRAWN_ROWS);
    }
    const accepted = await engine.verify({ acceptsWithdrawals: true });
    expect(accepted.differences).toMatchObject([{ name: "BTC", withdrawn: WITHDRAWN_ROWS, unconfirmed: 0 }]);
    expect(accepted.problems).toEqual([]);
    expect(storedRows(engine)).toBe(0);
    expect(await engine.verify()).toMatchObject({ differences: [], problems: [] });
    expect(openRanges(engine)).toEqual([]);
  });

  it("H5: the settings say how many answers, over which time", async () => {
    const engine = await startWithdrawal({
      settings: onlyTicks("[BTC, ETH]", { withdrawals: "{ answers: 2, over: 1s }" }),
    });
    await engine.clock.advance(DAY_MS / 2);
    expect((await engine.run()).exit).toBe(4);
    await engine.clock.advance(1000);
    expect((await engine.run()).exit).toBe(0);
    expect(storedRows(engine)).toBe(0);
  });
});

it("H3: a range proven empty beside rows is fetched again when rows appear in it", async () => {
  const engine = await startDenseHarness({ settings, mustRepeatClaims: true });
  // A later record shows that the service has published past the hole.
  await engine.run({ range: { from: parseTs("2026-03-01T11:00:00Z"), to: parseTs("2026-03-01T11:30:00Z") } });
  engine.simulator.setFaults(
    Fault.withdraw("2026-03-01T08:50:00Z", "2026-03-01T11:00:00Z", { on: "/index-ticker" }),
  );
  const hour = { from: parseTs("2026-03-01T09:00:00Z"), to: parseTs("2026-03-01T11:00:00Z") };
  await engine.run({ range: hour });
  expect(engine.query("SELECT DISTINCT from_time FROM coverage WHERE proof = 'empty'")).toEqual([
    { from_time: "2026-03-01T09:00:00.000000Z" },
  ]);
  // The page above the hole reaches a few rows into it.
  engine.simulator.setFaults();
  expect((await engine.run()).exit).toBe(0);
  expect(engine.query("SELECT DISTINCT proof FROM coverage WHERE stream = 'index_ticks'")).toEqual([
    { proof: "rows" },
  ]);
  engine.expectMatchesService();
});
