import type { Micros } from "../model/instant.ts";
import type { DerivativeTick, ExchangeTick, MarketCap } from "../model/records.ts";
import { type Observation, type ObservedStream, observe } from "../warehouse/observations.ts";
import { countUnknownFields, keepRejects } from "../warehouse/oddities.ts";
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
  readonly rejected: number;
  /** The newest moment of the page's records, those included that were not kept. */
  readonly newest: Micros | undefined;
}

/** Stores what a latest-only endpoint said. That it was the whole of it is another statement: `observeAll`. */
export function commitSnapshot(warehouse: Warehouse, pages: HeldPages, page: SnapshotPage): SnapshotCommit {
  const { stream, markets } = page;
  const { records, rejects, unknownFields } = pages.get(stream, page.held);
  const newest = records.reduce<Micros | undefined>(
    (latest, { ts }) => (latest === undefined || ts > latest ? ts : latest),
    undefined,
  );
  return warehouse.transaction((transaction) => {
    keepRejects(transaction, stream, rejects, page.request);
    countUnknownFields(transaction, stream, unknownFields);
    const write = () => {
      switch (stream) {
        case "exchange_ticks": {
          const ticks = records as ExchangeTick[];
          const kept = markets ? ticks.filter(({ marketId }) => markets.has(marketId)) : ticks;
          return writeRecords(transaction, stream, kept, "rest");
        }
        case "market_caps":
          return writeRecords(transaction, stream, records as MarketCap[], "rest");
        case "derivative_ticks":
          return writeRecords(transaction, stream, records as DerivativeTick[], "rest");
      }
    };
    return { written: write(), rejected: rejects.length, newest };
  });
}

/** Enters that these subscriptions were seen whole. */
export function observeAll(warehouse: Warehouse, observations: readonly Observation[]): void {
  warehouse.transaction((transaction) => {
    for (const observation of observations) observe(transaction, observation);
  });
}
