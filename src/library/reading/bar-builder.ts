import { BarAggregate, type BarFigures } from "../../model/answers/bar-aggregate.ts";
import type { Micros } from "../../model/time.ts";
import type { BarGrid } from "./bar-grid.ts";

/** A bar without its coverage. */
export interface BuiltBar extends BarFigures {
  readonly start: Micros;
  readonly end: Micros;
}

/** Joins ticks, hourly bars or daily bars, given in order of time, to the bars of a grid. */
export class BarBuilder {
  readonly #grid: BarGrid;
  readonly #bar = new BarAggregate();
  #start = Number.NaN;
  #end = Number.NEGATIVE_INFINITY;

  constructor(grid: BarGrid) {
    this.#grid = grid;
  }

  /** Returns the previous bar if the tick begins a new one. */
  addPlainTick(ts: Micros, price: number, volume: number | null): BuiltBar | undefined {
    const finished = ts < this.#end ? undefined : this.#begin(ts);
    this.#bar.addPlainTick(price, volume);
    return finished;
  }

  /** Returns the previous bar if the part begins a new one. */
  add(ts: Micros, part: BarFigures): BuiltBar | undefined {
    const finished = ts < this.#end ? undefined : this.#begin(ts);
    this.#bar.add(part);
    return finished;
  }

  /** The bar in progress; undefined if there is none. */
  finish(): BuiltBar | undefined {
    const bar = this.#bar.finish();
    return bar && { start: this.#start, end: this.#end, ...bar };
  }

  #begin(ts: Micros): BuiltBar | undefined {
    const finished = this.finish();
    this.#start = this.#grid.startOf(ts);
    this.#end = this.#grid.endOf(this.#start);
    return finished;
  }
}
