/** The rare values of a row: digits that a double cannot hold, by column, and remarks. */
export type RowDetails = Readonly<Record<string, string | undefined>>;

/** One object for all rows without `details`, so that it can be recognised. */
export const emptyDetails: RowDetails = {};

/** The figures of a bar: of a tick, of an hour or a day, or of any longer time. */
export interface BarFigures {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  /** Of the last tick. */
  readonly volume: number | null;
  readonly ticks: number;
  /** The ticks among them that have a `quality`. */
  readonly doubtful: number;
  /** Exact digits of open, high, low, close and volume_24h, where a double cannot hold them. */
  readonly digits: RowDetails;
}

/** The figures of one tick. `figure`: the column that is read as its price. */
export function toTickFigures(
  price: number,
  volume: number | null,
  details: RowDetails,
  figure = "price",
): BarFigures {
  const digits =
    details === emptyDetails
      ? emptyDetails
      : {
          open: details[figure],
          high: details[figure],
          low: details[figure],
          close: details[figure],
          volume_24h: details.volume,
        };
  const doubtful = details.quality === undefined ? 0 : 1;
  return { open: price, high: price, low: price, close: price, volume, ticks: 1, doubtful, digits };
}

/** Joins ticks or bars, added in order of time, to one bar. Of equal prices the first counts, for the sake of their exact digits. */
export class BarAggregate {
  #open = 0;
  #high = 0;
  #low = 0;
  #close = 0;
  #volume: number | null = null;
  #ticks = 0;
  #doubtful = 0;
  #digits = emptyDetails;

  /** `add` for a tick whose figures are exact and that has no remark. It is the usual one, so it gets no object. */
  addPlainTick(price: number, volume: number | null): void {
    if (this.#ticks === 0 || this.#digits !== emptyDetails) {
      this.add(toTickFigures(price, volume, emptyDetails));
      return;
    }
    if (price > this.#high) this.#high = price;
    else if (price < this.#low) this.#low = price;
    this.#close = price;
    this.#volume = volume;
    this.#ticks++;
  }

  add(part: BarFigures): void {
    const { open, high, low, digits } = part;
    const isFirst = this.#ticks === 0;
    if (isFirst) {
      this.#open = open;
      this.#setDigits("open", digits);
    }
    if (isFirst || high > this.#high) {
      this.#high = high;
      this.#setDigits("high", digits);
    }
    if (isFirst || low < this.#low) {
      this.#low = low;
      this.#setDigits("low", digits);
    }
    this.#close = part.close;
    this.#volume = part.volume;
    this.#setDigits("close", digits);
    this.#setDigits("volume_24h", digits);
    this.#ticks += part.ticks;
    this.#doubtful += part.doubtful;
  }

  /** The bar of what was added since the last call; undefined if nothing was. */
  finish(): BarFigures | undefined {
    if (this.#ticks === 0) return undefined;
    const bar: BarFigures = {
      open: this.#open,
      high: this.#high,
      low: this.#low,
      close: this.#close,
      volume: this.#volume,
      ticks: this.#ticks,
      doubtful: this.#doubtful,
      digits: this.#digits,
    };
    this.#ticks = 0;
    this.#doubtful = 0;
    this.#digits = emptyDetails;
    return bar;
  }

  #setDigits(column: string, digits: RowDetails): void {
    if (digits[column] === this.#digits[column]) return;
    this.#digits = { ...this.#digits, [column]: digits[column] };
  }
}
