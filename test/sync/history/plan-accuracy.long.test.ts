import { describe, expect, it } from "vitest";
import { toSyncSettings } from "../../../src/cli/support/session.ts";
import { loadSettings, requireServiceSettings } from "../../../src/config/load-settings.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { createServiceClient } from "../../../src/service/client/client.ts";
import type { BackfillFilter } from "../../../src/sync/history/backfill.ts";
import { estimateBackfill } from "../../../src/sync/history/estimate.ts";
import { sampleHistories } from "../../../src/sync/history/sample-histories.ts";
import { fetchDirectory } from "../../../src/sync/selection/fetch-directory.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import { Fault } from "../../simulator/faults.ts";
import type { SimulatorOptions } from "../../simulator/simulator.ts";
import {
  type BackfillHarness,
  barsOf,
  onlyTicks,
  startDenseHarness,
} from "../../support/sync/backfill-harness.ts";
import { parseTs } from "../../support/warehouse/records.ts";

const historyPaths = ["/v3/index-ticker", "/v3/ohlcv"];
const settingsFor = (days: number, names: string) =>
  `service: { concurrency: 8 }\n${onlyTicks(names, { days: `${days}`, ohlcv: barsOf(names) })}`;

/** What `mds-sync plan` says about the history streams. */
async function plan(engine: BackfillHarness, folderFile: string, filter: BackfillFilter = {}) {
  const { clock, env, path } = engine;
  const loaded = loadSettings({ env, directory: folderFile.replace(/\/[^/]*$/, ""), file: folderFile });
  const settings = toSyncSettings(loaded);
  const client = createServiceClient({
    ...requireServiceSettings(loaded),
    clock,
    random: () => 0.5,
    log: silentLog,
    onEvent: () => {},
  });
  const { signal } = new AbortController();
  const reader = openIfPresent(path);
  const now = () => Math.floor(clock.now() * 1000);
  try {
    const work = async () => {
      const directory = await fetchDirectory(settings, reader, client, now, signal);
      return estimateBackfill({
        settings,
        directory,
        reader,
        now: now(),
        filter,
        sample: (series) => sampleHistories({ client, series, concurrency: 8, signal }),
      });
    };
    const { streams } = await clock.runUntil(work());
    const history = streams.filter(({ stream }) => stream === "index_ticks" || stream === "ohlcv");
    return {
      requests: history.reduce((sum, { requests }) => sum + requests, 0),
      minutes: history.reduce((sum, { minutes }) => sum + minutes, 0),
    };
  } finally {
    reader?.close();
    await client.close();
  }
}

function openIfPresent(path: string) {
  try {
    return openReader(path);
  } catch {
    return undefined;
  }
}

const startEngine = (simulator: SimulatorOptions, days = 6) =>
  startDenseHarness({ settings: settingsFor(days, "[BTC, ETH]"), simulator });
const settingsFile = ({ path }: BackfillHarness) => path.replace(/[^/]*$/, "mds-sync.yaml");
const countRequests = ({ simulator }: BackfillHarness) =>
  historyPaths.reduce((sum, path) => sum + simulator.requests.count(path), 0);

describe("plan", () => {
  it.each<[string, SimulatorOptions]>([
    ["full and young series", { quirks: { listed: { perMille: 500, on: "2026-02-27" } } }],
    ["irregular records", { quirks: { missingPerMille: 300 } }],
  ])("H9: forecasts the requests of a backfill within 10 %%: %s", async (_, simulator) => {
    const engine = await startEngine(simulator);
    const { requests } = await plan(engine, settingsFile(engine));
    engine.simulator.requests.clear();
    await engine.run();
    const done = countRequests(engine);
    expect(Math.abs(requests - done)).toBeLessThanOrEqual(0.1 * done);
  });

  it("H9: forecasts what a run of one series and range fetches", async () => {
    const engine = await startEngine({});
    const range = { from: parseTs("2026-02-24T12:00:00Z"), to: parseTs("2026-02-28T12:00:00Z") };
    const filter = { streams: ["index_ticks"], series: ["ETH"], range } as const;
    const { requests } = await plan(engine, settingsFile(engine), filter);
    engine.simulator.requests.clear();
    await engine.run(filter);
    expect(countRequests(engine)).toBeGreaterThan(5);
    expect(Math.abs(requests - countRequests(engine))).toBeLessThanOrEqual(1);
  });

  it("H9: forecasts what is left after an interruption, and the daily look-back", async () => {
    const engine = await startEngine({ quirks: { listed: { perMille: 1000, on: "2026-02-15" } } }, 15);
    const stopping = new AbortController();
    const run = engine.run({}, stopping.signal).catch(() => {});
    while (countRequests(engine) < 30) await new Promise(setImmediate);
    stopping.abort(new Error("stopped by the test"));
    await run;
    await engine.clock.advance(86_400_000);
    const { requests } = await plan(engine, settingsFile(engine));
    engine.simulator.requests.clear();
    await engine.run();
    const done = countRequests(engine);
    expect(Math.abs(requests - done)).toBeLessThanOrEqual(0.1 * done);
  });

  it("H9: forecasts what is left of a selection that was too wide, and that alone is fetched", async () => {
    const young = { quirks: { listed: { perMille: 1000, on: "2026-02-28" } } };
    const engine = await startDenseHarness({ settings: settingsFor(10, "all"), simulator: young });
    const stopping = new AbortController();
    const stopped = engine.run({}, stopping.signal).catch(() => {});
    while (countRequests(engine) < 30) await new Promise(setImmediate);
    stopping.abort(new Error("stopped by the test"));
    await stopped;
    const gapsOfOthers = () =>
      engine.query("SELECT DISTINCT name, state FROM gaps WHERE name NOT IN ('BTC', 'ETH')");
    const rows = () =>
      engine.query("SELECT count(*) AS n FROM coverage WHERE name NOT IN ('BTC', 'ETH') AND proof = 'rows'");
    expect(gapsOfOthers().length).toBeGreaterThan(15);
    const proven = rows();

    engine.configure(settingsFor(10, "[BTC, ETH]"));
    const { requests } = await plan(engine, settingsFile(engine));
    engine.simulator.requests.clear();
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    const selected = engine.query("SELECT id FROM assets WHERE symbol IN ('BTC', 'ETH')");
    const history = engine.simulator.requests.list.filter(({ target }) =>
      /^\/v3\/(ohlcv|index-ticker)/.test(target),
    );
    const ofOthers = history.filter(({ target }) => !selected.some(({ id }) => target.includes(String(id))));
    expect(ofOthers).toEqual([]);
    expect(Math.abs(requests - history.length)).toBeLessThanOrEqual(4);
    expect(gapsOfOthers()).toEqual([]);
    expect(rows()).toEqual(proven);
    expect(Number(proven[0]?.n)).toBeGreaterThan(0);

    engine.configure(settingsFor(10, "all"));
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    engine.expectMatchesService();
  });

  it("H9: forecasts the minutes at the rate that the last backfill measured", async () => {
    // One request at a time: with more, a backfill of fifty requests is hardly at its full rate.
    const oneByOne = (days: number) => settingsFor(days, "[BTC]").replace("concurrency: 8", "concurrency: 1");
    const engine = await startDenseHarness({
      settings: oneByOne(38),
      simulator: { faults: [Fault.latency(400, { on: "/index-ticker" })] },
    });
    await engine.run();
    engine.configure(oneByOne(60));
    const { minutes } = await plan(engine, settingsFile(engine));
    const { seconds } = await engine.run();
    expect(Math.abs(minutes * 60 - seconds)).toBeLessThanOrEqual(0.1 * seconds);
  });
});
