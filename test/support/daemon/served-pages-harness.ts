import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { withSyncSession } from "../../../src/cli/support/session.ts";
import { type LoadedSettings, loadSettings } from "../../../src/config/load-settings.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { backfill } from "../../../src/sync/history/backfill.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { findFreePort } from "../free-port.ts";
import { startIngestInProcess } from "../ingest/in-process-ingest.ts";
import { seed } from "../seed.ts";
import { seededRandom } from "../seeded-random.ts";
import { acceptAtOnce } from "../sync/backfill-harness.ts";
import { serviceEnv } from "../sync/sync-session.ts";
import { waitUntil } from "../wait-until.ts";
import { queryFile } from "../warehouse/warehouse-file.ts";
import { startDaemon } from "./start-daemon.ts";

const settings = `service: { refreshSeconds: 5 }
sync:
  ohlcv: { GWA: all, MWA: none, LX: none }
  intraday: { GWA: [BTC, ETH, SOL], MWA: none, LX: none, days: 1 }
  exchangeTickers: { exchanges: all, markets: all }
  marketCap: { every: 30s }
  derivatives: { exchanges: all, types: [futures, perpetuals, options], every: 10s }
`;

function takeTickers(loaded: LoadedSettings): Promise<unknown> {
  const random = seededRandom(seed);
  const stopping = new AbortController().signal;
  const session = { clock: systemClock, stopping, random, startWorker: startIngestInProcess };
  const filter = { streams: ["exchange_ticks" as const] };
  return withSyncSession(loaded, session, silentLog, (syncContext) => backfill(syncContext, filter));
}

/** A daemon on the system clock, beside its simulator, that serves the pages to all tests of a file. */
export function serveFilledPages() {
  const folder = mkdtempSync(join(tmpdir(), "mds-sync-pages-"));
  const path = join(folder, "mds.sqlite");
  let simulator: Simulator;
  let address = "";
  let stop: () => Promise<void> = async () => {};

  const start = async (port: string) => {
    const file = join(folder, "mds-sync.yaml");
    writeFileSync(file, settings);
    const env = { ...serviceEnv(simulator), MDS_WAREHOUSE: path, MDS_HTTP_PORT: port };
    const loaded = acceptAtOnce(loadSettings({ env, directory: folder, file }));
    // The first tickers come from REST, which tells when each price last moved; the websocket might be faster.
    if (!existsSync(path)) await takeTickers(loaded);
    const daemon = startDaemon({ loaded, clock: systemClock, log: silentLog });
    stop = async () => {
      daemon.stop();
      await daemon.done.catch(() => {});
    };
    await Promise.race([waitUntil(() => daemon.state.isFilled), daemon.done]);
    address = daemon.state.address;
  };

  const query = <Row = Record<string, unknown>>(sql: string): Row[] => queryFile<Row>(path, sql);

  beforeAll(async () => {
    simulator = await startSimulator({ refreshSeconds: 5 });
    await start(String(await findFreePort()));
    const isStored = (stream: string) => query(`SELECT 1 FROM latest_${stream} LIMIT 1`).length > 0;
    await waitUntil(() => ["market_caps", "exchange_ticks", "derivative_ticks"].every(isStored), 100);
  });
  afterAll(async () => {
    await stop();
    await simulator.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  return {
    address: () => address,
    /** The rows of the warehouse itself, to compare a page with. */
    query,
    /** Stops the daemon and starts another one at the same address. */
    async restart(whileStopped = async () => {}): Promise<void> {
      await stop();
      await whileStopped();
      await start(new URL(address).port);
    },
  };
}
