import type { Micros } from "../model/instant.ts";
import { type ObservedStream, observe, wasObserved } from "../warehouse/observations.ts";
import type { Transaction } from "../warehouse/transaction.ts";
import type { Warehouse } from "../warehouse/warehouse.ts";

/** What the pages of one list of a latest-only endpoint said, all of them together. */
export interface ListSeen {
  /** Tells the lists of one subscription apart: the type of derivatives; empty where there is one. */
  readonly part: string;
  /** Records that could be read. */
  readonly listed: number;
  readonly rejected: number;
  /** Of each page that had one, the newest believable moment; and that of what was kept of it. */
  readonly moments: readonly Micros[];
  readonly keptMoments: readonly Micros[];
}

/** All lists of a subscription, taken and stored. */
export interface SubscriptionSeen {
  readonly stream: ObservedStream;
  /** Null: the subscription is to everything. */
  readonly exchangeId: string | null;
  readonly cadence: Micros;
  readonly lists: readonly ListSeen[];
}

/**
 * Why lists are not believed to be what the service has: most of their records could not be read, they have become less than
 * half of what they were, or there is nothing in them although there must be something.
 */
export type Doubt = "unreadable" | "shrunken" | "empty";

/** Pages and lists that were made while others were asked for lie no further apart than this. */
const TORN_CADENCES = 2;

/** Decides which lists count as observations; remembers how long they were. */
export class ObservedLists {
  /** How many records a list had when it was last believed. */
  readonly #listed = new Map<string, number>();
  /** Lists that came too short, or with nothing: another such answer confirms it. */
  readonly #doubted = new Set<string>();

  /** Enters the observation; or says why it is none. */
  commit(warehouse: Warehouse, seen: SubscriptionSeen): Doubt | undefined {
    return warehouse.transaction((transaction) => {
      const isNothing = seen.lists.every(({ listed, rejected }) => listed + rejected === 0);
      const doubts = isNothing
        ? [this.#doubtNothing(transaction, seen)]
        : seen.lists.map((list) => this.#doubt(seen, list));
      const doubt = doubts.find((each) => each !== undefined);
      if (doubt === undefined) enter(transaction, seen);
      return doubt;
    });
  }

  /** One exchange may have nothing to show. All of them together always have, and so has one that had, until it is said twice. */
  #doubtNothing(transaction: Transaction, seen: SubscriptionSeen): Doubt | undefined {
    if (seen.exchangeId === null) return "empty";
    return wasObserved(transaction, seen) ? this.#firstTime(keyOf(seen, "all"), "empty") : undefined;
  }

  #doubt(seen: SubscriptionSeen, { part, listed, rejected, moments }: ListSeen): Doubt | undefined {
    if (rejected > listed || (listed > 0 && moments.length === 0)) return "unreadable";
    const key = keyOf(seen, part);
    const doubt = listed * 2 < (this.#listed.get(key) ?? 0) ? this.#firstTime(key, "shrunken") : undefined;
    if (doubt !== undefined) return doubt;
    this.#listed.set(key, listed);
    this.#doubted.delete(key);
    this.#doubted.delete(keyOf(seen, "all"));
    return undefined;
  }

  #firstTime(key: string, doubt: Doubt): Doubt | undefined {
    if (this.#doubted.has(key)) return undefined;
    this.#doubted.add(key);
    return doubt;
  }
}

function keyOf({ stream, exchangeId }: SubscriptionSeen, part: string): string {
  return `${stream} ${part} ${exchangeId ?? ""}`;
}

function enter(transaction: Transaction, { stream, exchangeId, cadence, lists }: SubscriptionSeen): void {
  // Of lists or pages of several moments the oldest counts: none is claimed for a moment at which it was not seen yet.
  // But for what lies far behind the newest: that is a market that stands still, and all were seen.
  const moments = lists.flatMap((list) => list.moments);
  const newest = Math.max(...moments);
  const current = moments.filter((each) => newest - each <= TORN_CADENCES * cadence);
  const moment = moments.length === 0 ? transaction.now : Math.min(...current);
  const at = Math.floor(moment / cadence) * cadence;
  const isInIt = (kept: Micros) => kept >= at && kept < at + cadence;
  const isEmpty = !lists.some(({ keptMoments }) => keptMoments.some(isInIt));
  observe(transaction, { stream, exchangeId, at, cadence, isEmpty });
}
