import type { IndexType } from "../model/stream-columns.ts";
import type { DerivativeType, HistoryStream } from "../model/streams.ts";
import type { Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";
import type { Choices } from "./choices.ts";
import type { Session } from "./session.ts";

/** What the API serves: a simulated market, or a warehouse. Records are JSON texts. */
export interface Source {
  readonly choices: Choices;
  /** Runs `read` on one state of the data. `nowMs`: now by the clock of this server. */
  read<T>(nowMs: number, read: (state: SourceState) => T): T;
  /** Answers about the present hold while it stays the same. Without it they are never kept. */
  version?(): string;
  /** Sends ticks to the audience from its first subscription on. */
  follow(audience: Audience): Feed;
  /** The feed of one connection, if its query requests a replay. Throws an ApiError. */
  openReplay?(query: URLSearchParams): ReplayRequest | undefined;
}

export const entityKinds = ["asset", "market", "exchange"] as const;
export type EntityKind = (typeof entityKinds)[number];
export type ContractFilter = "ACTIVE" | "ALL" | "EXPIRED";

export interface SeriesFilter {
  readonly indexType?: IndexType | undefined;
  readonly indexId?: string | undefined;
}

/** One state of the data. */
export interface SourceState {
  /** By the clock of the service. */
  readonly now: Micros;
  /** Headers of every response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** `filter`: values by property. One that is selected by its id may have been delisted. */
  entities(kind: EntityKind, filter: Readonly<Record<string, string | undefined>>): readonly string[];
  /** The ids of the markets of a pair, joined by an underscore: several if they share their symbols. */
  findMarkets(name: string): readonly string[];
  /** By rank. Without a selected index it has those with records. */
  findSeries(stream: HistoryStream, filter: SeriesFilter): readonly HistorySeries[];
  /** The key of the listing whose ticker has this id; undefined: none. */
  findListing(tickerId: string): number | undefined;
  /** The newest ticker of each listing, by key. */
  exchangeTickers(request: ExchangeTickersRequest): readonly { readonly id: string; readonly text: string }[];
  marketCaps(assetId: string | undefined, withChanges: boolean): readonly string[];
  /** One that is selected by its id may have been delisted. */
  contracts(type: DerivativeType, include: ContractFilter, filter: ContractsFilter): readonly string[];
  derivativeTickers(type: DerivativeType, filter: ContractsFilter): readonly string[];
}

export interface ContractsFilter {
  readonly exchangeId?: string | undefined;
  readonly marketId?: string | undefined;
  readonly contractId?: string | undefined;
}

export interface ExchangeTickersRequest {
  readonly exchangeId: string | undefined;
  /** Each must equal that of the listing. */
  readonly marketIds: readonly string[];
  /** The smallest key. */
  readonly firstKey: number;
  readonly limit: number;
}

export interface HistoryRecord {
  readonly ts: Micros;
  readonly text: string;
}

/** One index in one history. */
export interface HistorySeries {
  readonly indexType: string;
  /** The order of records with the same timestamp. Their ids contain it. */
  readonly rank: number;
  /** An index that never has records. */
  readonly isEmpty?: boolean;
  /** `timestamp` is compared with a time this long after that of a record. */
  readonly bound?: Micros;
  /** The records of `[from, to)`, newest first. */
  read(from: Micros, to: Micros, limit: number): readonly HistoryRecord[];
  /** The newest one; one from the future is not the latest. */
  latest(): HistoryRecord | undefined;
  /** The id, of the form of `createRowIds`, that names the record at a timestamp. */
  cursorAt(ts: Micros): string;
  /** The timestamp of a record with an id that is no cursor. */
  findRecord?(id: string): Micros | undefined;
  /** What is known below `end`, newest first, without a gap between them. Without it everything is covered. */
  segments?(end: Micros): Iterable<CoverageSegment>;
}

/** A part of a history: covered, or what `X-Mds-Coverage` says of it. */
export interface CoverageSegment extends TimeRange {
  /** Those of the view `gaps`; `empty`: there are no records. */
  readonly state: "covered" | "empty" | "open" | "unconfirmed" | "lost";
  readonly reason: string | null;
}

export interface Audience {
  /** Everything that someone is subscribed to. */
  readonly topics: ReadonlySet<string>;
  readonly hasSubscribers: boolean;
  /** Sends each message to whoever has one of its topics. */
  deliver(news: readonly TickNews[]): void;
}

export interface TickNews {
  readonly topics: readonly string[];
  readonly texts: readonly string[];
}

export interface Feed {
  /** Call it after each change of subscriptions. */
  subscriptionsChanged(topics: readonly string[]): void;
  stop(): void;
}

export interface ReplayRequest {
  /** The timestamp of its events. */
  readonly from: Micros;
  open(session: Session): Feed;
}
