import type { TimeRange } from "../../../src/model/time-range.ts";
import { isIn } from "../memory-ledger.ts";
import { SnapshotClient } from "./snapshot-client.ts";
import {
  isRegular,
  isSelected,
  type Listed,
  listOf,
  marketsOf,
  refreshAt,
  refreshSlot,
  refreshTs,
  type SnapshotWorld,
} from "./snapshot-world.ts";

/**
 * Of each covered period the warehouse has what the service listed in it. If the service makes more or fewer lists than one in
 * each cadence, the warehouse has one that stood in the period.
 */
export function findFalseCoverage(client: SnapshotClient, isStrict = false): string | undefined {
  const { ledger, world, now } = client;
  const lists = Array.from({ length: refreshAt(world, now) + 1 }, (_, refresh) => listOf(world, refresh));
  for (const range of ledger) {
    if (range.proof === "lost") continue;
    // The service's clock may be two seconds ahead.
    if (range.to - world.cadence > client.present + 2_000_000)
      return `${describe(range)} is covered before it begins`;
    const inRange = lists.flat().filter(({ ts }) => isIn(range, ts) && (ts <= client.present || world.ahead));
    const listed = inRange.filter((each) =>
      isStrict ? isSelected(world, each.market) : isJudged(world, each),
    );
    // After an empty list the first records of a market may come.
    const rows = inRange.filter((each) => isJudged(world, each) || !client.isPolled);
    const row = range.proof === "empty" && rows.find(({ name }) => client.stored.includes(name));
    if (row) return `${describe(range)} is empty, and has ${row.name}`;
    const what = isRegular(world) ? findMissing(client, listed) : findUnseen(client, range);
    if (what !== undefined) return `${describe(range)} is covered without ${what}`;
  }
  return undefined;
}

/** The socket says nothing of a market before its first tick, and a tick that is stamped ahead may precede the subscription. */
function isJudged(world: SnapshotWorld, { market, refresh }: Listed): boolean {
  return (
    isSelected(world, market) &&
    marketsOf(world, refresh - 1).includes(market) &&
    !world.ahead?.includes(market)
  );
}

/** The record that is not stored. Until it is noticed, nobody can tell a silent market from one that has left. */
function findMissing(
  { stored, silentMarket }: SnapshotClient,
  listed: readonly Listed[],
): string | undefined {
  return listed.find(({ market, name }) => !stored.includes(name) && market !== silentMarket)?.name;
}

/** A period of the range in which no stored list stood. Before the first one stood an empty one. */
function findUnseen({ stored, world, now }: SnapshotClient, range: TimeRange): string | undefined {
  const { cadence } = world;
  const refreshes = Array.from({ length: refreshAt(world, now) + 2 }, (_, i) => i - 1);
  for (let from = range.from; from < range.to; from += cadence) {
    const standing = refreshes.filter(
      (refresh) => refreshTs(world, refresh) < from + cadence && refreshTs(world, refresh + 1) > from,
    );
    const isStored = (refresh: number) =>
      listOf(world, refresh).every(({ market, name }) => !isSelected(world, market) || stored.includes(name));
    if (standing.length > 0 && !standing.some(isStored)) return `a list of [${from}, ${from + cadence})`;
  }
  return undefined;
}

const HONEST_SLOTS = 10;

/** With an honest service, and no further kill, the periods that follow are covered. */
export function findUncovered(from: SnapshotClient, steps: readonly string[]): string | undefined {
  for (const way of ["socket", "poll"].filter((each) => steps.includes(each))) {
    const client = new SnapshotClient(from.world, from);
    if (way === "socket") {
      client.noticeSilence();
      if (!client.connection) client.connect();
    }
    for (let i = 0; i < HONEST_SLOTS; i++) {
      client.advance();
      client.commitAll();
      if (way === "poll") client.poll("honest");
    }
    const what = findOpen(client, way);
    if (what !== undefined) return what;
    const wrong = findFalseCoverage(client);
    if (wrong !== undefined) return `with an honest service: ${wrong}`;
  }
  return undefined;
}

function findOpen(client: SnapshotClient, way: string): string | undefined {
  const { world, now, ledger } = client;
  const refresh = refreshAt(world, now) - 1;
  // Without a market the socket sends nothing, and all exchanges together are never empty.
  if (marketsOf(world, refresh) === "" && (way === "socket" || world.subscription === null)) return undefined;
  const from = Math.floor(refreshSlot(world, refresh) / 2) * world.cadence;
  const covered = ledger.find((range) => isIn(range, from));
  const isCovered = covered && covered.proof !== "lost" && covered.to >= from + world.cadence;
  return isCovered ? undefined : `[${from}, ${from + world.cadence}) is open with an honest ${way}`;
}

function describe({ from, to }: TimeRange): string {
  return `[${from}, ${to})`;
}
