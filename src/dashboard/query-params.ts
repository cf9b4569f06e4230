import { MAX_BARS } from "../model/answers/chart-bars.ts";
import {
  type BarWidth,
  barWidths,
  MICROS_PER_SECOND,
  type Micros,
  parseUserTime,
  USER_TIME_FORMS,
} from "../model/time.ts";
import type { ChartBarsOptions } from "../warehouse/read/chart-bars.ts";
import { type CoverageParams, DEFAULT_ROWS } from "./page-queries.ts";
import type { pageViews, ViewParams } from "./page-views.ts";

const DEFAULT_BARS = 300;
const MAX_ID_LENGTH = 400;
const INDEX_TYPES = ["GWA", "MWA", "LX"];

/**
 * Parses `?type=GWA&id=…&width=1h&from=…&to=…`; `to` defaults to now. Ranges are widened to whole bars, so that similar
 * queries share one cached value. Returns a string with the error if the query is wrong.
 */
export function parseBarsQuery(query: URLSearchParams, now: Micros): ChartBarsOptions | string {
  const indexType = query.get("type") ?? "";
  if (!INDEX_TYPES.includes(indexType)) return `type must be one of ${INDEX_TYPES.join(", ")}`;
  const indexId = query.get("id") ?? "";
  if (indexId === "" || indexId.length > MAX_ID_LENGTH) return "id must be the id of an index";
  const width = query.get("width") ?? "1h";
  if (!isBarLength(width)) return `width must be one of ${Object.keys(barWidths).join(", ")}`;
  const length = barWidths[width];
  const nowEnd = Math.ceil((now + 1) / length) * length;
  const until = readTime(query.get("to"), nowEnd, now);
  const end = until === undefined ? undefined : Math.min(nowEnd, Math.ceil(until / length) * length);
  const since = readTime(query.get("from"), (end ?? nowEnd) - DEFAULT_BARS * length, now);
  if (end === undefined || since === undefined) return `from and to must be ${USER_TIME_FORMS}`;
  const from = Math.floor(since / length) * length;
  if (from >= end) return "from must be earlier than to, and not in the future";
  if ((end - from) / length > MAX_BARS)
    return `at most ${MAX_BARS.toLocaleString("en")} bars per request: use a shorter range or wider bars`;
  return { indexType, indexId, width, from, to: end };
}

function readTime(text: string | null, defaultTs: Micros, now: Micros): Micros | undefined {
  return text === null ? defaultTs : parseUserTime(text, now);
}

function isBarLength(text: string): text is BarWidth {
  return Object.hasOwn(barWidths, text);
}

export const MAX_NAME_LENGTH = 80;

/** Parses what a declared view may be asked for. Now is rounded, so that pages share one cached value. */
export function parseViewQuery(
  query: URLSearchParams,
  params: (typeof pageViews)[keyof typeof pageViews]["params"],
  now: Micros,
): ViewParams | string {
  const parsed: Record<string, string | Micros> = {};
  for (const [name, type] of Object.entries(params)) {
    const value =
      type === "text"
        ? (query.get(name) ?? "").trim().slice(0, MAX_ID_LENGTH)
        : readTime(query.get(name), Math.ceil(now / MICROS_PER_SECOND) * MICROS_PER_SECOND, now);
    if (value === undefined) return `${name} must be ${USER_TIME_FORMS}`;
    parsed[name] = value;
  }
  return parsed;
}

interface CoverageQuery extends CoverageParams {
  /** Equal for equal queries: the key of the cache. */
  readonly key: string;
}

const ROWS_PER_STEP = 40;
const MAX_STEPS = 10;
const MAX_GROUPS = 16;

/**
 * Parses `?name=btc&problems=1&rows=index_ticks:GWA,48&rows=…`. Counts are rounded up to a few sizes, so that clients cannot request an unlimited
 * number of different pages.
 */
export function parseCoverageQuery(query: URLSearchParams): CoverageQuery {
  const name = (query.get("name") ?? "").trim().slice(0, MAX_NAME_LENGTH);
  const onlyProblems = query.get("problems") === "1";
  const shown = new Map<string, number>();
  for (const rows of query.getAll("rows").sort().slice(0, MAX_GROUPS)) {
    const [group, count] = [
      rows.slice(0, rows.lastIndexOf(",")),
      Number(rows.slice(rows.lastIndexOf(",") + 1)),
    ];
    if (!/^[a-z_]{1,32}:\w{0,16}$/.test(group) || !(count > DEFAULT_ROWS)) continue;
    const steps = Math.min(MAX_STEPS, Math.ceil((count - DEFAULT_ROWS) / ROWS_PER_STEP));
    shown.set(group, DEFAULT_ROWS + steps * ROWS_PER_STEP);
  }
  return { shown, name, onlyProblems, key: JSON.stringify([...shown, name, onlyProblems]) };
}
