import { expect, it } from "vitest";
import { createDaemonHarness } from "../../support/daemon/daemon-harness.ts";

it("market caps polled more often than the service refreshes them are covered without a gap", async () => {
  const daemon = await createDaemonHarness({
    settings: `sync: { ohlcv: false, exchangeTickers: false, derivatives: false, marketCap: { every: 30s },
      intraday: false }`,
  });
  const { clock } = daemon;
  const running = await daemon.startFilled();
  const startedAt = clock.now();
  await running.runUntil(() => clock.now() > startedAt + 33 * 60_000);
  const covered = daemon.query("SELECT from_ts, to_ts, proof FROM coverage WHERE stream = 'market_caps'");
  expect(covered).toHaveLength(1);
  expect(covered[0]?.proof).toBe("rows");
  expect(clock.now() * 1000 - Number(covered[0]?.to_ts)).toBeLessThan(60e6);
  expect(daemon.query("SELECT count(DISTINCT ts) AS n FROM market_caps")[0]?.n).toBeLessThan(9);
  await running.stop();
  daemon.expectMatchesService();
});
