import type { ExchangeTick } from "../model/records.ts";
import type { Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";
import { disprovedRanges, type LedgerChange } from "./apply.ts";
import { latestPresent, type StoredCoverage, settlePeriod } from "./snapshot.ts";

/** What the socket delivers, and what it has delivered of the present periods. A batch that fails leaves it as it was. */
export interface LiveFeed {
  /** How long one tick is valid. */
  readonly cadence: Micros;
  /** Markets whose ticks are stored; null: all. */
  readonly markets: ReadonlySet<string> | null;
  /** The exchanges whose subscriptions are all confirmed; null: all exchanges together. */
  readonly exchanges: ReadonlyMap<string | null, LiveExchange>;
}

interface LiveExchange {
  /** When the last of its subscriptions was confirmed: everything since then was delivered. */
  readonly since: Micros;
  /** Ascending: the newest one that has begun, the one before, and those of ticks that are stamped ahead. */
  readonly periods: readonly LivePeriod[];
}

/** A cadence period with ticks of an exchange. */
interface LivePeriod {
  readonly at: Micros;
  /** The markets that ticked in it, with their exchange. */
  readonly markets: ReadonlySet<string>;
  /** One of them is selected. */
  readonly hasRows: boolean;
  /** The ledger has it, with rows or as empty; undefined: it does not. */
  readonly settledWithRows: boolean | undefined;
}

/** What has changed about the subscriptions; what is absent has not. */
export interface LiveFeedUpdate {
  readonly cadence?: Micros;
  readonly markets?: ReadonlySet<string> | null;
  /** All exchanges whose subscriptions are confirmed. */
  readonly exchanges?: readonly { readonly exchangeId: string | null; readonly since: Micros }[];
}

/** After an interruption or a new subscription the present period is incomplete: an exchange with another `since` begins anew. */
export function updateFeed(feed: LiveFeed, update: LiveFeedUpdate): LiveFeed {
  const { cadence = feed.cadence, markets = feed.markets, exchanges } = update;
  const live = exchanges?.map(({ exchangeId, since }) => {
    const known = feed.exchanges.get(exchangeId);
    return [exchangeId, known?.since === since ? known : { since, periods: [] }] as const;
  });
  return { cadence, markets, exchanges: live ? new Map(live) : feed.exchanges };
}

/** A batch is lost for good: until the subscriptions are confirmed anew, the socket proves nothing. */
export function interruptFeed(feed: LiveFeed): LiveFeed {
  return { ...feed, exchanges: new Map() };
}

/** Ticks of the range are missing. The last one before may have come late: the period in which it came is open too. */
export function missTicks({ from, to }: TimeRange, cadence: Micros): LedgerChange[] {
  const begin = Math.floor(from / cadence) * cadence;
  const end = Math.ceil(to / cadence) * cadence;
  return begin < end ? [{ kind: "retract", range: { from: begin, to: end } }] : [];
}

/** What a batch of ticks, none of them from the future, changes: the feed, and the ledger of each exchange. */
export function receiveTicks(
  feed: LiveFeed,
  ticks: readonly ExchangeTick[],
  now: Micros,
  storedOf: (exchangeId: string | null) => StoredCoverage,
): { readonly feed: LiveFeed; readonly changes: ReadonlyMap<string | null, readonly LedgerChange[]> } {
  const exchanges = new Map(feed.exchanges);
  const changes = new Map<string | null, readonly LedgerChange[]>();
  const byExchange = Map.groupBy<string | null, ExchangeTick>(ticks, ({ exchangeId }) => exchangeId);
  for (const [exchangeId, live] of feed.exchanges) {
    const own = exchangeId === null ? ticks : (byExchange.get(exchangeId) ?? []);
    const added = addTicks(live, own, feed, now);
    const received = settleWhole(added.live, feed.cadence, now);
    exchanges.set(exchangeId, received.live);
    const stored = storedOf(exchangeId);
    const rangeOf = (at: Micros) => ({ from: at, to: at + feed.cadence });
    // Settled as empty, and a row of it came after a reconnect, or late.
    const isDisproved = (at: Micros) => disprovedRanges(stored.settledRanges(rangeOf(at)), [at]).length > 0;
    const settled = [
      ...received.whole.flatMap(({ at, hasRows }) => settlePeriod(rangeOf(at), hasRows, stored)),
      ...[...added.unproven].filter(isDisproved).flatMap((at) => settlePeriod(rangeOf(at), true, stored)),
    ];
    if (settled.length > 0) changes.set(exchangeId, settled);
  }
  return { feed: { ...feed, exchanges }, changes };
}

/**
 * Adds the ticks to their periods; those of a period that is long over count no more.
 * `unproven`: the periods with rows that the subscription does not prove.
 */
function addTicks(
  { since, periods }: LiveExchange,
  ticks: readonly ExchangeTick[],
  { cadence, markets }: LiveFeed,
  now: Micros,
): { readonly live: LiveExchange; readonly unproven: ReadonlySet<Micros> } {
  const unproven = new Set<Micros>();
  const touched = new Map<Micros, LivePeriod & { markets: Set<string>; hasRows: boolean }>();
  let begun = periods.findLast(({ at }) => at <= now)?.at ?? Number.NEGATIVE_INFINITY;
  for (const { ts, exchangeId, marketId } of ticks) {
    const at = Math.floor(ts / cadence) * cadence;
    const known = touched.get(at) ?? periods.find((each) => each.at === at);
    const isRow = markets?.has(marketId) ?? true;
    const isLate = at < begun && !known;
    if (isRow && (isLate || at < since)) unproven.add(at);
    if (isLate) continue;
    if (at <= now) begun = Math.max(begun, at);
    let period = touched.get(at);
    if (!period) {
      const { hasRows = false, settledWithRows } = known ?? {};
      period = { at, markets: new Set(known?.markets), hasRows, settledWithRows };
      touched.set(at, period);
    }
    period.markets.add(`${exchangeId} ${marketId}`);
    if (isRow) period.hasRows = true;
  }
  const untouched = periods.filter(({ at }) => !touched.has(at));
  const added = [...untouched, ...touched.values()].sort((a, b) => a.at - b.at);
  return { live: { since, periods: added }, unproven };
}

/**
 * A period is whole once every market of the period before has ticked in it: like a snapshot, one tick of each covers it.
 * A market may have left, so once it is over a tick of a later period settles it too. One that has not begun is not settled.
 */
function settleWhole({ since, periods }: LiveExchange, cadence: Micros, now: Micros) {
  const present = latestPresent(now);
  const isWhole = ({ at, markets, settledWithRows }: LivePeriod, i: number) => {
    if (settledWithRows !== undefined) return true;
    if (at < since || at > present) return false;
    const before = periods[i - 1];
    const isOver = i < periods.length - 1 && at + cadence <= present;
    // The period of the subscription itself is incomplete.
    return isOver || (before !== undefined && before.at >= since && before.markets.isSubsetOf(markets));
  };
  const whole = periods.filter(
    (period, i) => period.settledWithRows !== period.hasRows && isWhole(period, i),
  );
  const settled = periods.map((period) =>
    whole.includes(period) ? { ...period, settledWithRows: period.hasRows } : period,
  );
  const begun = periods.findLastIndex(({ at }) => at <= now);
  return { live: { since, periods: settled.slice(Math.max(0, begun - 1)) }, whole };
}
