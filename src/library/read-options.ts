import type { RowStream } from "../model/streams.ts";
import type { BarSource, TickNumber } from "./rows.ts";

/**
 * A moment: a `Date`; microseconds since 1970 as a bigint or a number, like `ts`; or a text, such as `2026-03-01 12:00` or
 * `-7d`: [Times](commands.md#times).
 */
export type TimeInput = Date | bigint | number | string;

/** One moment a day: at a time of the zone's clocks. */
export interface Schedule {
  /** A time of day such as `09:30`, in the zone. */
  readonly at: string;
  readonly from: TimeInput;
  /** Exclusive. Default: now. */
  readonly to?: TimeInput;
}

/**
 * Ids, symbols (`BTC`), pairs (`BTC/USD`) or names (`BLX`, `Bitcoin`), also `GWA:BTC`, or `LUNA@2022` by the first day; an exchange's
 * market (`Kraken:BTC/USD`) or contract (`Deribit:BTCUSD-PERP`), and market capitalisations (`cap:BTC`).
 */
export type SeriesSelection = string | readonly string[];

/** Options of every reader that can read an earlier state. */
export interface KnownAtOptions {
  /**
   * The answer as it was known at this moment by this machine's clock: later corrections, withdrawals, arrivals and proofs do not
   * count, and `now` is that moment by the service's clock. Or a token of `cite()`. Default: the newest state.
   */
  readonly knownAt?: TimeInput;
}

/** Which figure of the ticks is read. */
export interface FigureOptions {
  /** Such as `bid`, `mid`, `volume`, `funding` or `open_interest`. Default: the price, of `cap:BTC` the `market_cap`. */
  readonly of?: string;
}

/** Options that all readers of rows share. */
export interface ReadOptions extends KnownAtOptions, FigureOptions {
  /** The start of the range, inclusive. Default: the first row. */
  readonly from?: TimeInput;
  /** The end of the range, exclusive. Default: after the last row. */
  readonly to?: TimeInput;
  /** GWA, MWA or LX: the type of all names without a prefix. */
  readonly indexType?: string;
  /** The zone of `time`, of texts without an offset, and of midnights. Default: UTC. */
  readonly tz?: string;
  /** Throw an `IncompleteFailure` if a second of the range is not proven. */
  readonly requireComplete?: boolean;
}

/** Options of `ticks`. */
export interface TickOptions extends ReadOptions {}

/** Columns instead of rows. */
export interface TickArrayOptions extends Omit<ReadOptions, "tz"> {
  readonly as: "columns";
  /** The numbers to read besides `ts`. Default: price. Each costs as much again. */
  readonly columns?: readonly TickNumber[];
}

/** Options of `bars`. */
export interface BarOptions extends ReadOptions {
  /** The length of a bar: `30s`, `10m`, `1h`, `1d`, `1w` … */
  readonly every: string;
  /** Default: ticks if the series has any, else the service's daily bars. */
  readonly source?: BarSource;
  /** Also the bar that is not over yet. Default: final bars only. */
  readonly running?: boolean;
  /** The series in whose price those of the others are: each tick over its newest price by then. */
  readonly over?: string;
}

/** Columns instead of rows. */
export interface BarArrayOptions extends BarOptions {
  readonly as: "columns";
}

/** Options of `asOf`. */
export interface AsOfOptions extends KnownAtOptions, FigureOptions {
  readonly indexType?: string;
  /** The zone of `time`, of texts without an offset, and of a schedule. Default: UTC. */
  readonly tz?: string;
  /** Default: ticks if the series has any, else the service's daily bars. */
  readonly source?: BarSource;
}

/** Options of `asOfJoin`. */
export interface AsOfJoinOptions extends KnownAtOptions, FigureOptions {
  /** The property with the moment of a row. Default: `time`. */
  readonly on?: string;
  /** The property with the name of its series. Default: `name`. */
  readonly by?: string;
  readonly indexType?: string;
  /** An older price does not count: `5m`. Default: any age. */
  readonly maxAge?: string;
  /** The zone of texts without an offset. Default: UTC. */
  readonly tz?: string;
}

/** A range of one stream. */
export interface WholeOptions extends KnownAtOptions {
  readonly from: TimeInput;
  readonly to: TimeInput;
  /** Default: that of the ticks. */
  readonly stream?: RowStream;
  readonly indexType?: string;
  /** The zone of texts without an offset. Default: UTC. */
  readonly tz?: string;
}

/** A row of a query: integers that a number cannot hold are bigint. */
export type QueryRow = Record<string, string | number | bigint | Uint8Array | null>;

/** Which part of the ledger to read. */
export interface LedgerOptions extends KnownAtOptions {
  /** Such as `index_ticks` or `ohlcv`. Default: all. */
  readonly stream?: string;
  /** Ids, symbols, pairs or names, also of exchanges. Default: all. */
  readonly series?: string | readonly string[];
  readonly from?: TimeInput;
  readonly to?: TimeInput;
  /** The zone of texts without an offset. Default: UTC. */
  readonly tz?: string;
}

/** Values of the parameters of a query, `:name`. Integers are bigint: a number is bound as a REAL. A text `@TIME` (`@-7d`) is a moment. */
export type QueryValues = Readonly<Record<string, string | number | bigint | null>>;
