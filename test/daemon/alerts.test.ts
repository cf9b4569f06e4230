import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { Fault } from "../simulator/faults.ts";
import {
  createDaemonHarness,
  type DaemonHarness,
  type RunningDaemon,
} from "../support/daemon/daemon-harness.ts";
import { hasTool } from "../support/has-tool.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const rules = resolve(import.meta.dirname, "../../config/prometheus-alerts.yaml");
const usedMetrics = new Set(readFileSync(rules, "utf8").match(/\bmds_sync_\w+/g));

const STEP_MINUTES = 2;

/** What Prometheus would have scraped, every two minutes. Its time begins at 0, as promtool's does. */
class Scrapes {
  readonly #samples = new Map<string, string[]>();
  readonly #daemon: DaemonHarness;
  readonly #startMs: number;
  #count = 0;

  constructor(daemon: DaemonHarness) {
    this.#daemon = daemon;
    this.#startMs = daemon.clock.now();
  }

  async record(running: RunningDaemon, minutes: number): Promise<void> {
    for (const end = this.#count + minutes / STEP_MINUTES; this.#count < end; ) {
      const at = this.#startMs + this.#count * STEP_MINUTES * 60_000;
      const { clock } = this.#daemon;
      if (at > clock.now()) await clock.runUntil(clock.sleep(at - clock.now()));
      this.#add((await this.#scrape(running)).text);
    }
  }

  async readOpen(running: RunningDaemon): Promise<number> {
    const { text } = await this.#scrape(running);
    return Number(/open_ranges\{stream="index_ticks"\} (\d+)/.exec(text)?.[1]);
  }

  /** The views take the present from SQLite, which knows the manual clock only as a skew. */
  #scrape(running: RunningDaemon) {
    const { path, clock } = this.#daemon;
    const database = new Database(path);
    database.exec(
      `UPDATE warehouse_state SET clock_skew = ${clock.now() * 1000} - CAST(unixepoch('subsec') * 1000000 AS INTEGER)`,
    );
    database.close();
    return running.getPage("/metrics");
  }

  #add(exposition: string): void {
    for (const line of exposition.split("\n")) {
      const [, name = "", labels = "", value = ""] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (!usedMetrics.has(name)) continue;
      const series = `${name}{instance="a",job="mds-sync"${labels && `,${labels}`}}`;
      const values = this.#samples.get(series) ?? [];
      this.#samples.set(series, values);
      while (values.length < this.#count) values.push("_");
      const seconds = Number(value) - this.#startMs / 1000;
      values.push(/time(stamp)?_seconds$/.test(name) && value !== "NaN" ? String(seconds) : value);
    }
    this.#count++;
  }

  /** The alerts that fired at any time, if the last scrape is repeated for so many hours. */
  firedAfter(hours: number): string[] {
    const more = (hours * 60) / STEP_MINUTES;
    const inputs = [...this.#samples].map(([series, values]) => {
      // A series that is gone is not repeated. The notation of promtool has no NaN or Inf times a number.
      const last = values.length === this.#count ? (values.at(-1) ?? "") : "stale";
      // The service goes on answering.
      const step = series.startsWith("mds_sync_last_answer_") ? STEP_MINUTES * 60 : 0;
      const repeated = Array.from({ length: more }, (_, at) =>
        step > 0 ? String(Number(last) + (at + 1) * step) : last,
      );
      return { series, values: [...values, ...repeated].join(" ") };
    });
    const end = `${(this.#count + more) * STEP_MINUTES}m`;
    const expr = `count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[${end}]))`;
    const test = {
      interval: `${STEP_MINUTES}m`,
      input_series: inputs,
      promql_expr_test: [{ eval_time: end, expr, exp_samples: [] }],
    };
    const file = join(temporaryFolder(), "alerts.json");
    writeFileSync(file, JSON.stringify({ rule_files: [rules], evaluation_interval: "5m", tests: [test] }));
    const env = { ...process.env, GOGC: "off" };
    const { status, ...output } = spawnSync("promtool", ["test", "rules", file], { encoding: "utf8", env });
    const text = output.stdout + output.stderr;
    const fired = [...text.matchAll(/\{alertname="MdsSync(\w+)"\}/g)].map(([, name = ""]) => name);
    // It lists what fired beside the empty list that it expects.
    if (fired.length === 0) expect(status, text).toBe(0);
    return fired.sort();
  }
}

const settings = `
sync:
  ohlcv: { GWA: [BTC], MWA: none, LX: none }
  intraday: { GWA: [BTC], MWA: none, LX: all, days: 1 }
  exchangeTickers: { exchanges: all, markets: [BTC/USD] }
  marketCap: { every: 5m }
  derivatives: false
`;

describe("the alerts on the metrics of a running daemon", () => {
  it("leave a deselected stream and the time between two lookups alone, but not an outage", async () => {
    if (!hasTool("promtool", "the alerts on a selection of daily bars")) return;
    const daemon = await createDaemonHarness({ settings: settings.replace("LX: all", "LX: none") });
    await (await daemon.startFilled()).stop();
    daemon.configure(`
sync: { lookups: { every: 30m }, ohlcv: { GWA: [BTC], MWA: none, LX: none }, intraday: false, exchangeTickers: false, marketCap: false, derivatives: false }
`);
    const running = await daemon.startFilled();
    const scrapes = new Scrapes(daemon);
    await scrapes.record(running, 28);
    expect(scrapes.firedAfter(0)).toEqual([]);
    expect(await running.readMetric('newest_age_seconds{stream="ohlcv"}')).toBeGreaterThan(0);
    daemon.simulator.setFaults(Fault.status(503));
    await scrapes.record(running, 30);
    expect(scrapes.firedAfter(0)).toEqual(["ServiceUnreachable", "Stuck"]);
  });

  it("name exports that fail each time, a feed that is down and a gap that stays, but no gaps that come and go", async () => {
    if (!hasTool("promtool", "the alerts on a selection of ticks")) return;
    const daemon = await createDaemonHarness({
      settings: `${settings}schedule: { nightly: "", export: "5 * * * *", exportTo: /dev/null/export }`,
    });
    // A gap of a day that cannot be filled.
    daemon.simulator.setFaults(Fault.status(500, { on: "/index-ticker", query: { indexType: "GWA" } }));
    const running = await daemon.startServing();
    const stuck = new Scrapes(daemon);
    await stuck.record(running, 8);
    expect(stuck.firedAfter(8)).toEqual(["GapsStayOpen", "JobFailing", "StreamFailing"]);

    daemon.simulator.setFaults();
    await running.runUntil(running.isFilled);
    await running.runUntil(async () => (await stuck.readOpen(running)) === 0);
    // Some young gap is open whenever Prometheus looks.
    daemon.simulator.setFaults(
      Fault.status(500, { on: "/index-ticker", query: { indexType: "GWA" } }),
      Fault.missingTick({ query: { indexType: "GWA" } }),
    );
    const young = new Scrapes(daemon);
    await young.record(running, 6);
    expect(await young.readOpen(running)).toBeGreaterThan(0);
    expect(young.firedAfter(8)).not.toContain("GapsStayOpen");

    daemon.simulator.setFaults(Fault.upgradeStatus(503), Fault.dropConnection({ when: "tick" }));
    const cut = new Scrapes(daemon);
    await cut.record(running, 4);
    expect(cut.firedAfter(1)).toContain("FeedDown");
  });
});
