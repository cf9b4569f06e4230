import type { ExchangeTick } from "../../../src/model/records.ts";
import type { Micros } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import { type LiveFeed, missTicks, receiveTicks, updateFeed } from "../../../src/rule/live-period.ts";
import { moments } from "./page-specification.ts";
import {
  combinations,
  type PartCheck,
  type PartResult,
  type PartSize,
  sample,
  tryAll,
} from "./part-check.ts";
import { settled, toStoredSeries } from "./stored-content.ts";

/* What a feed says about one exchange and one batch does not depend on the others, nor on where a batch ends. */

const CADENCE = 10e6;
const nothing: LiveFeed = { cadence: CADENCE, markets: new Set(["a"]), exchanges: new Map() };
const stored = toStoredSeries({
  ...{ served: [], previews: [] },
  ledger: [settled(2 * CADENCE, 3 * CADENCE, "nothing listed")],
});

/** The rule reads no more of a tick. */
const tick = (exchangeId: string, marketId: string, ts: Micros) =>
  ({ exchangeId, marketId, ts }) as ExchangeTick;
const feedOf = (...exchanges: readonly (string | null)[]) =>
  updateFeed(nothing, { exchanges: exchanges.map((exchangeId) => ({ exchangeId, since: CADENCE / 2 })) });

const textOf = (value: unknown) =>
  JSON.stringify(value, (_, each) => (each instanceof Map || each instanceof Set ? [...each] : each));

function receive(feed: LiveFeed, batches: readonly (readonly ExchangeTick[])[], now: Micros) {
  const changes = new Map<string | null, unknown[]>();
  let after = feed;
  for (const batch of batches) {
    const received = receiveTicks(after, batch, now, () => stored);
    after = received.feed;
    for (const [exchange, own] of received.changes)
      changes.set(exchange, [...(changes.get(exchange) ?? []), ...own]);
  }
  return { exchanges: after.exchanges, changes };
}

const ticks = ["x", "y"].flatMap((exchange) =>
  ["a", "b"].flatMap((market) =>
    [0, 1, 2, 3].map((period) => tick(exchange, market, period * CADENCE + 6e6)),
  ),
);

/** Pairs of ticks that come after another one. */
function tryBatches(size: PartSize): PartResult {
  // The exchanges are alike.
  const first = ticks.filter(({ exchangeId }) => exchangeId === "x");
  const cases = combinations({ first, second: ticks, third: ticks, now: [2.5, 4] });
  return tryAll(sample(cases, size, 11), ({ first, second, third, now }) => {
    const batch = [second, third];
    const at = now * CADENCE;
    const together = receive(feedOf("x", "y", null), [[first], batch], at);
    const alone = ["x", "y", null].map((exchange) => {
      const own = (each: readonly ExchangeTick[]) =>
        each.filter(({ exchangeId }) => exchange === null || exchangeId === exchange);
      return [exchange, receive(feedOf(exchange), [own([first]), own(batch)], at)] as const;
    });
    const of = ({ exchanges, changes }: typeof together, exchange: string | null) => [
      exchanges.get(exchange),
      changes.get(exchange),
    ];
    return [
      textOf([
        ...alone.map(([exchange]) => of(together, exchange)),
        receive(feedOf("x"), [[first, second]], at).exchanges,
      ]),
      textOf([
        ...alone.map(([exchange, own]) => of(own, exchange)),
        receive(feedOf("x"), [[first], [second]], at).exchanges,
      ]),
    ];
  });
}

interface Seen {
  readonly markets: Set<string>;
  hasRows: boolean;
  settled?: "rows" | "empty";
}

