import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LiveEvents } from "../../src/dashboard/live-events.ts";
import { exportWarehouse } from "../../src/export/export-warehouse.ts";
import { optimizeDatabase, pruneBatch } from "../../src/ingest/commit/bookkeeping.ts";
import type { CommitNews } from "../../src/model/answers/ticks.ts";
import { MICROS_PER_SECOND } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { openShare } from "../../src/share/share-once.ts";
import { planNight } from "../../src/sync/history/nightly-check.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { readPresentTs, recordClockSkew } from "../../src/warehouse/coverage/targets.ts";
import { readGapReport } from "../../src/warehouse/read/gap-report.ts";
import { readStatus } from "../../src/warehouse/read/status.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { prune } from "../../src/warehouse/rows/retention.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";
import { emptyRecord } from "../support/empty-record.ts";
import { PASSWORD, PostgresServer } from "../support/postgres-server.ts";
import { type Figure, median } from "./figures.ts";
import { CADENCE, FROM, fillWithTickers, fillWithTicks, TICKS_PER_SERIES, TO } from "./tick-warehouse.ts";

const SIZES = [1_000_000, 10_000_000, 50_000_000];
const LIVE_MINUTES = 5;
const PASSES = 100;

/** CPU milliseconds of this process with all its threads: on a busy machine the wall clock would tell more about the others. */
async function measureCpuMs(work: () => unknown, times = 1): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / times;
}

/** What follows the change, and not the warehouse: CPU milliseconds at each size. */
export async function benchJournal(print: (line: string) => void): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-journal-"));
  const server = new PostgresServer({});
  try {
    await server.start();
    const measured: Record<string, number>[] = [];
    for (const size of SIZES) {
      measured.push(await measureSize(join(folder, `${size / 1_000_000}m`), size, server));
      print(`${size / 1_000_000} million ticks: ${JSON.stringify(measured.at(-1))}`);
    }
    const largest = measured.at(-1) ?? {};
    print(`| CPU milliseconds at | ${SIZES.map((size) => `${size / 1_000_000} million`).join(" | ")} |`);
    for (const name of Object.keys(largest))
      print(`| ${name} | ${measured.map((of) => (of[name] ?? Number.NaN).toFixed(1)).join(" | ")} |`);
    return Object.entries(LIMITS).map(([name, atMost]) => ({
      name,
      measured: largest[name] ?? Number.NaN,
      atMost,
      digits: 1,
      unit: "ms",
    }));
  } finally {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

const LIMITS = {
  "share, a pass with nothing new": 5,
  "export, nothing new": 1_000,
  "export, after a live minute": 1_000,
  "from a commit to an open page, by the wall clock": 150,
};

async function measureSize(
  folder: string,
  size: number,
  server: PostgresServer,
): Promise<Record<string, number>> {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "mds.sqlite");
  if (!existsSync(path)) {
    fillWithTicks(path, Math.round(size / TICKS_PER_SERIES));
    fillWithTickers(path, size / 10);
  }
  let last = TO - CADENCE;
  const commitLiveMinute = (warehouse: WarehouseWriter) => {
    writeLiveMinute(warehouse, last);
    last += 2 * CADENCE;
  };
  const start = await measureCpuMs(() => openWriter(path, { clock: systemClock }).close(), 5);
  const page = new LiveEvents({
    clock: systemClock,
    version: "bench",
    startedAt: 0,
    problem: () => undefined,
  });
  const onCommit = (news: CommitNews) => page.notify([news]);
  const writer = openWriter(path, { clock: systemClock, onCommit });
  const reader = openReader(path);
  try {
    commitLiveMinute(writer);
    const now = readPresentTs(reader);
    const metrics = new Metrics(systemClock, "bench");
    const runExport = () =>
      exportWarehouse({
        warehouse: path,
        to: join(folder, "export"),
        program: "bench",
        clock: systemClock,
      });
    const first = await measureCpuMs(runExport);
    const again = await measureCpuMs(runExport, 3);
    const minutes: number[] = [];
    for (let i = 0; i < LIVE_MINUTES; i++) {
      commitLiveMinute(writer);
      minutes.push(await measureCpuMs(runExport));
    }
    return {
      "share, a pass with nothing new": await measureShare(path, server),
      "export, nothing new": again,
      "export, after a live minute": median(minutes),
      "from a commit to an open page, by the wall clock": await measurePage(page, () =>
        commitLiveMinute(writer),
      ),
      "export, the first": first,
      "opening and closing the file for writing": start,
      status: await measureCpuMs(() => readStatus(reader, now), 5),
      gaps: await measureCpuMs(() => readGapReport(reader, { streams: undefined, series: undefined }), 5),
      "a scrape of the metrics": await measureCpuMs(() => {
        metrics.setStreams(readStatus(reader, now).streams);
        return metrics.exposition();
      }, 5),
      "retention, nothing expired": await measureCpuMs(
        () => writer.transaction((t) => prune(t, "exchange_ticks", FROM)),
        5,
      ),
      "retention, 100,000 expired tickers": await measureRetention(writer),
      "plan of the nightly check": await measureCpuMs(() => planNight(reader, 30, now), 5),
      "upkeep, tables have grown tenfold": await measureCpuMs(() => optimizeDatabase(writer)),
      "upkeep, of a usual night": await measureCpuMs(() => optimizeDatabase(writer)),
    };
  } finally {
    reader.close();
    writer.close();
  }
}

