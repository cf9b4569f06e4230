import { expect, it } from "vitest";
import { normalise } from "../../src/model/time-range.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { openShare, type ShareOptions, shareOnce } from "../../src/share/share-once.ts";
import { declareTargets } from "../../src/warehouse/coverage/targets.ts";
import { prune } from "../../src/warehouse/rows/retention.ts";
import type { WarehouseWriter } from "../../src/warehouse/writer.ts";
import { usePostgres } from "../support/postgres.ts";
import {
  at,
  member,
  observe,
  PairDatabase,
  STEP,
  startMember,
  steps,
} from "../support/share/pair-members.ts";
import { ProxiedPostgres } from "../support/share/proxied-postgres.ts";
import { addHours } from "../support/share/share-harness.ts";
import { waitUntil } from "../support/wait-until.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { settle } from "../support/warehouse/settle.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

const server = usePostgres();
const MAX_LOOK_INTERVAL_MS = 1_000;
/** A lease of ten minutes lasts a second here, but not in the database. */
const hasty: Clock = {
  ...systemClock,
  monotonic: () => systemClock.monotonic() * 600,
  sleep: (ms, signal) => systemClock.sleep(ms / 20, signal),
};

async function createPair() {
  const pair = await PairDatabase.create(server);
  const [one, two] = [openTestWarehouse(), openTestWarehouse()];
  const optionsOf = (warehouse: WarehouseWriter, name: string): ShareOptions =>
    member(server, pair.name, warehouse, name, hasty);
  return { pair, one, two, first: optionsOf(one, "one"), second: optionsOf(two, "two") };
}

/** Forwards until now, and is killed: it says nothing more, and its connections end. */
async function forwardAndCrash(pair: PairDatabase, options: ShareOptions): Promise<void> {
  const share = await openShare(options);
  await share.forwarder.forward();
  await pair.endSessionsOfHolder();
  share.connection.close();
}

const readCovered = async (pair: PairDatabase) =>
  normalise((await pair.readLedger("exchange_ticks")).filter(({ proof }) => proof === "rows"));

const isWhole = async (pair: PairDatabase, to: number) => {
  const [range, ...more] = await readCovered(pair);
  return range?.to === at(to) && more.length === 0;
};

/** Every period was seen by one of the two: no second is called lost, and each row is there once. */
async function expectWhole(pair: PairDatabase, to: number): Promise<void> {
  expect(await readCovered(pair)).toMatchObject([{ from: at(0), to: at(to) }]);
  expect(await pair.readTimes("btc-usd-id")).toEqual(steps(0, to).map(at));
  expect(await pair.readLost(at(to))).toEqual([]);
}

/** A clock that is an hour off, for the lease must not depend on it, and what was waited for on it. */
function offBy(hours: number) {
  const pauses: number[] = [];
  const clock: Clock = {
    ...systemClock,
    now: () => systemClock.now() + hours * 3_600_000,
    sleep(ms, signal) {
      pauses.push(ms);
      return systemClock.sleep(ms, signal);
    },
  };
  return { clock, pauses };
}

it("I9: forwards after a take-over what only the other daemon has seen, and removes nothing", async () => {
  const pair = await PairDatabase.create(server);
  const database = pair.name;
  const [leader, other] = [openTestWarehouse(), openTestWarehouse()];
  // The leader did not observe periods 3 and 4, and dies after period 9; the other one started at period 2.
  observe(leader, [0, 1, 2, 5, 6, 7, 8, 9]);
  observe(leader, [1, 6], { marketId: "only-seen-by-leader" });
  addHours(leader, 0, 1);
  // It has forwarded before, so that nothing but the difference of the ledgers tells what is lacking.
  observe(other, [2]);
  const early = offBy(-1);
  await shareOnce(member(server, database, other, "two", early.clock));
  observe(other, steps(3, 14));
  addHours(other, 0, 2);
  const first = await openShare(member(server, database, leader, "one", offBy(1).clock));
  await first.forwarder.forward();
  early.pauses.length = 0;
  const second = startMember(member(server, database, other, "two", early.clock));
  await second.reach("standby");
  expect(second.reports[0]).toEqual({ kind: "standby", forwardedBy: "one" });
  // Killed: nobody renews the lease, and it ends. The other looks at least every second.
  await waitUntil(() => early.pauses.length > 0);
  expect(early.pauses[0]).toBeLessThanOrEqual(MAX_LOOK_INTERVAL_MS);
  await pair.endLease();
  await second.reach("connected");
  await second.reach("forwarded", 2);
  expect(await pair.readLedger("exchange_ticks")).toEqual([{ from: at(0), to: at(14), proof: "rows" }]);
  expect(await pair.readTimes("btc-usd-id")).toEqual(steps(0, 14).map(at));
  expect(await pair.readTimes("only-seen-by-leader")).toEqual([1, 6].map(at));
  expect(await pair.readLedger("index_ticks")).toEqual([{ from: at(0), to: at(240), proof: "rows" }]);
  const unobserved = await server.query(
    database,
    "SELECT * FROM mds.gaps WHERE reason = 'not observed' AND to_ts <= $1",
    [at(14)],
  );
  expect(unobserved).toEqual([]);
  await first.close();
});

