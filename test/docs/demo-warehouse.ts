import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { loadSettings } from "../../src/config/load-settings.ts";
import { streams } from "../../src/model/streams.ts";
import type { Micros } from "../../src/model/time.ts";
import { keepPastRow } from "../../src/warehouse/rows/row-sql.ts";
import { recordClockSkew } from "../../src/warehouse/tables/warehouse-state.ts";
import { openWriter } from "../../src/warehouse/writer.ts";
import { type Simulator, startSimulator } from "../simulator/simulator.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { runBackfill, serviceEnv } from "../support/sync/sync-session.ts";
import { waitUntil } from "../support/wait-until.ts";
import { TEMPLATE_VARIABLE } from "../support/warehouse/empty-warehouse.ts";
import { decimal, parseTs, tick } from "../support/warehouse/records.ts";
import { retract } from "../support/warehouse/settle.ts";
import { writeRecords } from "../support/warehouse/write-records.ts";

const START = "2026-03-01T12:00:07Z";
const SECOND = 1_000_000;

const settings = `
sync:
  ohlcv: { GWA: [BTC, ETH, SOL], MWA: none, LX: none }
  intraday: { GWA: [BTC, ETH, SOL], MWA: none, LX: none, days: 2 }
  exchangeTickers: { exchanges: all, markets: [BTC/USD, ETH/USD] }
  derivatives: { exchanges: [Deribit, OKX], types: [futures, perpetuals, options] }
`;

interface DemoWarehouse {
  readonly path: string;
  /** The clock of the demo; its present is in 2026. */
  readonly clock: ManualClock;
  /** What the service served. */
  readonly oracle: Simulator["oracle"];
}

/** Copies the demo's warehouse into `folder`. The first test of a run that needs it fills it, and the others wait. */
export async function fillDemoWarehouse(folder: string): Promise<DemoWarehouse> {
  const run = process.env[TEMPLATE_VARIABLE];
  const template = join(run === undefined ? folder : dirname(run), "demo-template.sqlite");
  const clockFile = `${template}.clock`;
  const work = `${template}.work`;
  // It tells only the first one that it has made the folder.
  if (mkdirSync(work, { recursive: true }) === undefined) await waitUntil(() => existsSync(template));
  else {
    const filled = await fillTemplate(work);
    writeFileSync(clockFile, String(filled.clock.now()));
    renameSync(filled.path, template);
  }
  const path = join(folder, "demo.sqlite");
  copyFileSync(template, path);
  const clock = new ManualClock(Number(readFileSync(clockFile, "utf8")));
  setViewsClock(path, clock);
  const simulator = await startSimulator({ clock, seed: 1 });
  await simulator.stop();
  return { path, clock, oracle: simulator.oracle };
}

/**
 * The warehouse behind the cookbook's answers: two days of ticks of three assets, four months of their daily bars, two
 * snapshots of the snapshot streams. It has two defects: ETH lacks 90 minutes of 28 February, and one tick of BTC was
 * corrected an hour after the first run.
 */
async function fillTemplate(folder: string): Promise<{ path: string; clock: ManualClock }> {
  const clock = new ManualClock(START);
  const simulator = await startSimulator({ clock, seed: 1 });
  const path = join(folder, "demo.sqlite");
  try {
    const file = join(folder, "mds-sync.yaml");
    writeFileSync(file, settings);
    const loaded = loadSettings({
      directory: folder,
      file,
      env: { ...serviceEnv(simulator), MDS_WAREHOUSE: path },
    });
    // All years of daily bars would take seconds to fetch, so they get a window; a run with a window takes no snapshots.
    const daily = {
      streams: ["ohlcv"] as const,
      window: { from: parseTs("2025-11-01T00:00:00Z"), to: parseTs(START) },
    };
    const others = { streams: streams.filter((stream) => stream !== "ohlcv") };
    for (const [wait, scope] of [
      [0, daily],
      [0, others],
      [3_600_000, others],
    ] as const) {
      await clock.advance(wait);
      await runBackfill(loaded, { clock }, scope);
    }
    addDefects(path, clock);
    return { path, clock };
  } finally {
    await simulator.stop();
  }
}

function addDefects(path: string, clock: ManualClock): void {
  const warehouse = openWriter(path, { clock });
  try {
    warehouse.transaction((transaction) => {
      const idOf = (name: string) =>
        transaction
          .statement("SELECT series, index_id AS indexId FROM series WHERE index_type = 'GWA' AND name = ?")
          .get([name]) as { series: number; indexId: string };
      const { series } = idOf("ETH");
      const gap = { from: parseTs("2026-02-28T06:30:00Z"), to: parseTs("2026-02-28T08:00:00Z") };
      const lost = transaction.statement<Micros>(
        "SELECT ts FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ?",
      );
      for (const ts of lost.pluck().all([series, gap.from, gap.to]))
        keepPastRow(transaction, "index_ticks", { key: series, ts });
      transaction
        .statement("DELETE FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ?")
        .run([series, gap.from, gap.to]);
      retract(transaction, { stream: "index_ticks", series }, gap);
      const corrected = tick(parseTs("2026-02-28T12:00:00Z"), "93900.5", {
        indexId: idOf("BTC").indexId,
        volume: decimal("623317.288"),
      });
      writeRecords(transaction, "index_ticks", [corrected], "rest");
    });
  } finally {
    warehouse.close();
  }
}

/** The views read SQLite's clock; this skew turns it into the demo's clock. */
function setViewsClock(path: string, clock: ManualClock): void {
  const skew = Math.round(clock.now() / 1000) * SECOND - Math.floor(Date.now() / 1000) * SECOND;
  const warehouse = openWriter(path, { clock });
  warehouse.transaction((transaction) => recordClockSkew(transaction, skew));
  warehouse.close();
}