/** What one subscription settles, tick by tick, as docs/promise.md says it: by period, the last proof. */
function specifyPeriods(exchangeId: string | null, since: Micros, now: Micros, own: readonly ExchangeTick[]) {
  const seen = new Map<Micros, Seen>();
  const proofs = new Map<Micros, string>();
  const present = now + 2e6;
  for (const { ts, exchangeId: of, marketId } of own) {
    const at = ts - (ts % CADENCE);
    const isSelected = marketId === "a";
    const isOver = !seen.has(at) && [...seen.keys()].some((begun) => begun <= now && begun > at);
    if (isSelected && (isOver || at < since) && at === 2 * CADENCE) proofs.set(at, "rows");
    if (!isOver && ts >= since) {
      const period = seen.get(at) ?? { markets: new Set(), hasRows: false };
      period.markets.add(exchangeId === null ? `${of} of ${marketId}` : marketId);
      period.hasRows ||= isSelected;
      seen.set(at, period);
    }
    const ascending = [...seen].sort(([a], [b]) => a - b);
    for (const [i, [from, period]] of ascending.entries()) {
      const [before, next] = [ascending[i - 1], ascending[i + 1]];
      const hasAll =
        before && before[0] >= since && [...before[1].markets].every((each) => period.markets.has(each));
      const isEnded = next !== undefined && from + CADENCE <= present;
      const proof = period.hasRows ? "rows" : "empty";
      const isWhole =
        period.settled !== undefined || (from >= since && from <= present && (hasAll || isEnded));
      if (!isWhole || period.settled === proof) continue;
      period.settled = proof;
      proofs.set(from, proof);
    }
    const begun = ascending.filter(([from]) => from <= now);
    for (const [from] of begun.slice(0, -2)) seen.delete(from);
  }
  return proofs;
}

/** Periods that begin with the subscription, now, or as far ahead as clocks may differ. */
function tryPeriods(size: PartSize): PartResult {
  const kinds = [tick("x", "a", 0), tick("x", "b", 6e6), tick("y", "b", 6e6)];
  const times = [0, 1, 2, 3].flatMap((at) => kinds.map((each) => ({ ...each, ts: each.ts + at * CADENCE })));
  const bounds = { exchange: ["x", null], since: [0.5, 1], now: [2.5, 2.8, 3, 4] };
  const three = combinations({ ...bounds, last: [undefined], first: times, second: times, third: times });
  // Only the fourth may be of a period that is no longer kept.
  const own = times.filter(({ exchangeId, ts }) => exchangeId === "x" && ts >= CADENCE);
  const four = combinations({ ...bounds, exchange: ["x"], last: own, first: own, second: own, third: own });
  const ascending = (proofs: ReadonlyMap<Micros, string>) => [...proofs].sort(([a], [b]) => a - b);
  const cases = sample([...three, ...four], size, 11);
  return tryAll(cases, ({ exchange, since, now, first, second, third, last }) => {
    const given = [first, second, third, ...(last ? [last] : [])].filter(
      ({ exchangeId }) => exchange === null || exchangeId === exchange,
    );
    let feed = updateFeed(nothing, { exchanges: [{ exchangeId: exchange, since: since * CADENCE }] });
    const proofs = new Map<Micros, string>();
    for (const each of given) {
      const received = receiveTicks(feed, [each], now * CADENCE, () => stored);
      feed = received.feed;
      const lists = [...received.changes.values()];
      for (const change of lists.flat())
        if (change.kind === "settle") proofs.set(change.range.from, change.proof);
      if (lists.some((list) => list.length === 0)) proofs.set(each.ts, "a list without a change");
    }
    const wanted = specifyPeriods(exchange, since * CADENCE, now * CADENCE, given);
    return [ascending(proofs), ascending(wanted)];
  });
}

/** Every period that a range touches. */
function tryMissing(): PartResult {
  const bounds = combinations({ from: [0, 1, 4, 5, 9, 10], to: [0, 1, 4, 5, 6, 10, 14] });
  const isPossible = ({ from, to }: TimeRange) => from < to || (from === to && from % 5 === 0);
  return tryAll([...bounds].filter(isPossible), ({ from, to }) => {
    const opened = missTicks({ from, to }, 5).flatMap((change) =>
      change.kind === "retract" ? moments(change.range) : [],
    );
    const wanted = moments({ from: from - (from % 5), to: to + ((5 - (to % 5)) % 5) });
    return [opened, wanted];
  });
}

/** An update that says nothing of the exchanges. */
function tryUpdates(): PartResult {
  const cadences = Array.from({ length: 12 }, (_, at) => at + 1);
  return tryAll(cadences, (cadence) => [updateFeed(feedOf("x"), { cadence }).exchanges.has("x"), true]);
}

export const liveChecks: readonly PartCheck[] = [
  { name: "missTicks", run: tryMissing },
  { name: "updateFeed", run: tryUpdates },
  { name: "receiveTicks", run: tryBatches },
  { name: "periods", run: tryPeriods },
];
