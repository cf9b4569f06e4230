import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { toPlainNotation } from "../../src/model/decimal.ts";
import type { ShareStatus } from "../../src/model/status/share-status.ts";
import { intersect, normalise, subtract, type TimeRange } from "../../src/model/time-range.ts";
import { withReader } from "../../src/warehouse/reader.ts";
import { startSimulator } from "../simulator/simulator.ts";
import { usePostgres } from "../support/postgres.ts";
import { PASSWORD } from "../support/postgres-server.ts";
import { startProgram } from "../support/program-process.ts";
import { PairDatabase } from "../support/share/pair-members.ts";
import { serviceEnv } from "../support/sync/sync-session.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { timeLimit } from "../support/time-limit.ts";
import { waitUntil } from "../support/wait-until.ts";

const server = usePostgres();
const PERIOD = 1_000_000;
/** Longer than a start of the daemon: the killed one leads again. */
const LEASE_SECONDS = Math.ceil(timeLimit(20_000) / 1000);
/** Each look connects to the server. */
const LOOK_INTERVAL_MS = 200;
const settings = (url: string, name: string) => `service: { refreshSeconds: 1 }
warehouse: { path: mds.sqlite }
sync:
  ohlcv: false
  intraday: { GWA: none, MWA: none, LX: none, days: 1 }
  exchangeTickers: { exchanges: [Kraken], markets: all }
  marketCap: false
  derivatives: false
http: { port: 0 }
shared: { url: "${url}", passwordFile: password, name: ${name}, role: pair, leaseSeconds: ${LEASE_SECONDS} }
`;

type Tick = readonly [market: string, ts: number, last: string];
const rowsSql = "SELECT market_id, ts, last_exact FROM exchange_ticks";
const coveredSql = "SELECT from_ts, to_ts FROM coverage WHERE stream = 'exchange_ticks'";

/** A daemon of the pair, with its own folder and file. */
function createDaemon(name: string, url: string, env: Readonly<Record<string, string>>) {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "mds-sync.yaml"), settings(url, name));
  writeFileSync(join(folder, "password"), PASSWORD, { mode: 0o600 });
  const read = <Row>(sql: string): Row[] =>
    withReader(join(folder, "mds.sqlite"), (file) => file.database.prepare(sql).raw().all() as Row[]);
  return {
    name,
    start: () => startProgram(["run", "--no-progress"], { cwd: folder, env }),
    readStatus: async (): Promise<ShareStatus> => {
      const { stdout } = await startProgram(["status", "--json"], { cwd: folder, env }).result;
      return (JSON.parse(stdout) as { shared: ShareStatus }).shared;
    },
    readRows: () => read<Tick>(rowsSql),
    readCovered: () => normalise(read<[number, number]>(coveredSql).map(([from, to]) => ({ from, to }))),
  };
}

it("I14: a pair of daemons has in PostgreSQL what either saw, though the leader was killed and came back", async () => {
  const simulator = await startSimulator({ refreshSeconds: 1 });
  onTestFinished(() => simulator.stop());
  const pair = await PairDatabase.create(server);
  const env = { ...serviceEnv(simulator) };
  const [north, south] = ["north", "south"].map((name) => createDaemon(name, server.url(pair.name), env)) as [
    ReturnType<typeof createDaemon>,
    ReturnType<typeof createDaemon>,
  ];
  const readCovered = async () => normalise(await pair.readLedger("exchange_ticks"));
  const newest = (covered: readonly TimeRange[]) => covered.at(-1)?.to ?? 0;
  let leader = north.start();
  await waitUntil(async () => (await readCovered()).length > 0, LOOK_INTERVAL_MS);
  const follower = south.start();
  await waitUntil(() => follower.output.stderr.includes("another daemon forwards"), LOOK_INTERVAL_MS);
  const isSeenBySouth = (since: number, periods: number) =>
    waitUntil(() => {
      const last = south.readCovered().at(-1);
      return last !== undefined && last.to - Math.max(since, last.from) > periods * PERIOD;
    }, LOOK_INTERVAL_MS);
  await isSeenBySouth(0, 2);

  leader.child.kill("SIGKILL");
  await leader.result;
  const killedAt = newest(north.readCovered());
  await isSeenBySouth(killedAt, 2);
  leader = north.start();
  // Its file has a hole for ever.
  await waitUntil(() => newest(north.readCovered()) > killedAt, LOOK_INTERVAL_MS);
  const until = newest(north.readCovered());
  const window = [{ from: 0, to: until }];
  /** What either saw; on a busy machine a second may pass in which the service itself sends nothing. */
  const readSeen = () =>
    intersect(normalise([north, south].flatMap((daemon) => daemon.readCovered())), window);
  await waitUntil(async () => {
    const covered = await readCovered();
    return newest(covered) > until && subtract(readSeen(), covered).length === 0;
  }, LOOK_INTERVAL_MS);
  expect(subtract(readSeen(), north.readCovered())).not.toEqual([]);
  // The one that led connects again: then both are there, and one forwards.
  const peers = await waitUntil(async () => {
    const { peers } = await south.readStatus();
    return peers?.daemons.length === 2 && peers.daemons[0]?.is_forwarding && peers;
  });
  expect(peers.daemons.map(({ name }) => name).sort()).toEqual(["north", "south"]);
  expect(peers.daemons[1]).toMatchObject({ is_forwarding: false, address: "127.0.0.1" });

  // It has never taken over.
  expect(follower.output.stderr).not.toContain("forwarding to the shared warehouse");
  for (const { child, result } of [follower, leader]) {
    child.kill("SIGTERM");
    expect(await result).toMatchObject({ status: 0 });
  }
  const seen = readSeen();
  expect(subtract(seen, await readCovered())).toEqual([]);
  const lost = (await pair.readLost(until)).map(({ from_ts, to_ts }) => ({
    from: Number(from_ts),
    to: Number(to_ts),
  }));
  expect(intersect(normalise(lost), seen)).toEqual([]);
  const text = (rows: readonly Tick[]) =>
    rows
      .filter(([, ts]) => Number(ts) < until)
      .map(([market, ts, last]) => `${market} ${ts} ${last}`)
      .sort();
  const rows = await server.query<{ market_id: string; ts: string; last_exact: string; exchange_id: string }>(
    pair.name,
    "SELECT market_id, ts, last_exact::text AS last_exact, exchange_id FROM mds.exchange_ticks",
  );
  const shared = text(rows.map(({ market_id, ts, last_exact }) => [market_id, Number(ts), last_exact]));
  expect(shared).toEqual([...new Set(text([...north.readRows(), ...south.readRows()]))].sort());
  // What the service has served in these seconds.
  const stored = new Set(shared);
  const served = seen.flatMap(({ from, to }) =>
    Array.from({ length: (to - from) / PERIOD }, (_, i) => from + i * PERIOD).flatMap((ts) =>
      simulator.oracle
        .exchangeTicks(ts / 1000)
        .filter(({ exchangeId }) => exchangeId === rows[0]?.exchange_id)
        .map(({ marketId, last }) => `${marketId} ${ts} ${toPlainNotation(last)}`),
    ),
  );
  expect(served.length).toBeGreaterThan(0);
  expect(served.filter((row) => !stored.has(row))).toEqual([]);
});
