import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { ShareThread } from "../../src/share/thread/share-thread.ts";
import { PASSWORD, PostgresServer } from "../support/postgres-server.ts";
import type { Figure } from "./figures.ts";
import { computeLatencies, FLUSH_DELAY_MS, LivePath, quantile } from "./live.ts";
import { fillWithTicks } from "./tick-warehouse.ts";

/** Ten times what the whole service sends. */
const TICKS_PER_SECOND = 5_000;
const SECONDS = 6;
const SERIES = 4;

interface Measured {
  readonly p99: number;
  readonly slowestPong: number;
  readonly unanswered: number;
}

/** Sends ticks and PINGs for a while, from another process. */
async function measure(live: LivePath): Promise<Measured> {
  live.sendCommand({ order: "ping", everyMs: 50 });
  const steady = { order: "steady", ticksASecond: TICKS_PER_SECOND, seconds: SECONDS } as const;
  const { groups, ticks } = await live.order<"sent">(steady);
  await live.waitForCommits(ticks);
  const { ms, unanswered } = await live.order<"pongs">({ order: "pongs" });
  const found = computeLatencies(groups, ticks, live.committed);
  return { p99: quantile(found, 0.99), slowestPong: Math.max(...ms), unanswered };
}

/** Live ticks and PONGs before a first load of the shared warehouse, and during it. */
export async function benchLiveWhileSharing(print: (line: string) => void): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const warehouse = join(folder, "mds.sqlite");
  const server = new PostgresServer({ fsync: "on", shared_buffers: "128MB", max_wal_size: "2GB" });
  fillWithTicks(warehouse, SERIES);
  await server.start();
  const live = await LivePath.start(warehouse);
  const share = new ShareThread({
    warehouse,
    url: server.url(await server.createDatabase()),
    role: "alone",
    name: "bench",
    leaseSeconds: 15,
    readPassword: () => PASSWORD,
    clock: systemClock,
    log: silentLog,
    onFailure: (_, message) => print(message),
  });
  try {
    await measure(live);
    const before = await measure(live);
    await share.start();
    while (share.status().rows_forwarded === 0) await systemClock.sleep(20);
    const begun = { rows: share.status().rows_forwarded, at: systemClock.monotonic() };
    const during = await measure(live);
    const speed =
      (share.status().rows_forwarded - begun.rows) / ((systemClock.monotonic() - begun.at) / 1000);
    print(
      `p99 from send to commit: ${before.p99.toFixed(0)} ms before, ${during.p99.toFixed(0)} ms while ${Math.round(speed).toLocaleString("en-US")} rows/s are forwarded`,
    );
    const unit = "ms";
    return [
      {
        name: `live p99 while forwarding, at ${TICKS_PER_SECOND.toLocaleString("en-US")} ticks/s`,
        measured: during.p99,
        // On a busy machine it is late without forwarding too.
        atMost: Math.max(FLUSH_DELAY_MS + 40, 2 * before.p99),
        digits: 0,
        unit,
      },
      { name: "slowest PONG while forwarding", measured: during.slowestPong, atMost: 1_000, digits: 0, unit },
      { name: "unanswered PINGs while forwarding", measured: during.unanswered, atMost: 0, digits: 0 },
    ];
  } finally {
    await share.close();
    await live.stop();
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}
