import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defaultChoices } from "../../src/api-server/choices.ts";
import { respondToPath } from "../../src/api-server/endpoints.ts";
import { serviceScopes } from "../../src/model/streams.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { type ServeServer, startServeServer } from "../../src/serve/serve-server.ts";
import { readState } from "../../src/serve/warehouse-source.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { openWriter } from "../../src/warehouse/writer.ts";
import { tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";
import { type Figure, median } from "./figures.ts";
import { FROM, fillWithTicks, TICKS_PER_SERIES, TO } from "./tick-warehouse.ts";

const SERIES = 2;
const LISTED_SERIES = 300;
const CLIENTS = 200;
const scopes: ReadonlySet<string> = new Set(serviceScopes);

/** The CPU time of this process: on a busy machine the wall clock would tell more about the others. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** The service's API from a warehouse: pages, lists of the latest state, the live feed, a replay. */
export async function benchServe(print: (line: string) => void): Promise<readonly Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-serve-"));
  const path = join(folder, "mds.sqlite");
  let server: ServeServer | undefined;
  try {
    fillWithTicks(path, SERIES);
    const rowsPerSecond = measurePages(path);
    addSeries(path);
    const latestMs = measureLatest(path);
    server = await startServeServer({
      ...{ warehouse: path, host: "127.0.0.1", port: 0, clients: [], tls: {}, behindProxy: false },
      ...{ version: "bench", clock: systemClock, log: silentLog },
    });
    const replayed = await measureReplay(server);
    const liveMs = await measureLive(server, path);
    print(
      `${CLIENTS} clients × ${LISTED_SERIES + SERIES} series: all clients have a commit after ${liveMs.toFixed(0)} ms`,
    );
    const perSecond = { digits: 0, unit: "/s" };
    const inMs = { unit: "ms", digits: 1 };
    return [
      { name: "rows in pages of 2,000, a core", measured: rowsPerSecond, atLeast: 100_000, ...perSecond },
      { name: `the latest of ${LISTED_SERIES} indices`, measured: latestMs, atMost: 5, ...inMs },
      { name: "ticks of a replay at max, a core", measured: replayed, atLeast: 80_000, ...perSecond },
      { name: "from the commit to 200 clients", measured: liveMs, atMost: 250, unit: "ms", digits: 0 },
    ];
  } finally {
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const choices = {
  ...{ ...defaultChoices, sizeBesideStartAfter: "honoured" as const, ids: "opaque" as const },
  noData: "empty" as const,
};

function measurePages(path: string): number {
  const reader = openReader(path);
  const [indexId] = reader.statement<string>("SELECT index_id FROM series WHERE series = 1").pluck().all();
  const query = new URLSearchParams({ indexType: "GWA", indexId: indexId ?? "", size: "2000" });
  query.set("timestamp", new Date(TO / 1000).toISOString());
  const startedAt = cpuSeconds();
  let rows = 0;
  for (let nextId: string | undefined = ""; nextId !== undefined && rows < TICKS_PER_SERIES; rows += 2000) {
    const { body } = reader.database.transaction(() =>
      respondToPath("/index-ticker", { state: readState(reader, TO), query, scopes, choices }),
    )();
    nextId = /"nextId":"([^"]+)"/.exec(body.slice(-60))?.[1];
    if (nextId !== undefined) query.set("startAfter", nextId);
    Buffer.from(body);
  }
  const seconds = cpuSeconds() - startedAt;
  reader.close();
  return rows / seconds;
}

function measureLatest(path: string): number {
  const reader = openReader(path);
  const times = Array.from({ length: 21 }, () => {
    const startedAt = cpuSeconds();
    const state = readState(reader, systemClock.now() * 1000);
    void respondToPath("/index-ticker", { state, query: new URLSearchParams(), scopes, choices }).body;
    return (cpuSeconds() - startedAt) * 1000;
  });
  reader.close();
  return median(times);
}

const seriesIds = Array.from({ length: LISTED_SERIES }, (_, at) => `more-${at}`);

/** A tick of each of many series, now. */
function addSeries(path: string): void {
  const warehouse = openWriter(path, { clock: systemClock });
  const ts = Math.floor(systemClock.now()) * 1000;
  const price = { real: 1.25, exact: null };
  const ticks = seriesIds.map((indexId) => tick(ts, "1.25", { indexId, volume: price }));
  storeTicks(warehouse, ticks, "live");
  warehouse.close();
}

/** A websocket client that only counts bytes and ticks: a real one would cost more than the server. */
class CountingClient {
  readonly socket: Socket;
  ticks = 0;
  #waiters: (() => void)[] = [];
  #end = "";

  constructor(server: ServeServer, query: string) {
    const { hostname, port, pathname } = new URL(server.wsUrl);
    this.socket = connect(Number(port), hostname, () =>
      this.socket.write(
        `GET ${pathname}${query} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      ),
    );
    this.socket.on("data", (data: Buffer) => {
      for (let at = data.indexOf('_TICKER","id'); at >= 0; at = data.indexOf('_TICKER","id', at + 100))
        this.ticks++;
      this.#end = data.subarray(-400).toString("latin1");
      for (const wake of this.#waiters.splice(0)) wake();
    });
  }

  send(message: object): void {
    const payload = Buffer.from(JSON.stringify(message));
    // A mask of zeros leaves the payload as it is.
    this.socket.write(Buffer.concat([Buffer.of(0x81, 0x80 | payload.length, 0, 0, 0, 0), payload]));
  }

  async waitUntil(condition: (end: string) => boolean): Promise<void> {
    while (!condition(this.#end)) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }
}

async function measureReplay(server: ServeServer): Promise<number> {
  const [from, to] = [FROM, TO].map((ts) => new Date(ts / 1000).toISOString());
  const client = new CountingClient(server, `?from=${from}&to=${to}&speed=max`);
  await client.waitUntil((end) => end.includes("CONNECTED"));
  const startedAt = cpuSeconds();
  client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "GWA" });
  await client.waitUntil((end) => end.includes("REPLAY_ENDED"));
  const seconds = cpuSeconds() - startedAt;
  client.socket.destroy();
  return (SERIES * TICKS_PER_SERIES) / seconds;
}

/** The slowest of several commits, until the last client has all its ticks. */
async function measureLive(server: ServeServer, path: string): Promise<number> {
  const clients = Array.from({ length: CLIENTS }, () => new CountingClient(server, ""));
  for (const client of clients) {
    await client.waitUntil((end) => end.includes("CONNECTED"));
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "GWA" });
    await client.waitUntil((end) => end.includes("SUBSCRIBED"));
  }
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const before = clients.map(({ ticks }) => ticks);
    addSeries(path);
    const committedAt = performance.now();
    await Promise.all(
      clients.map((client, at) => client.waitUntil(() => client.ticks >= (before[at] ?? 0) + LISTED_SERIES)),
    );
    times.push(performance.now() - committedAt);
  }
  for (const { socket } of clients) socket.destroy();
  return Math.max(...times);
}
