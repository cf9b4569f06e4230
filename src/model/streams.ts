import type { Column } from "./column.ts";
import {
  assetColumns,
  derivativeContractColumns,
  derivativeTickColumns,
  exchangeColumns,
  exchangeTickColumns,
  indexTickColumns,
  marketCapColumns,
  marketColumns,
  ohlcvColumns,
} from "./stream-columns.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "./time.ts";

/* Limits that the service documents. */

/** How long the service keeps intraday values, in days. */
export const INTRADAY_DAYS = 200;
export const INTRADAY_WINDOW: Micros = INTRADAY_DAYS * MICROS_PER_DAY;
/** The service has no intraday values from before this day. */
export const INTRADAY_BEGINS: Micros = Date.UTC(2019, 5, 1) * 1000;
/** The default refresh period of intraday values and exchange tickers. */
export const DEFAULT_CADENCE: Micros = 30 * MICROS_PER_SECOND;
/** The maximum number of records per page. */
export const MAX_PAGE_SIZE = 2000;

export const derivativeTypes = ["futures", "perpetuals", "options"] as const;
export type DerivativeType = (typeof derivativeTypes)[number];

interface StreamDefinition {
  /** `history`: pages reach back; `snapshot`: only the latest state is served; `lookup`: a list of entities. */
  readonly kind: "history" | "snapshot" | "lookup";
  /** The path below /v3, as a template. */
  readonly endpoint: string;
  /** The scope that the service documents for the endpoint; null: not documented. */
  readonly scope: string | null;
  /** The key below `sync` in the settings. */
  readonly setting: "lookups" | "ohlcv" | "intraday" | "exchangeTickers" | "marketCap" | "derivatives";
  /** The websocket event that carries its records; null: REST only. */
  readonly event: string | null;
  /** The period between two records of a series; null: the settings define it. */
  readonly cadence: Micros | null;
  /** A covered range of the ledger begins and ends at multiples of this. */
  readonly step: Micros;
  /** How far back the service serves; null: unlimited. */
  readonly window: Micros | null;
  /** Rows may change until they are settled; such a change is not a revision. */
  readonly isProvisional: boolean;
  /** The measured size of an ordinary row, with indexes and page overhead. */
  readonly bytesPerRow: number;
  /** The SQL table. If quants read the stream through a view, the view has the stream's name. */
  readonly table: string;
  /** The dictionary of keys that the primary key refers to; null: the table is keyed by the service's id. */
  readonly dictionary: Dictionary | null;
  readonly columns: readonly Column[];
  /** Known properties without a column: other timestamps, lists with their own table, and redundant ones (`id`). */
  readonly otherFields: readonly string[];
}

/** A table that gives the service's ids small integer keys. */
export type Dictionary = "series" | "listings" | "contracts";

export const keyColumns: Readonly<Record<Dictionary, string>> = {
  series: "series",
  listings: "listing",
  contracts: "contract",
};

const lookup = {
  kind: "lookup",
  scope: null,
  setting: "lookups",
  event: null,
  cadence: null,
  step: 1,
  window: null,
  isProvisional: false,
  dictionary: null,
  otherFields: [],
} as const;

const snapshot = {
  kind: "snapshot",
  event: null,
  cadence: null,
  step: 1,
  window: null,
  isProvisional: false,
  otherFields: ["id"],
} as const;

/** Everything that differs between streams. The keys are the names in SQL, flags, JSON and metrics. */
export const streamTable = {
  assets: { ...lookup, endpoint: "/asset", bytesPerRow: 200, table: "assets", columns: assetColumns },
  markets: { ...lookup, endpoint: "/market", bytesPerRow: 160, table: "market_rows", columns: marketColumns },
  exchanges: {
    ...lookup,
    endpoint: "/exchange",
    bytesPerRow: 200,
    table: "exchanges",
    columns: exchangeColumns,
    otherFields: ["markets", "symbols"],
  },
  derivative_contracts: {
    ...lookup,
    endpoint: "/derivatives/contract/{derivativeType}",
    scope: "read:derivatives",
    setting: "derivatives",
    bytesPerRow: 260,
    table: "contracts",
    columns: derivativeContractColumns,
  },
  ohlcv: {
    kind: "history",
    endpoint: "/ohlcv",
    scope: "read:ohlcv",
    setting: "ohlcv",
    event: null,
    cadence: MICROS_PER_DAY,
    step: MICROS_PER_DAY,
    window: null,
    isProvisional: true,
    bytesPerRow: 175,
    table: "daily_bar_rows",
    dictionary: "series",
    columns: ohlcvColumns,
    otherFields: ["startTimestamp", "endTimestamp", "timestamp"],
  },
  index_ticks: {
    kind: "history",
    endpoint: "/index-ticker",
    scope: "read:index-ticker",
    setting: "intraday",
    event: "INDEX_TICKER",
    cadence: null,
    step: 1,
    window: INTRADAY_WINDOW,
    isProvisional: false,
    bytesPerRow: 46,
    table: "index_tick_rows",
    dictionary: "series",
    columns: indexTickColumns,
    otherFields: ["id", "event"],
  },
  exchange_ticks: {
    ...snapshot,
    endpoint: "/exchange-ticker",
    scope: "read:exchange-ticker",
    setting: "exchangeTickers",
    event: "EXCHANGE_TICKER",
    bytesPerRow: 65,
    table: "exchange_tick_rows",
    dictionary: "listings",
    columns: exchangeTickColumns,
    otherFields: ["id", "event"],
  },
  market_caps: {
    ...snapshot,
    endpoint: "/market-cap",
    scope: "read:market-cap",
    setting: "marketCap",
    bytesPerRow: 224,
    table: "market_cap_rows",
    dictionary: "series",
    columns: marketCapColumns,
  },
  derivative_ticks: {
    ...snapshot,
    endpoint: "/derivatives/ticker/{derivativeType}",
    scope: "read:derivatives",
    setting: "derivatives",
    bytesPerRow: 94,
    table: "derivative_tick_rows",
    dictionary: "contracts",
    columns: derivativeTickColumns,
  },
} as const satisfies Readonly<Record<string, StreamDefinition>>;

