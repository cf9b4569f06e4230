/* The rows and columns that the library returns. */

/** What every row says of its series. */
export interface SeriesLabels {
  /** Of what is no index: the stream, such as `exchange_ticks`; `index_id` then has the service's ids. */
  readonly index_type: string;
  readonly index_id: string;
  /** BTC (GWA), BTC/USD (MWA), BLX (LX), Kraken:BTC/USD, Deribit:BTCUSD-PERP, cap:BTC. */
  readonly name: string;
}

/** A series that the service lists. */
export interface SeriesInfo extends SeriesLabels {
  /** 1: the warehouse has ticks of it. */
  readonly has_ticks: 0 | 1;
  /** 1: the warehouse has daily bars of it. */
  readonly has_ohlcv: 0 | 1;
}

/** A series that has ticks or daily bars. */
export interface ListedSeries extends SeriesInfo {
  /** The times of its first and its last tick; null: it has daily bars only. */
  readonly first: string | null;
  readonly last: string | null;
}

/** A tick, with the columns of the view `index_ticks`. */
export interface TickRow extends SeriesLabels {
  /** Microseconds since 1970 UTC. */
  readonly ts: number;
  readonly time: string;
  /** The price, or the figure that `of` names. */
  readonly price: number | null;
  readonly price_exact: string | null;
  /** Rolling 24-hour volume: never sum it. */
  readonly volume: number | null;
  readonly volume_exact: string | null;
  /** LX only: the volume of this tick. */
  readonly tick_volume: number | null;
  readonly tick_volume_exact: string | null;
  /** 1: the ledger covers this timestamp. */
  readonly is_settled: 0 | 1;
  readonly source: "rest" | "live";
  readonly quality: string | null;
  readonly extra: string | null;
}

/** The numbers of a tick that can be read as columns. */
export type TickNumber = "price" | "volume" | "tick_volume";

/** The ticks of one series as columns. A missing number is NaN; a column that was not requested is empty. */
export interface TickArrays extends SeriesLabels {
  readonly length: number;
  /** Microseconds since 1970 UTC. */
  readonly ts: BigInt64Array;
  readonly price: Float64Array;
  readonly volume: Float64Array;
  readonly tick_volume: Float64Array;
}

/** What bars are made of: ticks, or the service's own daily bars. */
export type BarSource = "ticks" | "ohlcv";

/** A bar, with the columns of the views `bars_…`. A period without ticks has no bar. */
export interface BarRow extends SeriesLabels {
  /** The start of the bar, microseconds since 1970 UTC. */
  readonly ts: number;
  readonly time: string;
  readonly open: number;
  readonly open_exact: string;
  readonly high: number;
  readonly high_exact: string;
  readonly low: number;
  readonly low_exact: string;
  readonly close: number;
  readonly close_exact: string;
  /** The rolling 24-hour volume of the last tick; of daily bars: the volume of the last day. */
  readonly volume_24h: number | null;
  readonly volume_24h_exact: string | null;
  /** The number of ticks, or of daily bars. */
  readonly n_ticks: number;
  readonly expected_ticks: number;
  /** The part of the bar that the ledger covers. */
  readonly coverage: number;
  /** 1: the bar has every tick that the service has. */
  readonly is_complete: 0 | 1;
  readonly quality: string | null;
  readonly source: BarSource;
}

/** The bars of one series as columns. A missing number is NaN. */
export interface BarArrays extends SeriesLabels {
  readonly length: number;
  /** The start of each bar, microseconds since 1970 UTC. */
  readonly ts: BigInt64Array;
  readonly open: Float64Array;
  readonly high: Float64Array;
  readonly low: Float64Array;
  readonly close: Float64Array;
  readonly volume_24h: Float64Array;
  readonly n_ticks: Float64Array;
  readonly coverage: Float64Array;
  /** 1: the bar has every tick that the service has. */
  readonly is_complete: Uint8Array;
  /** Null if there are no bars. */
  readonly source: BarSource | null;
}

/** The last price of a series at or before a moment. */
export interface AsOfRow extends SeriesLabels {
  /** The moment, microseconds since 1970 UTC. */
  readonly at_ts: number;
  readonly at: string;
  /** When the price is from, microseconds since 1970 UTC; null: the warehouse has none so early. */
  readonly ts: number | null;
  readonly time: string | null;
  readonly price: number | null;
  readonly price_exact: string | null;
  readonly volume: number | null;
  readonly volume_exact: string | null;
  /** How old the price was at the moment. */
  readonly age_seconds: number | null;
  /** 1: the ledger covers everything from the price to the moment, so the service has no later one. */
  readonly is_complete: 0 | 1;
  readonly quality: string | null;
  /** `ohlcv`: the close of the last day that was over. */
  readonly source: BarSource;
}

/** What `asOfJoin` adds to a row: the last price of its series at or before its time. */
export interface AsOfValue {
  readonly asof_price: number | null;
  /** When the price is from, microseconds since 1970 UTC; null: the warehouse has none so early. */
  readonly asof_ts: number | null;
  readonly asof_age_seconds: number | null;
  /** 1: the service has no later price up to the time of the row. */
  readonly asof_complete: 0 | 1;
}

/** A row of the view `coverage`: a range that is settled. */
export interface CoverageRow {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly name: string | null;
  readonly from_ts: number;
  readonly to_ts: number;
  readonly from_time: string;
  readonly to_time: string;
  /** `rows`: all records are stored; `empty`: the service has none; `lost`: it can no longer be fetched. */
  readonly proof: "rows" | "empty" | "lost";
  readonly reason: string | null;
}

/** What a check of a citation found. */
export interface CheckResult {
  /** Whether the warehouse gives the cited values. */
  readonly equal: boolean;
  readonly cited_rows: number;
  readonly rows: number;
  /** 1: the ledger of this warehouse proves them complete. */
  readonly is_complete: 0 | 1;
  /** Null if they are equal. */
  readonly difference: Difference | null;
}

/** The first row that differs, or the range in which it is. */
export interface Difference {
  readonly name: string;
  readonly from_ts: number;
  readonly to_ts: number;
  readonly from_time: string;
  readonly to_time: string;
  /** The values of the row, if the warehouse still knows them. */
  readonly cited: string | null;
  readonly here: string | null;
  /**
   * `corrected later`, `withdrawn later` or `arrived later`: since it was cited; `corrected here`; `open here`, `unconfirmed here` or
   * `lost here`: this warehouse lacks it; `incomplete when cited`; `unknown`.
   */
  readonly reason: string;
  /** When it changed, or why it is missing. */
  readonly detail: string | null;
}
