import { expect, it } from "vitest";
import { bucketOf } from "../../src/model/buckets.ts";
import { toPlainNotation } from "../../src/model/decimal.ts";
import type { SimulatedIndexType } from "../../src/simulator/market/indexes.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import { usePostgres } from "../support/postgres.ts";
import type { TestPostgres } from "../support/postgres-server.ts";
import { ProxiedPostgres } from "../support/share/proxied-postgres.ts";
import { SplitHarness, type Worker } from "../support/share/split-harness.ts";

const server = usePostgres();
/** Longer than any machine keeps a test from its next step; a test ends a lease by hand. */
const LEASE_SECONDS = 600;
const MINUTE = 60_000_000;
/** How far back a poll of the newest page reaches for late records, once an hour. */
const MAX_REACH = 121 * MINUTE;
const names = ["BTC", "ETH", "USDT", "XRP", "SOL", "DOGE", "LTC"];
const none = { kind: "none" };
const sync = {
  ohlcv: false,
  intraday: { GWA: { kind: "list", names }, MWA: none, LX: none, days: 1 },
  exchangeTickers: { exchanges: { kind: "list", names: ["Kraken", "Coinbase"] }, markets: { kind: "all" } },
  marketCap: false,
  derivatives: false,
};

interface Covered {
  readonly stream: string;
  readonly type: SimulatedIndexType;
  readonly id: string;
  readonly from: number;
  readonly to: number;
}

/** Joins ranges that meet: what one daemon proved to be empty between two records borders on what another proved. */
function joinAdjacent(ranges: readonly Covered[]): Covered[] {
  const joined: Covered[] = [];
  for (const range of ranges) {
    const last = joined.at(-1);
    if (last?.id === range.id && last.to === range.from)
      joined[joined.length - 1] = { ...last, to: range.to };
    else joined.push(range);
  }
  return joined;
}

const logTakenLeases = `CREATE TABLE public.taken_leases (bucket integer);
  CREATE FUNCTION public.log_taken() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN INSERT INTO public.taken_leases VALUES (NEW.bucket); RETURN NULL; END';
  CREATE TRIGGER log_taken AFTER UPDATE ON mds.leases FOR EACH ROW WHEN (OLD.epoch <> NEW.epoch)
    EXECUTE FUNCTION public.log_taken()`;

/** The buckets of the series that a daemon wants. */
function readTargets(path: string): number[] {
  const reader = openReader(path);
  try {
    const rows = reader
      .statement<{ type: string; id: string }>(
        "SELECT s.index_type AS type, s.index_id AS id FROM wanted_ranges w JOIN series s ON s.series = w.series WHERE w.stream = 'index_ticks' AND w.to_ts IS NULL",
      )
      .all();
    return rows.map(({ type, id }) => bucketOf(type, id));
  } finally {
    reader.close();
  }
}

function readFollowedExchanges(path: string): string[] {
  const reader = openReader(path);
  try {
    return reader
      .statement<string>(
        "SELECT DISTINCT name FROM coverage WHERE stream = 'exchange_ticks' AND proof = 'rows' ORDER BY 1",
      )
      .pluck()
      .all();
  } finally {
    reader.close();
  }
}

function countRows(path: string, { from, to }: { from: number; to: number }): number {
  const reader = openReader(path);
  try {
    return reader.value<number>("SELECT count(*) FROM index_tick_rows WHERE ts >= ? AND ts < ?", [from, to]);
  } finally {
    reader.close();
  }
}

function startSplit(
  reached: TestPostgres,
  database: string,
  settings: Record<string, unknown>,
): Promise<SplitHarness> {
  return SplitHarness.start({
    server: reached,
    database,
    leaseSeconds: LEASE_SECONDS,
    role: "split",
    sync: settings,
  });
}

