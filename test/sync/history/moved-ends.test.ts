import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import {
  type BackfillHarness,
  onlyTicks,
  startBackfillHarness,
} from "../../support/sync/backfill-harness.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const settings = onlyTicks("[BTC, ETH]", { days: "2" });
/** Ticks every two minutes: the ends are of the same days, with a quarter of the rows. */
const options = { settings, simulator: { refreshSeconds: 120 }, mustRepeatClaims: true };
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** BTC is served for no longer than this, as of now. */
function setRetention(engine: BackfillHarness, hours: number): void {
  const btc = engine.simulator.universe.assets.find(({ symbol }) => symbol === "BTC")?.id;
  engine.simulator.setFaults(
    Fault.retention(hours * 3_600_000, { on: "/index-ticker", query: { indexId: btc } }),
  );
}

const countRows = (engine: BackfillHarness) =>
  engine.query("SELECT count(*) AS n FROM index_ticks WHERE name = 'BTC'")[0]?.n;
const coverage = (engine: BackfillHarness) =>
  engine.query(`SELECT substr(from_time, 6, 11) AS since, substr(to_time, 6, 11) AS until, proof, reason
    FROM coverage WHERE name = 'BTC' ORDER BY from_ts`);

describe("H14: the service drops its oldest records", () => {
  it("H14: rows and coverage stay, and verify tells of it without an alarm", async () => {
    const engine = await startBackfillHarness(options);
    await engine.run();
    const [rows, before] = [countRows(engine), coverage(engine)];
    setRetention(engine, 6);
    for (let night = 0; night < 2; night++) {
      const verified = await engine.verify();
      expect(verified).toMatchObject({ differences: [], problems: [], unserved: [{ name: "BTC" }] });
      expect(Number(verified.unserved[0]?.rows)).toBeGreaterThan(1200);
    }
    expect(countRows(engine)).toBe(rows);
    expect(coverage(engine)).toEqual(before);
    expect(engine.query("SELECT * FROM revisions")).toEqual([]);
  });

  const oldDay = { from: parseTs("2026-02-27T12:01:00Z"), to: parseTs("2026-02-28T12:00:00Z") };
  async function startWithOpenRange(): Promise<BackfillHarness> {
    const engine = await startBackfillHarness(options);
    await engine.run({ range: oldDay });
    setRetention(engine, 6);
    return engine;
  }
  it("H14: what was not fetched is lost once enough answers agree, and the rows below stay", async () => {
    const engine = await startWithOpenRange();
    const first = await engine.run();
    expect(first).toMatchObject({ exit: 4, problems: [{ what: "GWA BTC", code: "withdrawal_unconfirmed" }] });
    const rows = Number(countRows(engine));
    // Only what is below the end is in doubt.
    expect(coverage(engine).at(-1)).toMatchObject({ since: "03-01T06:02", proof: "rows" });
    await engine.clock.advance(HOUR_MS);
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    expect(Number(countRows(engine))).toBeGreaterThan(rows);
    expect(engine.query("SELECT * FROM revisions")).toEqual([]);
    expect(coverage(engine).slice(1)).toMatchObject([
      { proof: "rows" },
      { since: "02-28T12:00", proof: "lost", reason: "no longer served" },
      { proof: "rows" },
    ]);
    expect(
      engine.logged.filter(({ message }) => message === "service dropped its oldest records"),
    ).toHaveLength(1);

    // It serves them again: what was lost is fetched.
    engine.simulator.setFaults();
    await engine.verify();
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
  });

  it("H14: verify with accept believes it at once", async () => {
    const engine = await startWithOpenRange();
    expect((await engine.run()).exit).toBe(4);
    expect(await engine.verify({ acceptsWithdrawals: true })).toMatchObject({ problems: [] });
    const proofs = () => coverage(engine).map(({ since, proof, reason }) => [since, proof, reason]);
    const accepted = [
      ["02-27T12:00", "lost", "no longer served"],
      ["02-27T12:01", "rows", null],
      ["02-28T12:00", "lost", "no longer served"],
      ["03-01T06:02", "rows", null],
    ];
    expect(proofs()).toEqual(accepted);
    expect((await engine.run()).exit).toBe(0);
    expect(proofs()).toEqual(accepted);
  });

  it("H14: a series of which nothing is served any more keeps its rows, and is quiet after three nights", async () => {
    const engine = await startBackfillHarness({ ...options, settings: onlyTicks("[BTC, ETH]") });
    await engine.run();
    const rows = countRows(engine);
    setRetention(engine, 0);
    const exits: number[] = [];
    for (let night = 0; night < 4; night++) {
      await engine.clock.advance(DAY_MS);
      exits.push((await engine.run()).exit);
    }
    expect(exits).toEqual([4, 4, 0, 0]);
    expect(countRows(engine)).toBe(rows);
    expect(coverage(engine).at(-1)).toMatchObject({ proof: "empty" });
    expect(await engine.verify()).toMatchObject({ differences: [], problems: [] });
  });
});