type StreamTable = typeof streamTable;
export type Stream = keyof StreamTable;
type StreamsOfKind<Kind> = {
  [S in Stream]: StreamTable[S]["kind"] extends Kind ? S : never;
}[Stream];

export type HistoryStream = StreamsOfKind<"history">;
export type SnapshotStream = StreamsOfKind<"snapshot">;
/** The streams whose records are rows with a timestamp. */
export type RowStream = HistoryStream | SnapshotStream;

export const streams = Object.keys(streamTable) as readonly Stream[];
export const historyStreams = streams.filter(hasHistory);
export const rowStreams = streams.filter(
  (stream): stream is RowStream => streamTable[stream].kind !== "lookup",
);

/** The definition of a stream, for callers that do not know which one it is. */
export function streamDefinition(stream: Stream): StreamDefinition {
  return streamTable[stream];
}

export type HistoryEndpoint = StreamTable[HistoryStream]["endpoint"];

/** The stream that an endpoint (a path template below /v3) serves; undefined for other endpoints. */
export function streamOfEndpoint(endpoint: HistoryEndpoint): HistoryStream;
export function streamOfEndpoint(endpoint: string): Stream | undefined;
export function streamOfEndpoint(endpoint: string): Stream | undefined {
  return streams.find((stream) => streamTable[stream].endpoint === endpoint);
}

/** The period between two records of a series. */
export function cadenceOf(stream: HistoryStream, refreshSeconds: number): Micros {
  return streamTable[stream].cadence ?? refreshSeconds * MICROS_PER_SECOND;
}

/**
 * A row this close to the beginning of the window may be gone: the window moves on while a response is under way, and the
 * service may delete rows in batches. A row further inside cannot.
 */
export const WINDOW_MARGIN_MICROS = 600 * MICROS_PER_SECOND;
/** The service's time is known to about a second, and its window moves while a response travels. */
export const WINDOW_EDGE_MARGIN_MICROS = 3 * MICROS_PER_SECOND;

/** Records younger than this may still change, and the service may still add records. */
export function settleDelay(refreshSeconds: number): Micros {
  return 2 * refreshSeconds * MICROS_PER_SECOND;
}

export function hasHistory(stream: Stream): stream is HistoryStream {
  return streamTable[stream].kind === "history";
}

/** Whether a row stands for a UTC day, not for a timestamp. */
export function isDaily(stream: Stream): boolean {
  return streamTable[stream].step === MICROS_PER_DAY;
}

/** One index in one history stream. */
export interface Series {
  readonly stream: HistoryStream;
  readonly indexType: string;
  readonly indexId: string;
}

/** The scopes that the service documents. */
export const serviceScopes = [
  "read:exchange-ticker",
  "read:index-ticker",
  "read:ohlcv",
  "read:market-cap",
  "read:LX",
  "read:derivatives",
] as const;

/** The end of a target at `now`, in whole steps. The service may still change younger records. */
export function computeTargetEnd(
  { settleDelay, step }: { readonly settleDelay: Micros; readonly step: Micros },
  now: Micros,
): Micros {
  return Math.floor((now - settleDelay) / step) * step;
}

/** Where the service's window begins at `now`. Without a window: the smallest safe integer, which SQL can bind. */
export function computeWindowStart(serviceWindow: Micros | null, now: Micros): Micros {
  return serviceWindow === null ? Number.MIN_SAFE_INTEGER : now - serviceWindow;
}

/** The service may drop what is older before its response arrives. */
export function fetchableFrom(serviceWindow: Micros | null, now: Micros): Micros {
  return computeWindowStart(serviceWindow, now) + WINDOW_EDGE_MARGIN_MICROS;
}
