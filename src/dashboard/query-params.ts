import { MAX_BARS } from "../model/answers/chart-bars.ts";
import { barWidths, isBarWidth, type Micros, parseUserTime, USER_TIME_FORMS } from "../model/time.ts";
import { figuresOf, seriesKinds } from "../warehouse/lookups/series-kinds.ts";
import type { ChartBarsOptions } from "../warehouse/read/chart-bars.ts";
import { partedStreams } from "../warehouse/tables/row-parts.ts";
import type { QueryResults, ViewKind } from "./api-answers.ts";
import { type PageView, pageViews, type ViewParams } from "./page-views.ts";

const DEFAULT_BARS = 300;
const MAX_ID_LENGTH = 400;
/** What is no index has its stream as its type. */
const TYPES: readonly string[] = ["GWA", "MWA", "LX", ...partedStreams];

/**
 * Parses `?type=GWA&id=…&width=1h&from=…&to=…`; `to` defaults to now. Ranges are widened to whole bars, so that similar
 * queries share one cached value. Returns a string with the error if the query is wrong.
 */
export function parseBarsQuery(query: URLSearchParams, now: Micros): ChartBarsOptions | string {
  const indexType = query.get("type") ?? "";
  if (!TYPES.includes(indexType)) return `type must be one of ${TYPES.join(", ")}`;
  const indexId = query.get("id") ?? "";
  if (indexId === "" || indexId.length > MAX_ID_LENGTH) return "id must be the id of an index";
  const width = query.get("width") ?? "1h";
  if (!isBarWidth(width)) return `width must be one of ${Object.keys(barWidths).join(", ")}`;
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
  const of = query.get("of") ?? undefined;
  const kind = partedStreams.find((stream) => stream === indexType);
  const known = kind ? [...figuresOf(kind), ...Object.keys(seriesKinds[kind].aliases)] : ["price"];
  if (of !== undefined && !known.includes(of)) return `of must be one of ${known.join(", ")}`;
  return { indexType, indexId, width, of, from, to: end };
}

const readTime = (text: string | null, defaultTs: Micros, now: Micros): Micros | undefined =>
  text === null ? defaultTs : parseUserTime(text, now);

const MAX_NAME_LENGTH = 80;
const MAX_GROUPS = 16;

const parseName = (query: URLSearchParams) => (query.get("name") ?? "").trim().slice(0, MAX_NAME_LENGTH);

/** Parses what a declared view may be asked for. Now is rounded, so that pages share one cached value. */
function parseViewQuery(params: PageView["params"], query: URLSearchParams, now: Micros) {
  const parsed: Record<string, string | Micros> = {};
  for (const [name, type] of Object.entries(params)) {
    const value =
      type === "text"
        ? (query.get(name) ?? "").trim().slice(0, MAX_ID_LENGTH)
        : readTime(query.get(name) || null, Math.ceil(now / 1e6) * 1e6, now);
    if (value === undefined) return `${name} must be ${USER_TIME_FORMS}`;
    parsed[name] = value;
  }
  return parsed;
}

/** Parses `?name=btc&problems=1&all=index_ticks:GWA&all=…`: the groups of which more than the first rows are shown. */
export function parseCoverageQuery(query: URLSearchParams) {
  const groups = query.getAll("all").filter((group) => /^[a-z_]{1,32}:\w{0,16}$/.test(group));
  const unfolded = [...new Set(groups)].sort().slice(0, MAX_GROUPS);
  return { unfolded, name: parseName(query), onlyProblems: query.get("problems") === "1" };
}

export type PageParams = { readonly [K in keyof QueryResults]: K extends ViewKind ? ViewParams : object } & {
  readonly coverage: ReturnType<typeof parseCoverageQuery>;
  readonly bars: ChartBarsOptions;
} & Readonly<Record<"series" | "search", { readonly name: string }>>;

/** The kinds that pages ask for as they are. */
export type PageKind = Exclude<keyof QueryResults, "status">;

interface PageRequest<K extends PageKind> {
  /** How long an answer is kept at least. */
  readonly minTtlMs: number;
  /** Prices are read beside the ledger: a heat map that takes long must not delay them. */
  readonly hasPrices?: boolean;
  /** The parameters, or what is wrong with them. */
  readonly parse: (query: URLSearchParams, now: Micros) => PageParams[K] | string;
}

/** Short, so that a person who types a name fast does not fill the cache. */
const VARIANT_TTL_MS = 2_000;
/** Pages ask with each tick, and must get it. */
const BARS_TTL_MS = 500;
const parseNothing = () => ({});
const named = { minTtlMs: VARIANT_TTL_MS, parse: (query: URLSearchParams) => ({ name: parseName(query) }) };
const viewRequests = Object.entries(pageViews).map(([kind, { params, minTtlMs }]) => {
  const parse = (query: URLSearchParams, now: Micros) => parseViewQuery(params, query, now);
  return [kind, { minTtlMs, hasPrices: true, parse }];
});

export const pageRequests: { readonly [K in PageKind]: PageRequest<K> } = {
  missing: { minTtlMs: 10_000, parse: parseNothing },
  coverage: { minTtlMs: VARIANT_TTL_MS, parse: parseCoverageQuery },
  series: named,
  search: named,
  bars: { minTtlMs: BARS_TTL_MS, parse: parseBarsQuery },
  market: { minTtlMs: 2_000, hasPrices: true, parse: parseNothing },
  schema: { minTtlMs: 10_000, parse: parseNothing },
  ...(Object.fromEntries(viewRequests) as { [K in ViewKind]: PageRequest<K> }),
};
