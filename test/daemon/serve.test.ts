import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { normalise, subtract } from "../../src/model/time-range.ts";
import { createDaemonHarness } from "../support/daemon/daemon-harness.ts";
import { serveWarehouse } from "../support/serve/filled-server.ts";
import { expectSoundFile } from "../support/warehouse/expect-sound-ledger.ts";

const HOUR = 3_600_000_000;
const settings = `
serve: { port: 0 }
service: { refreshSeconds: 120 }
sync:
  ohlcv: { GWA: none, MWA: [SOL/USD], LX: none }
  intraday: { GWA: [BTC, LIBRA], MWA: none, LX: all, days: 1 }
  exchangeTickers: { exchanges: [Kraken], markets: [BTC/USD] }
  marketCap: false
  derivatives: false
`;

it("J1: the daemon with a section `serve` serves its own warehouse until it stops, and a second daemon syncs from it as from the service", async () => {
  const harness = await createDaemonHarness({ settings, simulator: { refreshSeconds: 120 } });
  const origin = await harness.startFilled();
  const address = harness.logged.find(({ message }) => message === "serving the warehouse")?.fields.address;
  const answer = await fetch(`${address}/v3/index-ticker?indexType=LX`);
  const { content } = (await answer.json()) as { content: { indexType: string }[] };
  expect(content.map(({ indexType }) => indexType)).toEqual(["LX", "LX", "LX"]);
  // In this thread: a thread of the daemon's own would have the clock of the machine.
  const server = await serveWarehouse(harness.path, harness.clock);
  onTestFinished(() => server.close());
  harness.configure(settings.replace(/^serve: .*/m, ""));
  const copy = join(harness.folder, "copy.sqlite");
  const second = await harness.startFilled(copy, {
    baseUrl: server.baseUrl,
    wsUrl: server.wsUrl,
    clientId: "second",
    clientSecret: "second",
  });
  const start = harness.clock.now() * 1000;
  /** The ticks of a day before the start up to `until`, as text: a difference of thousands of objects is unreadable. */
  const history = (until: number, file?: string) =>
    harness
      .query(
        `SELECT s.index_type, s.index_id, r.ts, r.price, r.volume, r.tick_volume, r.details FROM index_tick_rows r
        JOIN series s USING (series) WHERE r.ts >= ${start - 24 * HOUR} AND r.ts < ${until} ORDER BY 1, 2, 3`,
        file,
      )
      .map((row) => JSON.stringify(row));
  const settled = start - HOUR / 6;
  expect(history(settled).length).toBeGreaterThan(2_500);
  expect(history(settled, copy).join("\n") === history(settled).join("\n")).toBe(true);
  const proven = (file?: string) => {
    const sql = "SELECT from_ts, to_ts FROM coverage WHERE stream = 'index_ticks' AND name = 'BTC'";
    const rows = harness.query(sql, file) as { from_ts: number; to_ts: number }[];
    return normalise(rows.map(({ from_ts, to_ts }) => ({ from: from_ts, to: to_ts })));
  };
  const day = { from: start - 23 * HOUR, to: settled };
  expect(subtract([day], proven(copy))).toEqual([]);
  expect(subtract([day], proven())).toEqual([]);
  // Ticks after the start reach the second daemon live; REST confirms them later.
  const count = "SELECT count(*) AS n FROM index_tick_rows WHERE source = 1 AND ts > ";
  await second.runUntil(() => Number(harness.query(`${count}${start}`, copy)[0]?.n) >= 8);
  const end = start + 240_000_000;
  await second.runUntil(
    () =>
      harness.query(
        `SELECT 1 FROM settled_ranges g JOIN series s USING (series) WHERE g.stream = 'index_ticks' AND s.name = 'BTC'
        AND g.proof = 'rows' AND g.to_ts >= ${end}`,
        copy,
      ).length > 0,
  );
  expect(history(end, copy).slice(-8)).toEqual(history(end).slice(-8));
  await second.stop();
  expectSoundFile(copy, harness.clock.now());
  await origin.stop();
  await expect(fetch(`${address}/v3/asset`)).rejects.toThrow();
});
