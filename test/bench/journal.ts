import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LiveEvents } from "../../src/dashboard/live-events.ts";
import { exportWarehouse } from "../../src/export/export-warehouse.ts";
import type { CommitNews } from "../../src/model/answers/ticks.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { openShare } from "../../src/share/share-once.ts";
import { settle } from "../../src/warehouse/coverage/ledger.ts";
import { recordClockSkew } from "../../src/warehouse/coverage/targets.ts";
import { writeRecords } from "../../src/warehouse/rows/row-writer.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";
import { emptyRecord } from "../support/empty-record.ts";
import { PASSWORD, PostgresServer } from "../support/postgres-server.ts";
import { type Figure, median } from "./figures.ts";
import { CADENCE, fillWithTicks, TICKS_PER_SERIES, TO } from "./tick-warehouse.ts";

const TICKS = 50_000_000;
const LIVE_MINUTES = 5;
const PASSES = 100;

/** CPU milliseconds of this process with all its threads: on a busy machine the wall clock would tell more about the others. */
async function measureCpuMs(work: () => unknown, times = 1): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / times;
}

/** What follows the change, and not the warehouse: CPU milliseconds at a large size. */
export async function benchJournal(print: (line: string) => void): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-journal-"));
  const path = join(folder, "mds.sqlite");
  const server = new PostgresServer({});
  try {
    await server.start();
    fillWithTicks(path, Math.round(TICKS / TICKS_PER_SERIES));
    const page = new LiveEvents({
      clock: systemClock,
      version: "bench",
      startedAt: 0,
      problem: () => undefined,
    });
    const onCommit = (news: CommitNews) => page.notify([news]);
    const writer = openWriter(path, { clock: systemClock, onCommit });
    let last = TO - CADENCE;
    const commitLiveMinute = () => {
      writeLiveMinute(writer, last);
      last += 2 * CADENCE;
    };
    try {
      commitLiveMinute();
      const to = join(folder, "export");
      const runExport = () => exportWarehouse({ warehouse: path, to, program: "bench", clock: systemClock });
      print(`the first export: ${Math.round(await measureCpuMs(runExport)).toLocaleString("en-US")} ms`);
      const again = await measureCpuMs(runExport, 3);
      const minutes: number[] = [];
      for (let i = 0; i < LIVE_MINUTES; i++) {
        commitLiveMinute();
        minutes.push(await measureCpuMs(runExport));
      }
      const ms = { digits: 1, unit: "ms" };
      return [
        {
          name: "share, a pass with nothing new",
          measured: await measureShare(path, server),
          atMost: 5,
          ...ms,
        },
        { name: "export, nothing new", measured: again, atMost: 1_000, ...ms },
        { name: "export, after a live minute", measured: median(minutes), atMost: 1_000, ...ms },
        {
          name: "from a commit to an open page, by the wall clock",
          measured: await measurePage(page, commitLiveMinute),
          atMost: 150,
          ...ms,
        },
      ];
    } finally {
      writer.close();
    }
  } finally {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
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
