import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { extent, intersect } from "../../src/model/time-range.ts";
import { expectTruth } from "../support/sync/oracle.ts";
import { expectObserved, indexDifference } from "./daemon-oracle.ts";
import { type Daemon, Scene } from "./daemon-process.ts";

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

/** A second of ours is half a minute of theirs: the service's cadence of 30 s, and every deadline of the daemon, as in real life. */
const scene = new Scene({ factor: 30 });
let daemon: Daemon;
/** When nothing at all could be asked of the service, by the scene's clock. */
const outages: { from: number; to: number }[] = [];

async function startDaemon(): Promise<void> {
  daemon = scene.startDaemon();
  const look = () => {
    if (daemon.child.exitCode !== null) throw new Error(`the daemon ended with ${daemon.child.exitCode}`);
    return /filled: /.test(daemon.stderr()) ? true : undefined;
  };
  await scene.until("what was missing is filled", look, 2_700).catch((error) => {
    throw new Error(`${String(error)}\n${daemon.stderr()}`);
  });
}

/** Without any help the daemon comes to hold what the service has since `since`, and goes on holding what is new. */
async function expectHealed(since: number): Promise<void> {
  const upTo = Math.floor(scene.now() / TICK_MS + 1) * TICK_MS;
  let difference: string | undefined = "nothing was compared";
  const look = () => {
    if (scene.now() < upTo + TICK_MS / 2) return undefined;
    difference = scene.read((reader) =>
      indexDifference(reader, scene.world.truth, since - TICK_MS, upTo + TICK_MS),
    );
    return difference === undefined ? true : undefined;
  };
  await scene.until("the warehouse equals the truth", look, 600).catch((error) => {
    throw new Error(`${String(error)}: ${difference}\n${daemon.stderr()}`);
  });
}

/** Lets the fault begin and waits until another connection has been opened. */
async function untilReconnected(begin: () => Promise<unknown>): Promise<void> {
  const before = await scene.connections();
  await begin();
  const look = async () => ((await scene.connections()) > before ? true : undefined);
  await scene.until("a new connection", look, 900).catch((error) => {
    throw new Error(`${String(error)}\n${daemon.stderr()}`);
  });
}

beforeAll(async () => {
  scene.writeSettings(settings);
  await scene.openService();
  await startDaemon();
}, 120_000);
afterAll(() => scene.close());

describe("a daemon, left to itself, comes to hold the truth again", () => {
  it("when the socket is dropped and refused for two minutes", async () => {
    const since = scene.now();
    await untilReconnected(async () => {
      await scene.control("POST", "faults", "ws drop-connection 1006 on=tick total=1\nws upgrade-status 503");
      await scene.pass(120);
      await scene.control("POST", "faults", "");
    });
    await expectHealed(since);
  });

  it("when the socket stays open, answers every PING, and sends no tick", async () => {
    const since = scene.now();
    await untilReconnected(() => scene.control("POST", "faults", "ws mute on=tick total=1"));
    await scene.control("POST", "faults", "");
    await expectHealed(since);
  });

  it("when the service stands still with its connections open", async () => {
    const since = scene.now();
    scene.service.kill("SIGSTOP");
    await scene.pass(120);
    scene.service.kill("SIGCONT");
    outages.push({ from: since, to: scene.now() });
    await expectHealed(since);
  });

  it("when every token is revoked and the socket dropped", async () => {
    const since = scene.now();
    await scene.control("POST", "revoke");
    await untilReconnected(() => scene.control("POST", "faults", "ws drop-connection 1006 on=tick total=1"));
    await expectHealed(since);
  });

  it("when its wall clock jumps a day ahead, and then a day behind", async () => {
    const since = scene.now();
    scene.stepWall(daemon, DAY_MS);
    await scene.pass(45);
    await expectHealed(since);
    scene.stepWall(daemon, -DAY_MS);
    await scene.pass(45);
    await expectHealed(since);
  });

  it("when it is killed and started again two minutes later", async () => {
    const since = scene.now();
    daemon.child.kill("SIGKILL");
    expect(await daemon.ended).toBe(null);
    await scene.pass(120);
    outages.push({ from: since, to: scene.now() });
    await startDaemon();
    await expectHealed(since);
  });
});

describe("after all of that", () => {
  it("a second daemon on the same file is refused in one line", async () => {
    const second = scene.startDaemon();
    expect(await second.ended).toBe(75);
    const lines = second.stderr().trim().split("\n");
    expect(lines.at(-1)).toMatch(/^mds-sync: another mds-sync writes .*mds\.sqlite \(pid \d+/);
  });

  it("streams with history equal the truth, and every missed second of the others is a gap", async () => {
    const end = scene.now();
    daemon.child.kill("SIGTERM");
    expect(await daemon.ended).toBe(0);
    const { truth } = scene.world;
    scene.read((reader) => {
      // Each line is confirmed at a moment of its own: as of the first of them all are.
      const claimed = reader
        .statement(
          `SELECT min(reached) FROM (SELECT max(s.to_ts) + w.settle_delay AS reached FROM settled_ranges s
            JOIN wanted_ranges w ON w.stream = s.stream AND w.series = s.series
            WHERE s.stream = 'index_ticks' GROUP BY s.series)`,
        )
        .pluck()
        .get() as number;
      expect(claimed).toBeGreaterThan((outages.at(-1)?.to ?? 0) * 1000);
      const { rows } = expectTruth(reader, scene.world, scene.now(), claimed);
      expect(rows).toBeGreaterThan(5 * 2880);
      expect(indexDifference(reader, truth, outages[0]?.from ?? 0, end - TICK_MS)).toBe(undefined);
      const future = "SELECT count(*) FROM index_ticks WHERE ts > ?";
      expect(
        reader.database
          .prepare(future)
          .pluck()
          .get(end * 1000),
      ).toBe(0);

      const observed = expectObserved(reader, truth, end);
      expect(observed.map(({ line }) => line).sort()).toEqual([
        "derivative_ticks Deribit",
        "exchange_ticks Kraken",
        "market_caps all",
      ]);
      const tickers = observed.find(({ line }) => line.startsWith("exchange_ticks"));
      for (const { from, to } of outages) {
        const missed = extent(intersect(tickers?.lost ?? [], [{ from: from * 1000, to: to * 1000 }]));
        expect(missed / 1_000_000).toBeGreaterThanOrEqual(30);
      }
      // The observations are what is lost around the faults, not everything.
      const lost = extent(tickers?.lost ?? []) / (30 * 1_000_000);
      expect(lost).toBeLessThan((tickers?.periods ?? 0) / 2);
    });
  });
});