it("I13: shares the series among daemons that join, leave and die, and fetches them once", async () => {
  const database = await server.createDatabase();
  const harness = await startSplit(server, database, sync);
  const startedAt = harness.clock.now() * 1000;
  const query = <Row extends object>(sql: string) => server.query(database, sql) as Promise<Row[]>;
  const readCovered = () =>
    query<Covered>(
      `SELECT g.stream, s.index_type AS type, s.index_id AS id, g.from_ts::double precision AS "from", g.to_ts::double precision AS "to"
      FROM mds.settled_ranges g JOIN mds.series s ON s.series = g.series WHERE g.proof <> 'lost' ORDER BY 1, 2, 3, 4`,
    );
  const readTicks = async () =>
    joinAdjacent((await readCovered()).filter(({ stream }) => stream === "index_ticks"));
  const readLeases = () =>
    query<{ name: string; bucket: number }>(
      "SELECT name, bucket FROM mds.leases WHERE holder <> '' AND until > clock_timestamp()",
    );
  const hasLeases = async (...counts: readonly (readonly [Worker | undefined, number])[]) => {
    const leases = await readLeases().catch(() => []);
    return counts.every(
      ([worker, count]) => leases.filter(({ name }) => name === worker?.name).length === count,
    );
  };
  /** Every series is covered without a gap up to five minutes before now. */
  const isCurrent = async () => {
    const ticks = await readTicks();
    const current = ticks.filter(({ to }) => to > harness.clock.now() * 1000 - 5 * MINUTE);
    return ticks.length === names.length && current.length === names.length;
  };

  const [one, two] = [await harness.startWorker("one"), await harness.startWorker("two")];
  await harness.runUntil(() => hasLeases([one, 32], [two, 32]));
  // A daemon that fetches history would go on with a series that it hands over.
  await harness.runUntil(isCurrent);
  const [three, four] = [await harness.startWorker("three"), await harness.startWorker("four")];
  const workers = [one, two, three, four];
  const readFollowed = () =>
    workers.flatMap(({ path, name }) => readTargets(path).map((bucket) => ({ name, bucket })));
  await harness.runUntil(() => hasLeases([one, 16], [two, 16], [three, 16], [four, 16]));
  await harness.runUntil(async () => (await isCurrent()) && readFollowed().length === names.length);

  const before = await readTicks();
  const leases = await readLeases();
  const ownerOf = ({ type, id }: Covered) =>
    leases.find(({ bucket }) => bucket === bucketOf(type, id))?.name ?? "";
  expect(leases).toEqual(expect.arrayContaining(readFollowed()));
  const victim = workers.find(({ name }) => name === ownerOf(before[0] as Covered)) ?? one;
  const [other, ...rest] = workers.filter((worker) => worker !== victim);
  await query(logTakenLeases);
  // A daemon that has just joined leaves an ended lease for a while to the one that held it.
  harness.skip(LEASE_SECONDS);
  await victim.kill();
  // It renews nothing: its leases and its membership end by the database's clock.
  for (const table of ["leases", "members"])
    await query(
      `UPDATE mds.${table} SET until = clock_timestamp() - interval '1 second' WHERE name = '${victim.name}'`,
    );
  await harness.runUntil(async () => {
    const held = (await readLeases()).filter(({ name }) => name !== victim.name);
    return held.length === 64;
  });
  // All look at least every second, so a lease that has ended is taken within a second.
  const taken = await query<{ bucket: number }>("SELECT DISTINCT bucket FROM public.taken_leases");
  const lostLeases = leases.filter(({ name }) => name === victim.name);
  expect(taken.map(({ bucket }) => bucket)).toEqual(
    expect.arrayContaining(lostLeases.map(({ bucket }) => bucket)),
  );
  for (const { pauses } of workers) expect(pauses[0]).toBeLessThanOrEqual(1_000);
  await harness.runUntil(isCurrent);
  await other?.stop();
  await harness.runUntil(() => hasLeases([rest[0], 32], [rest[1], 32]));
  await harness.runUntil(isCurrent);

  const covered = await readTicks();
  const exchanges = (await readCovered()).filter(({ stream }) => stream === "exchange_ticks");
  expect(new Set(exchanges.map(({ id }) => id)).size).toBe(2);
  expect(workers.flatMap(({ failures }) => failures)).toEqual([]);
  // Each second of each series is covered once, and has exactly the rows of the service.
  expect(covered.map(({ id }) => id)).toEqual([...new Set(covered.map(({ id }) => id))]);
  for (const { type, id, from, to } of covered) {
    const expected = harness.simulator.oracle
      .indexTicks(type, id, from / 1000, to / 1000, harness.clock.now())
      .map(({ timestamp, price }) => `${Date.parse(timestamp) * 1000} ${toPlainNotation(price)}`);
    const stored = await server.query(
      database,
      "SELECT ts, price_exact AS price FROM mds.index_ticks WHERE index_id = $1 AND ts >= $2 AND ts < $3 ORDER BY ts",
      [id, from, to],
    );
    expect(stored.map(({ ts, price }) => `${ts} ${price}`)).toEqual(expected);
  }
  // Of what is older than a poll reaches back, each row was fetched by one daemon, but for a page that was under way when
  // the second daemon joined.
  const old = { from: startedAt - 1430 * MINUTE, to: startedAt - MAX_REACH };
  const counts = workers.map(({ path }) => countRows(path, old));
  const [shared] = await query(
    `SELECT count(*)::integer AS rows FROM mds.index_tick_rows WHERE ts >= ${old.from} AND ts < ${old.to}`,
  );
  const { rows } = shared as { rows: number };
  const fetchedTwice = counts.reduce((sum, count) => sum + count, 0) - rows;
  expect(fetchedTwice).toBeLessThan(0.25 * rows);
});

it("I14: a daemon that starts while PostgreSQL is down follows what cannot be fetched later", async () => {
  const database = await server.createDatabase();
  const proxied = await ProxiedPostgres.start(server);
  const harness = await startSplit(proxied, database, { ...sync, intraday: false });
  await proxied.stop();
  const [one, two] = [await harness.startWorker("one"), await harness.startWorker("two")];
  const all = ["Coinbase", "Kraken"];
  const followAll = ({ path }: Worker) => readFollowedExchanges(path).join() === all.join();
  await harness.runUntil(() => followAll(one) && followAll(two));
  await proxied.start();
  // Each forwards its share, and nothing of the time before is missing.
  const covered = () =>
    server
      .query(
        database,
        "SELECT name FROM mds.coverage WHERE stream = 'exchange_ticks' AND proof = 'rows' GROUP BY 1 ORDER BY 1",
      )
      .catch(() => []);
  await harness.runUntil(async () => (await covered()).map(({ name }) => name).join() === all.join());
  const [begun] = await server.query<{ at: number }>(
    database,
    "SELECT max(first)::double precision AS at FROM (SELECT min(from_ts) AS first FROM mds.coverage WHERE proof = 'rows' GROUP BY index_id) x",
  );
  const local = openReader(one.path);
  expect(begun?.at).toBe(
    local.value(
      "SELECT max(first) FROM (SELECT min(from_ts) AS first FROM coverage WHERE proof = 'rows' GROUP BY index_id)",
    ),
  );
  local.close();
  expect([...one.failures, ...two.failures]).toEqual([]);
});
