import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { intersect, totalDuration } from "../../src/model/time-range.ts";
import { expectWarehouseMatches, readCoveredUntil } from "../support/sync/oracle.ts";
import { expectSnapshotGapsCorrect, findIndexDifference } from "./daemon-oracle.ts";
import { AcceleratedScene, type DaemonProcess } from "./daemon-process.ts";

const settings = `sync:
  ohlcv: { GWA: [BTC], MWA: none, LX: none }
  intraday: { GWA: [BTC, ETH], MWA: none, LX: all, days: 1 }
  exchangeTickers: { exchanges: [Kraken], markets: all }
  marketCap: { every: 5m }
  derivatives: { exchanges: [Deribit], types: [perpetuals], every: 1m }
http: { port: 0 }
`;
const TICK_MS = 30_000;
const DAY_MS = 86_400_000;
/** The faults of the first group below. */
const FAULTS = 4;
/** Until the fault is noticed and polling has begun. */
const MAX_LOST_PERIODS_PER_FAULT = 3;

/** One real second is 30 scenario seconds. The cadence and all timeouts of the daemon are the real ones. */
const scene = new AcceleratedScene({ factor: 30 });
let daemon: DaemonProcess;
/** Periods (scenario time) in which the service could not be reached at all. */
const outages: { from: number; to: number }[] = [];

async function startDaemon(): Promise<void> {
  daemon = scene.startDaemon();
  const look = () => {
    if (daemon.child.exitCode !== null) throw new Error(`the daemon ended with ${daemon.child.exitCode}`);
    return /filled: /.test(daemon.stderr()) ? true : undefined;
  };
  await scene.waitFor("gaps filled", look, 2_700).catch((error) => {
    throw new Error(`${String(error)}\n${daemon.stderr()}`);
  });
}

/** Waits until all index ticks since `since` equal the service's, including the next tick after now. */
async function expectHealed(since: number): Promise<void> {
  const upTo = Math.floor(scene.now() / TICK_MS + 1) * TICK_MS;
  let difference: string | undefined = "nothing compared";
  const look = () => {
    if (scene.now() < upTo + TICK_MS / 2) return undefined;
    difference = scene.withReader((reader) =>
      findIndexDifference(reader, scene.data.oracle, since - TICK_MS, upTo + TICK_MS),
    );
    return difference === undefined ? true : undefined;
  };
  await scene.waitFor("the warehouse equals the service", look, 600).catch((error) => {
    throw new Error(`${String(error)}: ${difference}\n${daemon.stderr()}`);
  });
}

beforeAll(async () => {
  scene.writeSettings(settings);
  await scene.startService();
  await startDaemon();
});
afterAll(() => scene.close());

describe("a daemon matches the service again", () => {
  it("after the service froze with open connections", async () => {
    const since = scene.now();
    scene.signalService("SIGSTOP");
    await scene.advance(120);
    scene.signalService("SIGCONT");
    outages.push({ from: since, to: scene.now() });
    await expectHealed(since);
  });

  it("G2: after it was stopped by SIGSTOP for two minutes", async () => {
    const since = scene.now();
    daemon.child.kill("SIGSTOP");
    await scene.advance(120);
    daemon.child.kill("SIGCONT");
    await expectHealed(since);
  });

  it("after its wall clock jumped a day ahead, and then a day back", async () => {
    const since = scene.now();
    scene.stepWallClock(daemon, DAY_MS);
    await scene.advance(45);
    await expectHealed(since);
    scene.stepWallClock(daemon, -DAY_MS);
    await scene.advance(45);
    await expectHealed(since);
  });

  it("after it was killed and started again two minutes later", async () => {
    const since = scene.now();
    daemon.child.kill("SIGKILL");
    expect(await daemon.ended).toBe(null);
    await scene.advance(120);
    outages.push({ from: since, to: scene.now() });
    await startDaemon();
    await expectHealed(since);
  });
});

it("after all these faults, history streams equal the service, and every missed second of snapshot streams is a gap", async () => {
  const end = scene.now();
  await expectHealed(outages[0]?.from ?? end);
  daemon.child.kill("SIGTERM");
  expect(await daemon.ended).toBe(0);
  const endedAt = scene.now();
  const { oracle } = scene.data;
  scene.withReader((reader) => {
    const coveredUntil = readCoveredUntil(reader);
    expect(coveredUntil).toBeGreaterThan((outages.at(-1)?.to ?? 0) * 1000);
    const { rows } = expectWarehouseMatches(reader, scene.data, scene.now(), coveredUntil);
    expect(rows).toBeGreaterThan(5 * 2880);
    expect(findIndexDifference(reader, oracle, outages[0]?.from ?? 0, end - TICK_MS)).toBe(undefined);
    const future = "SELECT count(*) FROM index_ticks WHERE ts > ?";
    expect(reader.value(future, [endedAt * 1000])).toBe(0);

    const snapshots = expectSnapshotGapsCorrect(reader, oracle, end);
    expect(snapshots.map(({ label }) => label).sort()).toEqual([
      "derivative_ticks Deribit",
      "exchange_ticks Kraken",
      "market_caps all",
    ]);
    const tickers = snapshots.find(({ label }) => label.startsWith("exchange_ticks"));
    for (const { from, to } of outages) {
      const missed = totalDuration(intersect(tickers?.lost ?? [], [{ from: from * 1000, to: to * 1000 }]));
      expect(missed / 1_000_000).toBeGreaterThanOrEqual(30);
    }
    // Only the outages and a few periods after each fault are lost, not everything.
    const lost = totalDuration(tickers?.lost ?? []) / (TICK_MS * 1000);
    const outagePeriods = outages.reduce((sum, { from, to }) => sum + (to - from) / TICK_MS, 0);
    expect(lost).toBeLessThan(outagePeriods + MAX_LOST_PERIODS_PER_FAULT * FAULTS);
  });
});
