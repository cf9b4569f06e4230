import { MICROS_PER_SECOND, type Micros } from "../model/instant.ts";
import type { DerivativeTick, ExchangeTick, MarketCap } from "../model/records.ts";
import type { ObservedStream } from "../warehouse/observations.ts";
import { countUnknownFields, keepRejects } from "../warehouse/oddities.ts";
import type { Transaction } from "../warehouse/transaction.ts";
import type { Warehouse } from "../warehouse/warehouse.ts";
import { type Written, writeRecords } from "../warehouse/write-rows.ts";
import type { HeldPages } from "./held-pages.ts";

/** One page of a latest-only stream, read before. */
export interface SnapshotPage {
  readonly stream: ObservedStream;
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
  stream: ObservedStream,
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
