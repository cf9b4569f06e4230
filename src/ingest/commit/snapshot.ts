import type { DerivativeTick, ExchangeTick, MarketCap } from "../../model/records.ts";
import type { SnapshotStream } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { observe, wasObserved } from "../../warehouse/coverage/snapshot-coverage.ts";
import { countUnknownFields, keepRejects } from "../../warehouse/rows/rejects.ts";
import { type Written, writeRecords } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { Warehouse } from "../../warehouse/writer.ts";
import type { HeldPages } from "../decode/pending-pages.ts";

/** One page of a latest-only stream, read before. */
export interface SnapshotPage {
  readonly stream: SnapshotStream;
  readonly held: number;
  /** Of exchange ticks: only these markets are kept; left out: all. */
  readonly markets?: ReadonlySet<string>;
  /** The request without secrets, for `rejects`. */
  readonly request: string;
}

export interface SnapshotCommit {
  readonly written: Written;
  /** Records that could be read, whether or not they were kept. */
  readonly listed: number;
  readonly rejected: number;
  /** The newest believable moment of the records; and of those that were kept. */
  readonly newest: Micros | undefined;
  readonly newestKept: Micros | undefined;
}

/** A record from further ahead of the service's clock says nothing about when the list was true. */
const SKEW_BORNE = 10 * MICROS_PER_SECOND;

/** Stores what a latest-only endpoint said. That it was the whole of it is another statement: `commitObservation`. */
export function commitSnapshot(warehouse: Warehouse, pages: HeldPages, page: SnapshotPage): SnapshotCommit {
  const { stream, markets } = page;
  const { records, rejects, unknownFields } = pages.get(stream, page.held);
  return warehouse.transaction((transaction) => {
    keepRejects(transaction, stream, rejects, page.request);
    countUnknownFields(transaction, stream, unknownFields);
    const kept =
      stream === "exchange_ticks" && markets
        ? (records as ExchangeTick[]).filter(({ marketId }) => markets.has(marketId))
        : records;
    const latest = transaction.now + SKEW_BORNE;
    return {
      written: write(transaction, stream, kept),
      listed: records.length,
      rejected: rejects.length,
      newest: newestUntil(latest, records),
      newestKept: newestUntil(latest, kept),
    };
  });
}

type SnapshotRecord = ExchangeTick | MarketCap | DerivativeTick;

function write(
  transaction: Transaction,
  stream: SnapshotStream,
  records: readonly SnapshotRecord[],
): Written {
  switch (stream) {
    case "exchange_ticks":
      return writeRecords(transaction, stream, records as ExchangeTick[], "rest");
    case "market_caps":
      return writeRecords(transaction, stream, records as MarketCap[], "rest");
    case "derivative_ticks":
      return writeRecords(transaction, stream, records as DerivativeTick[], "rest");
  }
}

function newestUntil(latest: Micros, records: readonly SnapshotRecord[]): Micros | undefined {
  let newest: Micros | undefined;
  for (const { ts } of records) if (ts <= latest && (newest === undefined || ts > newest)) newest = ts;
  return newest;
}

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
  readonly stream: SnapshotStream;
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
