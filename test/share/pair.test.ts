import { expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { openShare, shareOnce } from "../../src/share/share-once.ts";
import { usePostgres } from "../support/postgres.ts";
import { at, member, observe, PairDatabase, startMember, steps } from "../support/share/pair-members.ts";
import { addHours } from "../support/share/share-harness.ts";
import { waitUntil } from "../support/wait-until.ts";
import { openTestWarehouse } from "../support/warehouse/open-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { storeTicks } from "../support/warehouse/write-records.ts";

const server = usePostgres();
const MAX_LOOK_INTERVAL_MS = 1_000;

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
  const hasty: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 20, signal) };
  const options = { leaseSeconds: 600, clock: hasty };
  const first = startMember({ ...member(server, database, one, "one", systemClock), ...options });
  await first.reach("forwarded");
  const second = startMember({ ...member(server, database, two, "two", systemClock), ...options });
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
  const again = startMember({ ...member(server, database, one, "one", systemClock), ...options });
  await again.reach("standby");
  await second.end();
  await again.reach("forwarded", 2);
  expect(await server.query(database, "SELECT count(*)::integer AS rows FROM mds.index_ticks")).toEqual([
    { rows: 120 },
  ]);
  expect(await server.query(database, "SELECT name FROM mds.lease")).toEqual([{ name: "one" }]);
});
