import { type BarLength, barLengths, type Micros, parseDayOrInstant } from "../model/time.ts";
import type { BarsWanted } from "../warehouse/read/chart-bars.ts";
import { USUAL_ROWS } from "./page-queries.ts";

export const MOST_BARS = 5_000;
const USUAL_BARS = 300;
const LONGEST_ID = 400;
const indexTypes = ["GWA", "MWA", "LX"];

/**
 * From `?type=GWA&id=…&width=1h&from=…&to=…`; without `to` up to the present. Ranges are widened to whole bars, so that
 * equal looks share one reading. A text is the one line that says what is wrong.
 */
export function barsAsked(query: URLSearchParams, now: Micros): BarsWanted | string {
  const indexType = query.get("type") ?? "";
  if (!indexTypes.includes(indexType)) return `type must be one of ${indexTypes.join(", ")}`;
  const indexId = query.get("id") ?? "";
  if (indexId === "" || indexId.length > LONGEST_ID) return "id must be the id of an index";
  const width = query.get("width") ?? "1h";
  if (!isWidth(width)) return `width must be one of ${Object.keys(barLengths).join(", ")}`;
  const length = barLengths[width];
  const present = Math.ceil((now + 1) / length) * length;
  const until = moment(query.get("to"), present);
  const end = until === undefined ? undefined : Math.min(present, Math.ceil(until / length) * length);
  const since = moment(query.get("from"), (end ?? present) - USUAL_BARS * length);
  if (end === undefined || since === undefined)
    return "from and to must be days (YYYY-MM-DD) or ISO 8601 moments in UTC";
  const from = Math.floor(since / length) * length;
  if (from >= end) return "from must be earlier than to, and not in the future";
  if ((end - from) / length > MOST_BARS)
    return `at most ${MOST_BARS.toLocaleString("en")} bars are given at once: take a shorter range or wider bars`;
  return { indexType, indexId, width, from, to: end };
}

function moment(text: string | null, usual: Micros): Micros | undefined {
  return text === null ? usual : parseDayOrInstant(text);
}

function isWidth(text: string): text is BarLength {
  return Object.hasOwn(barLengths, text);
}

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
