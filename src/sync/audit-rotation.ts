import { MICROS_PER_DAY, type Micros } from "../model/instant.ts";
import { gridCell } from "./slices.ts";
import type { SliceWalk } from "./walk-slice.ts";

/** Each divides the next: when the warehouse grows, what was due tonight is due tonight or in a further turn's half. */
const TURNS = [1, 3, 15, 30];
/** Little is compared often, much is not compared at once. */
const NIGHTLY = { least: 20, most: 500 };

/** In how many nights all of so many stretches are compared: in thirty, unless they are very few or very many. */
export function nightsOfTurn(stretches: number): number {
  let nights = TURNS.findLast((turn) => stretches / turn >= NIGHTLY.least) ?? 1;
  while (stretches / nights > NIGHTLY.most) nights *= 2;
  return nights;
}

/**
 * What is to be compared in the night of `now`. Each stretch has its own night of the turn, which follows from the series
 * and the time that it covers: nothing has to be remembered, and nothing is left out for longer than a turn.
 */
export function dueTonight(stretches: readonly SliceWalk[], now: Micros): readonly SliceWalk[] {
  const nights = nightsOfTurn(stretches.length);
  const tonight = Math.floor(now / MICROS_PER_DAY) % nights;
  return stretches.filter((stretch) => nightOf(stretch, nights) === tonight);
}

/** A prime, so that neighbouring series, and the single stretch that each series of bars is, are spread over the turn. */
const SPREAD = 7919;

function nightOf({ line, range, cadence }: SliceWalk, nights: number): number {
  const cell = line.stream === "ohlcv" ? 0 : gridCell(range, cadence);
  return (line.series * SPREAD + cell) % nights;
}
