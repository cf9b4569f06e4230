import { type BarLength, barLengths } from "../model/bar-length.ts";
import { type Micros, parseDayOrInstant } from "../model/instant.ts";
import type { BarsWanted } from "../warehouse/drawn-bars.ts";

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
