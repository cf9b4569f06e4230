import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadSettings } from "../../../src/config/load-settings.ts";
import { streams as allStreams, hasHistory, historyStreams } from "../../../src/model/streams.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { type ServeServer, type ServeSettings, startServeServer } from "../../../src/serve/serve-server.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { ManualClock } from "../manual-clock.ts";
import { acceptAtOnce } from "../sync/backfill-harness.ts";
import { runBackfill, serviceEnv } from "../sync/sync-session.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "../warehouse/empty-warehouse.ts";

/** Every stream of every index. */
const everything = `
sync:
  ohlcv: { GWA: all, MWA: [BTC/USD], LX: all }
  intraday: { GWA: all, MWA: all, LX: all, days: 1 }
  exchangeTickers: { exchanges: all, markets: all }
`;

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
  const path = join(folder, "mds.sqlite");
  copyEmptyWarehouse(path, viewsBesideSync);
  const file = join(folder, "mds-sync.yaml");
  writeFileSync(file, everything);
  const env = { ...serviceEnv(simulator), MDS_WAREHOUSE: path };
  const loaded = acceptAtOnce(loadSettings({ env, directory: folder, file }));
  const now = clock.now() * MICROS_PER_MS;
  const streams = historyStreams;
  for (const filter of [
    { streams: allStreams.filter((stream) => !hasHistory(stream)) },
    { streams, range: { from: now - 3600 * MICROS_PER_SECOND, to: now } },
    { streams, series: ["BTC", "LUNA"] },
  ])
    await runBackfill(loaded, { clock }, filter);
  return { clock, simulator, path };
}