it("I9: gives the lease back at once when it stops, and the other goes on", async () => {
  const pair = await PairDatabase.create(server);
  const database = pair.name;
  const [one, two] = [openTestWarehouse(), openTestWarehouse()];
  addHours(one, 0, 1);
  addHours(two, 0, 1);
  const impatient: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 20, signal) };
  const first = startMember(member(server, database, one, "one", impatient));
  await first.reach("forwarded");
  const second = startMember(member(server, database, two, "two", impatient));
  await second.reach("standby");
  await first.end();
  await second.reach("forwarded");
  // A correction that both have seen, and only the second can forward.
  storeTicks(two, [tick(at(3), "7.5")]);
  await second.reach("forwarded", 3);
  expect(
    await server.query(database, "SELECT price_exact FROM mds.index_ticks WHERE ts = $1", [at(3)]),
  ).toEqual([{ price_exact: "7.5" }]);
  // The first joins again, waits, and takes over in turn; its older row does not undo the correction of the second.
  storeTicks(one, [tick(at(3), "7.5")]);
  const again = startMember(member(server, database, one, "one", impatient));
  await again.reach("standby");
  await second.end();
  await again.reach("forwarded", 2);
  expect(await server.query(database, "SELECT count(*)::integer AS rows FROM mds.index_ticks")).toEqual([
    { rows: 120 },
  ]);
  expect(await server.query(database, "SELECT name FROM mds.lease")).toEqual([{ name: "one" }]);
});

it("I14: has what the leader saw while it could not reach PostgreSQL", async () => {
  const { pair, one, two, first, second } = await createPair();
  const proxied = await ProxiedPostgres.start(server);
  observe(one, steps(0, 4));
  const leader = startMember({ ...first, url: proxied.url(pair.name) });
  await leader.reach("forwarded");
  await proxied.stop();
  await leader.reach("failed");
  // Its service is well. The other one misses periods 4 to 6, and takes over.
  observe(one, steps(4, 9));
  observe(two, [0, 1, 7, 8]);
  await pair.endLease();
  const successor = startMember(second);
  await successor.reach("forwarded");
  expect(await isWhole(pair, 9)).toBe(false);
  await proxied.start();
  await waitUntil(() => isWhole(pair, 9));
  await expectWhole(pair, 9);
  await waitUntil(async () => (await pair.readHolder()) === "two");
});

it("I14: loses nothing that either saw when both crash in turn", async () => {
  const { pair, one, two, first, second } = await createPair();
  observe(one, [0, 1]);
  observe(two, [1, 2]);
  await forwardAndCrash(pair, first);
  await pair.endLease();
  await forwardAndCrash(pair, second);
  // Seen a moment before the crash, and never forwarded.
  observe(two, [3, 4]);
  await pair.endLease();
  observe(one, [5, 6]);
  await forwardAndCrash(pair, first);
  observe(one, [8, 9]);
  const leader = startMember(first);
  await leader.reach("forwarded");
  observe(two, [7, 8]);
  startMember(second);
  await waitUntil(() => isWhole(pair, 10));
  await expectWhole(pair, 10);
});

it("I14: a daemon that stands by leaves alone what the leader is about to forward, and what retention has deleted", async () => {
  const { pair, one, two, first, second } = await createPair();
  observe(one, steps(0, 6));
  observe(two, steps(0, 6));
  one.transaction((transaction) => prune(transaction, "exchange_ticks", at(2)));
  const leader = startMember(first);
  await leader.reach("forwarded");
  // The last snapshot of the other one is a moment ahead.
  observe(two, [6]);
  const standby = startMember(second);
  await standby.reach("peers", 3);
  expect(await pair.readLedger("exchange_ticks")).toEqual([
    { from: at(0), to: at(2), proof: "lost" },
    { from: at(2), to: at(6), proof: "rows" },
  ]);
  expect(await pair.readTimes("btc-usd-id")).toEqual(steps(2, 6).map(at));
  expect(leader.reports.filter(({ kind }) => kind === "connected")).toHaveLength(1);
});

it("keeps no target of a history that is deselected but what was fetched, whoever has claimed it", async () => {
  const { pair, one, two, first, second } = await createPair();
  const declare = (warehouse: WarehouseWriter, names: readonly string[], from: number) =>
    warehouse.transaction((transaction) => {
      const keyOf = (name: string) =>
        ({ stream: "ohlcv", series: transaction.dictionary.getSeriesKey("GWA", name) }) as const;
      const rules = { settleDelay: 2 * STEP, period: STEP, step: 1, serviceWindow: null };
      const declared = names.map((name) => ({ key: keyOf(name), from, ...rules }));
      declareTargets(transaction, "ohlcv", declared, at(9));
      return keyOf("eth");
    });
  const readTargets = () =>
    server.query(
      pair.name,
      `SELECT s.index_id AS id, (w.from_ts - ${at(0)}) / ${STEP} AS "from", (w.to_ts - ${at(0)}) / ${STEP} AS "to"
        FROM mds.targets w JOIN mds.series s USING (series) ORDER BY 1, 2`,
    );
  declare(one, ["btc", "eth", "sol"], at(0));
  const eth = declare(two, ["btc", "eth", "sol"], at(4));
  two.transaction((transaction) => settle(transaction, eth, { from: at(5), to: at(6) }, "lost", "test"));
  await forwardAndCrash(pair, first);
  await pair.endLease();
  await forwardAndCrash(pair, second);
  // The union, as long as both select them.
  expect(await readTargets()).toEqual(["btc", "eth", "sol"].map((id) => ({ id, from: "0", to: null })));
  declare(two, ["btc"], at(4));
  await forwardAndCrash(pair, second);
  expect(await readTargets()).toEqual([
    { id: "btc", from: "0", to: null },
    { id: "eth", from: "5", to: "6" },
  ]);
});
