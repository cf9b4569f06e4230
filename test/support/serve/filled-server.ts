import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toSyncSettings, withSyncSession } from "../../../src/cli/support/session.ts";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { streams as allStreams, hasHistory, historyStreams } from "../../../src/model/streams.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { type ServeServer, startServeServer } from "../../../src/serve/serve-server.ts";
import type { ServeSettings } from "../../../src/serve/serve-settings.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { type BackfillFilter, backfill } from "../../../src/sync/history/backfill.ts";
import { startIngestInProcess } from "../ingest/in-process-ingest.ts";
import { ManualClock } from "../manual-clock.ts";
import { seed } from "../seed.ts";
import { seededRandom } from "../seeded-random.ts";
import { acceptAtOnce } from "../sync/backfill-harness.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../warehouse/empty-warehouse.ts";

/** Every stream of every index. */
const everything = `
sync:
  ohlcv: { GWA: all, MWA: [BTC/USD], LX: all }
  intraday: { GWA: all, MWA: all, LX: all, days: 1 }
  exchangeTickers: { exchanges: all, markets: all }
`;

interface SyncFromOptions {
  readonly folder: string;
  readonly clock: ManualClock;
  readonly service: Pick<Simulator, "baseUrl" | "wsUrl" | "clientId" | "clientSecret">;
  readonly settings?: string;
  readonly filter?: BackfillFilter;
}

/** Runs one backfill from a service into `folder`, and returns the path of the warehouse. */
export async function syncFrom({
  folder,
  clock,
  service,
  settings = everything,
  filter = {},
}: SyncFromOptions) {
  const path = join(folder, "mds.sqlite");
  if (!existsSync(path)) copyEmptyWarehouse(path, viewsBesideSync);
  const file = join(folder, "mds-sync.yaml");
  writeFileSync(file, settings);
  const env = {
    MDS_BASE_URL: service.baseUrl,
    MDS_WS_URL: service.wsUrl,
    MDS_CLIENT_ID: service.clientId,
    MDS_CLIENT_SECRET: service.clientSecret,
    MDS_WAREHOUSE: path,
  };
  const loaded = acceptAtOnce(loadSettings({ env, directory: folder, file }));
  const random = seededRandom(seed);
  const stopping = new AbortController().signal;
  const report = await clock.runUntil(
    withSyncSession(
      loaded,
      { clock, stopping, random, startWorker: startIngestInProcess },
      silentLog,
      ({ syncContext, reader }) =>
        backfill(syncContext, { settings: toSyncSettings(loaded), reader, random, filter }),
    ),
  );
  return { path, report };
}

/** Serves a warehouse on a free port of this machine. */
export function serveWarehouse(
  warehouse: string,
  clock: ManualClock,
  settings: Partial<ServeSettings> = {},
): Promise<ServeServer> {
  return startServeServer({
    warehouse,
    host: "127.0.0.1",
    port: 0,
    clients: [],
    tls: {},
    behindProxy: false,
    version: "1.2.3",
    clock,
    log: silentLog,
    ...settings,
  });
}

/** A simulator on a manual clock, and a warehouse with the last hour of every index, and more of BTC and LUNA. */
export async function startFilledWarehouse(folder: string, start: string) {
  const clock = new ManualClock(start);
  const simulator = await startSimulator({ clock });
  const now = clock.now() * MICROS_PER_MS;
  const sync = (filter: BackfillFilter) => syncFrom({ folder, clock, service: simulator, filter });
  const streams = historyStreams;
  await sync({ streams: allStreams.filter((stream) => !hasHistory(stream)) });
  await sync({ streams, range: { from: now - 3600 * MICROS_PER_SECOND, to: now } });
  const { path } = await sync({ series: ["BTC", "LUNA"], streams });
  return { clock, simulator, path };
}
