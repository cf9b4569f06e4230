import { expect, it } from "vitest";
import { normalise } from "../../src/model/time-range.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { openShare, type ShareOptions } from "../../src/share/share-once.ts";
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
import { waitUntil } from "../support/wait-until.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { settle } from "../support/warehouse/settle.ts";

const server = usePostgres();
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
