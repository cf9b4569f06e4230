import type { Micros } from "../../model/time.ts";
import type { KeptBar } from "../../warehouse/rows/kept-bars.ts";
import type { BarGrid } from "./bar-grid.ts";
import { emptyAside, type RowAside } from "./format-exact.ts";

interface BarFigures extends Omit<KeptBar, "aside"> {
  /** Exact digits of open, high, low, close and volume_24h, where a double cannot hold them. */
  readonly digits: RowAside;
}

/** A tick, an hourly bar or a daily bar: what longer bars are made of. */
export interface BarPart extends BarFigures {
  readonly ts: Micros;
}

/** A bar without its coverage. */
export interface BuiltBar extends BarFigures {
  readonly start: Micros;
  readonly end: Micros;
}

/** Joins parts, given in order of time, to bars. Of equal prices the first counts, for the sake of their exact digits. */
export class BarBuilder {
  readonly #grid: BarGrid;
  #start = Number.NaN;
  #end = Number.NEGATIVE_INFINITY;
  #open = 0;
  #high = 0;
  #low = 0;
  #close = 0;
  #volume: number | null = null;
  #ticks = 0;
  #doubtful = 0;
  #digits = emptyAside;

  constructor(grid: BarGrid) {
    this.#grid = grid;
  }

  /** `add` for a tick whose figures are exact and that has no remark. It is the usual one, so it gets no object. */
  addPlainTick(ts: Micros, price: number, volume: number | null): BuiltBar | undefined {
    if (!(ts < this.#end) || this.#digits !== emptyAside)
      return this.add({
        ts,
        open: price,
        high: price,
        low: price,
        close: price,
        volume,
        ticks: 1,
        doubtful: 0,
        digits: emptyAside,
      });
    if (price > this.#high) this.#high = price;
    if (price < this.#low) this.#low = price;
    this.#close = price;
    this.#volume = volume;
    this.#ticks++;
    return undefined;
  }

  /** Returns the previous bar if the part begins a new one. */
  add(part: BarPart): BuiltBar | undefined {
    const { ts, open, high, low, close, volume, ticks, doubtful, digits } = part;
    if (ts < this.#end) {
      if (high > this.#high) {
        this.#high = high;
        this.#setDigits("high", digits);
      }
      if (low < this.#low) {
        this.#low = low;
        this.#setDigits("low", digits);
      }
      this.#close = close;
      this.#volume = volume;
      this.#setDigits("close", digits);
      this.#setDigits("volume_24h", digits);
      this.#ticks += ticks;
      this.#doubtful += doubtful;
      return undefined;
    }
    const finished = this.finish();
    this.#start = this.#grid.startOf(ts);
    this.#end = this.#grid.endOf(this.#start);
    this.#open = open;
    this.#high = high;
    this.#low = low;
    this.#close = close;
    this.#volume = volume;
    this.#ticks = ticks;
    this.#doubtful = doubtful;
    this.#digits = digits;
    return finished;
  }

  /** The bar in progress; undefined if there is none. */
  finish(): BuiltBar | undefined {
    if (Number.isNaN(this.#start)) return undefined;
    return {
      start: this.#start,
      end: this.#end,
      open: this.#open,
      high: this.#high,
      low: this.#low,
      close: this.#close,
      volume: this.#volume,
      ticks: this.#ticks,
      doubtful: this.#doubtful,
      digits: this.#digits,
    };
  }

  #setDigits(column: string, digits: RowAside): void {
    if (digits === emptyAside && this.#digits === emptyAside) return;
    if (digits[column] === this.#digits[column]) return;
    this.#digits = { ...this.#digits, [column]: digits[column] };
  }
}
