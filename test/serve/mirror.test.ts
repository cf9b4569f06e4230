import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { MICROS_PER_MS, MICROS_PER_SECOND } from "../../src/model/time.ts";
import type { ServeServer } from "../../src/serve/serve-server.ts";
import { type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { openWriter } from "../../src/warehouse/writer.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { findFreePort } from "../support/free-port.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { serveWarehouse, syncFrom } from "../support/serve/filled-server.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { expectSoundFile } from "../support/warehouse/expect-sound-ledger.ts";
import { queryRows } from "../support/warehouse/open-warehouse.ts";
import { parseTs, tick } from "../support/warehouse/records.ts";

const settings = `
sync:
  ohlcv: { GWA: [LUNA, LIBRA], MWA: [SOL/USD], LX: none }
  intraday: { GWA: [BTC, LIBRA], MWA: none, LX: [BLX], days: DAYS }
  derivatives: false
`;
const HOUR = 3600 * MICROS_PER_SECOND;

/** Rows and ledger of the history streams, by the service's own ids. */
function readHistory(path: string, { withHead = false } = {}) {
  const database = new Database(path, { readonly: true });
  const all = (sql: string) => database.prepare(sql).raw().all() as unknown[][];
  const join = (table: string) => `FROM ${table} r JOIN series s USING (series)`;
  const ofLedger = (condition: string) =>
    all(`SELECT r.stream, s.index_type, s.index_id, r.from_ts, r.to_ts, r.proof, r.reason ${join("settled_ranges")}
      WHERE r.stream IN ('index_ticks', 'ohlcv') ${condition} ORDER BY 1, 2, 3, 4`);
  const covered = `EXISTS (SELECT 1 FROM settled_ranges g WHERE g.stream = 'index_ticks' AND g.series = r.series
    AND g.from_ts <= r.ts AND g.to_ts > r.ts AND g.proof <> 'lost')`;
  const result = {
    ticks: all(`SELECT s.index_type, s.index_id, r.ts, r.price, r.volume, r.tick_volume, r.source, r.details
      ${join("index_tick_rows")} WHERE ${withHead ? "1" : covered} ORDER BY 1, 2, 3`),
    bars: all(`SELECT s.index_type, s.index_id, r.day, r.open, r.high, r.low, r.close, r.volume, r.volume_usd, r.vwap, r.twap,
      r.record_id, r.details ${join("daily_bar_rows")} ORDER BY 1, 2, 3`),
    ledger: ofLedger(""),
    lookups: ["assets", "market_rows", "exchanges"].map((table) =>
      all(`SELECT id FROM ${table} ORDER BY id`),
    ),
  };
  database.close();
  return result;
}

async function startOrigin(
  days: number,
  { settings: text = settings, ...simulatorOptions }: SimulatorOptions & { settings?: string } = {},
) {
  const withDays = (count: number) => text.replace("DAYS", String(count));
  const clock = new ManualClock("2026-03-01T12:00:07Z");
  const simulator = await startSimulator({ clock, ...simulatorOptions });
  onTestFinished(() => simulator.stop());
  const root = temporaryFolder();
  const folder = (name: string) => {
    mkdirSync(join(root, name), { recursive: true });
    return join(root, name);
  };
  const servers: ServeServer[] = [];
  onTestFinished(async () => {
    for (const server of servers) await server.close();
  });
  const serve = async (path: string, port?: number) => {
    const server = await serveWarehouse(path, clock, { port: port ?? (await findFreePort()) });
    servers.push(server);
    return server;
  };
  const mirror = async (
    name: string,
    server: ServeServer,
    more: { settings?: string; mustConfirm?: boolean } = {},
  ) => {
    const service = {
      ...server,
      baseUrl: server.baseUrl,
      wsUrl: server.wsUrl,
      clientId: "m",
      clientSecret: "m",
    };
    const result = await syncFrom({ folder: folder(name), clock, service, settings: withDays(200), ...more });
    expectSoundFile(result.path, clock.now());
    return result;
  };
  const sync = (filter = {}, mustConfirm = false) =>
    syncFrom({
      folder: folder("origin"),
      clock,
      service: simulator,
      settings: withDays(days),
      filter,
      mustConfirm,
    });
  return { clock, simulator, serve, mirror, sync };
}

describe("a mirror", () => {
  it("of a mirror ends equal to the origin: rows, ledger and lookups", async () => {
    const { serve, mirror, sync } = await startOrigin(1, { quirks: { missingPerMille: 3 } });
    const origin = await sync();
    const first = await mirror("first", await serve(origin.path));
    const second = await mirror("second", await serve(first.path));
    const expected = readHistory(origin.path);
    expect(expected.ticks.length).toBeGreaterThan(5_000);
    expect(readHistory(first.path)).toEqual(expected);
    expect(readHistory(second.path)).toEqual(expected);
  });

  it("of a young origin is right at once, and settles what the service has still to repeat when the origin does", async () => {
    const { clock, serve, mirror, sync } = await startOrigin(1, {
      settings: settings.replaceAll(", LIBRA", ""),
    });
    const origin = await sync({}, true);
    const server = await serve(origin.path);
    const exits = [];
    // The mirror asks more often than the service has answered the origin: that proves nothing.
    for (let night = 0; night < 3; night++) {
      const copy = await mirror("mirror", server, { mustConfirm: true });
      exits.push(copy.report.exit);
      expect(readHistory(copy.path)).toEqual(readHistory(origin.path));
      await clock.advance(3_600_000);
    }
    expect(exits).toEqual([0, 0, 0]);
    const isEnd = (row: readonly unknown[]) => row.at(-1) === "nothing older";
    expect(readHistory(origin.path).ledger.some(isEnd)).toBe(false);
    await sync({}, true);
    expect(readHistory(origin.path).ledger.filter(isEnd).length).toBeGreaterThan(0);
    const copy = await mirror("mirror", server, { mustConfirm: true });
    expect(copy.report.exit).toBe(0);
    expect(readHistory(copy.path)).toEqual(readHistory(origin.path));
  });

  it("J1: keeps open what the origin has not filled, and fills it later; the origin is killed and restarted meanwhile", async () => {
    const { clock, serve, mirror, sync } = await startOrigin(2, {
      settings: settings.replaceAll(", LIBRA", ""),
    });
    const now = clock.now() * MICROS_PER_MS;
    // The origin has the last six hours, and four hours of yesterday.
    await sync({ range: { from: now - 6 * HOUR, to: now } });
    const origin = await sync({ range: { from: now - 30 * HOUR, to: now - 26 * HOUR } });
    const server = await serve(origin.path);
    const partly = await mirror("mirror", server);
    expect(partly.report.exit).toBe(4);
    expect(readHistory(partly.path)).toEqual(readHistory(origin.path));

    await sync();
    await server.close();
    const port = Number(new URL(server.baseUrl).port);
    const down = mirror("mirror", server).catch((error: unknown) => error);
    // The mirror finds nobody, and retries until the origin is back.
    await serve(origin.path, port);
    await down;
    const whole = await mirror("mirror", server);
    expect(whole.report.exit).toBe(0);
    expect(readHistory(whole.path)).toEqual(readHistory(origin.path));
  });

  it("copies years: ticks that are older than the window of the service, and what was lost between them", async () => {
    const { clock, serve, mirror, sync } = await startOrigin(1);
    const { path } = await sync({
      range: { from: clock.now() * MICROS_PER_MS - HOUR, to: Number.MAX_SAFE_INTEGER },
    });
    const from = parseTs("2022-05-01T00:00:00Z");
    const warehouse = openWriter(path, { clock });
    const [btc] = queryRows(
      warehouse,
      "SELECT index_id FROM series WHERE index_type = 'GWA' AND name = 'BTC'",
    );
    const indexId = String(btc?.index_id);
    const ticks = Array.from({ length: 2500 }, (_, at) =>
      tick(from + at * 30 * MICROS_PER_SECOND, "12345.6789", {
        indexId,
        extra: at % 100 ? null : '{"new":[1.50]}',
      }),
    );
    const end = from + 2500 * 30 * MICROS_PER_SECOND;
    warehouse.transaction((transaction) => {
      const key = {
        stream: "index_ticks",
        series: transaction.dictionary.getSeriesKey("GWA", indexId),
      } as const;
      writeRecords(transaction, "index_ticks", ticks, "rest");
      settle(transaction, key, { from, to: end }, "rows");
      settle(transaction, key, { from: end, to: clock.now() * MICROS_PER_MS - HOUR }, "lost", "retention");
      transaction
        .statement("UPDATE targets SET from_ts = ? WHERE stream = ? AND series = ?")
        .run([from, key.stream, key.series]);
    });
    warehouse.close();
    const server = await serve(path);
    // A plan counts what the origin has, not the window of the service: 4 years of 3 series.
    const planFolder = temporaryFolder();
    writeFileSync(join(planFolder, "mds-sync.yaml"), settings.replace("DAYS", "200"));
    const planned = await clock.runUntil(
      runInProcess(["plan", "--offline", "--json"], {
        cwd: planFolder,
        env: {
          MDS_BASE_URL: server.baseUrl,
          MDS_WS_URL: server.wsUrl,
          MDS_CLIENT_ID: "m",
          MDS_CLIENT_SECRET: "m",
          MDS_WAREHOUSE: join(planFolder, "mds.sqlite"),
        },
        clock,
      }),
    );
    const { streams } = JSON.parse(planned.stdout) as { streams: { stream: string; rows: number }[] };
    expect(streams.find(({ stream }) => stream === "index_ticks")?.rows).toBeGreaterThan(10_000_000);
    const copy = await mirror("mirror", server);
    const ofBtc = (history: ReturnType<typeof readHistory>) => ({
      ticks: history.ticks.filter(([, id]) => id === indexId),
      ledger: history.ledger.filter(([, , id]) => id === indexId),
    });
    const expected = ofBtc(readHistory(path));
    expect(expected.ticks.length).toBeGreaterThan(2500);
    expect(expected.ledger.map(([, , , , , proof]) => proof)).toEqual(["rows", "lost", "rows"]);
    expect(ofBtc(readHistory(copy.path))).toEqual(expected);
    // Of a series that the service does not have, the mirror claims no more than the origin: it was asked for a day only.
    const absent = (file: string) => readHistory(file).ledger.filter((range) => range.at(-1) === "not found");
    expect(absent(path).length).toBeGreaterThan(0);
    expect(absent(copy.path)).toEqual(absent(path));
    // Nothing ages out of a mirror.
    const reader = new Database(copy.path, { readonly: true });
    const windows = reader.prepare(
      "SELECT DISTINCT service_window FROM targets WHERE stream = 'index_ticks'",
    );
    expect(windows.pluck().all()).toEqual([null]);
    reader.close();
  });
});
