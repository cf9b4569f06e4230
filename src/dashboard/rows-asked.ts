import { USUAL_ROWS } from "./readings-desk.ts";

/** Of which groups of the heat map a visitor wants to see how many rows. */
export interface RowsAsked {
  readonly shown: ReadonlyMap<string, number>;
  /** Equal for equal wishes. */
  readonly key: string;
}

const ROWS_A_STEP = 40;
const MOST_STEPS = 10;
const MOST_GROUPS = 16;

/**
 * From `?rows=index_ticks:GWA,48&rows=…`. Wishes are rounded up to a few sizes, so that no visitor can ask for endlessly
 * many different pages.
 */
export function rowsAsked(query: URLSearchParams): RowsAsked {
  const shown = new Map<string, number>();
  for (const wish of query.getAll("rows").sort().slice(0, MOST_GROUPS)) {
    const [group, count] = [
      wish.slice(0, wish.lastIndexOf(",")),
      Number(wish.slice(wish.lastIndexOf(",") + 1)),
    ];
    if (!/^[a-z_]{1,32}:\w{0,16}$/.test(group) || !(count > USUAL_ROWS)) continue;
    const steps = Math.min(MOST_STEPS, Math.ceil((count - USUAL_ROWS) / ROWS_A_STEP));
    shown.set(group, USUAL_ROWS + steps * ROWS_A_STEP);
  }
  return { shown, key: [...shown].join(" ") };
}