/** Two live ticks of each series, which REST has confirmed, by a service whose clock says so. */
function writeLiveMinute(warehouse: WarehouseWriter, last: number): void {
  const series = warehouse.connection
    .statement<readonly [key: number, indexId: string]>(
      "SELECT series, index_id FROM series WHERE index_type = 'GWA'",
    )
    .raw()
    .all();
  const price = { real: 123.45, exact: null };
  warehouse.transaction((transaction) => {
    recordClockSkew(transaction, last + 3 * CADENCE - Date.now() * 1000);
    for (const [key, indexId] of series) {
      const ticks = [1, 2].map((i) => ({
        ...emptyRecord("index_ticks"),
        indexType: "GWA" as const,
        indexId,
        ts: last + i * CADENCE,
        price,
        volume: price,
      }));
      writeRecords(transaction, "index_ticks", ticks, "live");
      settle(
        transaction,
        { stream: "index_ticks", series: key },
        { from: last, to: last + 2 * CADENCE + 1 },
        "rows",
      );
    }
  });
}

/** A pass of the forwarder. The database is told that it has everything: what it has does not matter to the pass. */
async function measureShare(warehouse: string, server: PostgresServer): Promise<number> {
  const database = await server.createDatabase();
  const open = () =>
    openShare({
      warehouse,
      url: server.url(database),
      readPassword: () => PASSWORD,
      role: "alone",
      name: "bench",
      leaseSeconds: 60,
      clock: systemClock,
      signal: new AbortController().signal,
    });
  await (await open()).close();
  await server.query(database, "UPDATE mds.positions SET is_loaded = true");
  const { forwarder, close } = await open();
  try {
    // The first pass compares the lookups, which later ones do once a minute.
    await forwarder.forward();
    return await measureCpuMs(async () => {
      await forwarder.forward();
      await forwarder.writer.renewIfDue();
    }, PASSES);
  } finally {
    await close();
  }
}

/** From the end of a commit to the event that a page receives: the median. */
async function measurePage(events: LiveEvents, commit: () => void): Promise<number> {
  const { body } = events.open();
  if (typeof body !== "object" || !("on" in body)) throw new Error("events are a stream");
  try {
    const times: number[] = [];
    for (let i = 0; i < 6; i++) {
      const received = new Promise<number>((resolve) => {
        const listen = (chunk: Buffer) => {
          if (!String(chunk).includes("event: commit")) return;
          body.off("data", listen);
          resolve(performance.now());
        };
        body.on("data", listen);
      });
      commit();
      const committedAt = performance.now();
      times.push((await received) - committedAt);
    }
    return median(times);
  } finally {
    body.destroy();
  }
}

/** All batches that delete 100 rows of each of 1,000 listings. */
function measureRetention(writer: WarehouseWriter): Promise<number> {
  const oldest = writer.connection.value<number>("SELECT min(ts) FROM exchange_tick_rows");
  const before = oldest + 100 * 30 * MICROS_PER_SECOND;
  return measureCpuMs(() => {
    let { nextKey } = pruneBatch(writer, { stream: "exchange_ticks", before });
    while (nextKey !== undefined)
      ({ nextKey } = pruneBatch(writer, { stream: "exchange_ticks", before, fromKey: nextKey }));
  });
}
