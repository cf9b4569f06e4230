import type { SeriesId, SeriesMatch } from "../../model/answers/heatmap.ts";
import type {
  DerivativeAsset,
  ExchangeSummary,
  PairSummary,
  RankedAsset,
  Sparkline,
} from "../../model/answers/market.ts";
import { familyOf, nameToSlug, pagePath, type SearchMatch } from "../../model/answers/page-address.ts";
import { findClosestWords } from "../../model/did-you-mean.ts";
import { splitType } from "../../model/name-index.ts";
import { quoteText } from "../../model/sql-text.ts";
import type { SnapshotStream } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { snapshotNamesSql } from "../lookups/resolve-names.ts";
import { ofSeries } from "../lookups/series-kinds.ts";
import type { SchemaResult } from "../schema/column-doc.ts";
import type { Connection } from "../sqlite/connection.ts";

/** What can be searched besides the series. */
export interface SearchedPages {
  readonly pairs: readonly PairSummary[];
  readonly exchanges: readonly ExchangeSummary[];
  readonly assets: readonly DerivativeAsset[];
  readonly schema: SchemaResult;
}

/** Those with the most pairs first, each with the pair of it that the most exchanges quote. */
export function readExchanges(reader: Connection): ExchangeSummary[] {
  return reader.rows<ExchangeSummary>(`WITH quoted AS MATERIALIZED (
      SELECT exchange_id, pair, count(*) OVER (PARTITION BY pair) AS quoting FROM latest_exchange_ticks WHERE is_live = 1)
    SELECT coalesce(e.name, e.id) AS name, count(q.pair) AS pairs, q.pair, max(q.quoting)
    FROM exchanges e LEFT JOIN quoted q ON q.exchange_id = e.id GROUP BY e.id ORDER BY pairs DESC, name`);
}

const MAX_OTHERS = 4;
const MAX_ASSETS = 2;

/** The pages whose subject contains the text: bars of series, exchanges and pairs on them, derivatives of assets, relations. */
export function searchPages(text: string, found: readonly SeriesMatch[], pages: SearchedPages) {
  const relations = pages.schema.flatMap((group) => group.relations);
  const others = [
    ...best(pages.exchanges, text, ({ name }) => name).map(toExchangePage),
    ...best(pages.pairs, text, ({ pair }) => pair).map(({ pair, exchanges }) => {
      const note = exchanges === 1 ? "on one exchange" : `on ${exchanges} exchanges`;
      return toPage("Exchanges", pair, note, pagePath("exchanges", pair));
    }),
    ...best(pages.assets, text, ({ symbol }) => symbol).map(({ symbol, contracts }) => {
      const note = contracts === 1 ? "one contract" : `${contracts.toLocaleString("en")} contracts`;
      return toPage("Derivatives", symbol, note, pagePath("derivatives", symbol));
    }),
    ...best(relations, text, ({ name }) => name).map(({ name, summary }) =>
      toPage("Relations", name, summary, explorePath(`SELECT * FROM ${name} LIMIT 100`)),
    ),
  ];
  // Enter takes the first: a similar name is no answer where something has the name.
  if (found[0]?.match === "similar" && others.length > 0) return others;
  return [...found.flatMap(toAssetPage).slice(0, MAX_ASSETS), ...found.map(toBarsPage), ...others];
}

const explorePath = (sql: string) => `/explore#${new URLSearchParams({ sql })}`;

const toPage = (group: SearchMatch["group"], name: string, note: string, href: string): SearchMatch => ({
  ...{ group, name, note, href },
});

/** The average of an asset has its id. */
function toAssetPage({ index_type, index_id, name, slug, match }: SeriesMatch): SearchMatch[] {
  if (index_type !== "GWA" || match === "similar") return [];
  const href = pagePath("assets", slug === nameToSlug(name) ? name : index_id);
  return [toPage("Assets", name || index_id, "everything about it", href)];
}

/** Among the others, in the pair that it has in common with the most of them. */
function toExchangePage({ name, pairs, pair }: ExchangeSummary): SearchMatch {
  if (pair === null) {
    const sql = `SELECT * FROM exchanges WHERE name = ${quoteText(name)}`;
    return toPage("Exchanges", name, "no quotes are synced", explorePath(sql));
  }
  const note = pairs === 1 ? "one pair" : `${pairs.toLocaleString("en")} pairs`;
  const href = `${pagePath("exchanges", pair)}?${new URLSearchParams({ q: name })}`;
  return toPage("Exchanges", name, note, href);
}

function toBarsPage({ index_type, name, slug, has_ticks, match }: SeriesMatch): SearchMatch {
  const source = has_ticks ? "" : ", daily bars";
  const note = `${familyOf(index_type)}${source}${match === "similar" ? ", a similar name" : ""}`;
  return toPage("Bars", name || slug, note, pagePath("bars", slug));
}

/** Names that begin with the text first; else in the order of the list. */
function best<T>(list: readonly T[], text: string, nameOf: (one: T) => string): T[] {
  const needle = fold(text.trim());
  const place = (one: T) => fold(nameOf(one)).indexOf(needle);
  return list
    .filter((one) => place(one) >= 0)
    .sort((a, b) => Math.min(1, place(a)) - Math.min(1, place(b)))
    .slice(0, MAX_OTHERS);
}

/** A series that has ticks or daily bars in the ledger. */
export interface ChartSeries extends Omit<SeriesMatch, "slug" | "match"> {
  /** The full name of its asset, which also finds it. */
  readonly title: string;
}

interface KnownSeries {
  readonly series: ChartSeries;
  readonly slug: string;
  /** The name as it is compared. */
  readonly folded: string;
}

const keyOf = ({ index_type, index_id }: SeriesId) => `${index_type}:${index_id}`;
const fold = (text: string) => nameToSlug(text).toLowerCase();
const EXACT = 1;
const NO_MATCH = 4;

/** Finds series by what a person types or an address contains: `BTC`, `btc-usd`, `Bitcoin`, `LX:BLX`, `GWA:<id>`. */
export class SeriesSearch {
  readonly #known: readonly KnownSeries[];
  /** By `TYPE:id`. */
  readonly #slugs: ReadonlyMap<string, string>;

  /** The best-known first: of several series with one name, the first has it as its slug. */
  constructor(list: readonly ChartSeries[]) {
    const taken = new Set<string>();
    this.#known = list.map((series) => {
      const { name } = series;
      const folded = fold(name);
      const slug = name === "" || taken.has(folded) ? keyOf(series) : nameToSlug(name);
      taken.add(folded);
      return { series, slug, folded };
    });
    this.#slugs = new Map(this.#known.map(({ series, slug }) => [keyOf(series), slug]));
  }

  /** What the addresses of pages call a series; null if it has no chart. */
  slugOf(series: SeriesId): string | null {
    return this.#slugs.get(keyOf(series)) ?? null;
  }

  /** Exact matches first, then prefixes, then by rank. If nothing matches, similar names. */
  find(text: string, limit: number): SeriesMatch[] {
    const { type, rest: given } = splitType(text.trim());
    const needle = fold(given);
    const known = this.#known.filter(({ series }) => type === undefined || series.index_type === type);
    const qualityOf = ({ series, folded }: KnownSeries) => {
      if (nameToSlug(series.name) === nameToSlug(given) || series.index_id === given) return 0;
      if (folded === needle) return EXACT;
      if (folded.startsWith(needle) || series.title.toLowerCase().startsWith(needle)) return 2;
      return folded.includes(needle) || series.title.toLowerCase().includes(needle) ? 3 : NO_MATCH;
    };
    const found = known
      .map((one) => ({ one, quality: qualityOf(one) }))
      .filter(({ quality }) => quality < NO_MATCH)
      .sort((a, b) => a.quality - b.quality)
      .slice(0, limit);
    if (found.length > 0)
      return found.map(({ one, quality }) => toMatch(one, quality <= EXACT ? "exact" : "part"));
    const words = findClosestWords(needle, new Set(known.map(({ folded }) => folded)));
    const similar = words.slice(0, limit).flatMap((word) => known.filter(({ folded }) => folded === word));
    return similar.slice(0, limit).map((one) => toMatch(one, "similar"));
  }
}

function toMatch({ series, slug }: KnownSeries, match: SeriesMatch["match"]): SeriesMatch {
  const { title: _, ...rest } = series;
  return { ...rest, slug, match };
}

const rankingSql = `SELECT m.asset_id, m.symbol, a.name, m.rank, m.price, m.volume * m.price, m.market_cap,
    coalesce(m.price_change_24h, m.change_24h), coalesce(m.price_change_7d, m.change_7d), coalesce(m.price_change_30d, m.change_30d), m.ts
  FROM latest_market_caps m LEFT JOIN assets a ON a.id = m.asset_id WHERE m.is_live = 1
  ORDER BY m.rank IS NULL, m.rank, m.market_cap DESC`;

export function readMarketRanking(reader: Connection): RankedAsset[] {
  return reader.tuples<RankedAsset>(rankingSql);
}

const SPARKLINE_HOURS = 168;
/** Only the first screens of the ranking show hours: 1,500 assets have a quarter of a million. */
const MAX_HOURLY_RANK = 200;
const MICROS_PER_HOUR = MICROS_PER_DAY / 24;
const MICROS_PER_MINUTE = MICROS_PER_HOUR / 60;

type PricePoint = readonly [indexId: string, ts: Micros, price: number];

const hourlySql = `SELECT index_id, ts + ${MICROS_PER_HOUR}, close FROM bars_1h WHERE index_type = 'GWA'
    AND index_id IN (SELECT asset_id FROM latest_market_caps WHERE rank <= ${MAX_HOURLY_RANK})
    AND ts BETWEEN :from - ${MICROS_PER_HOUR} AND :now - ${MICROS_PER_HOUR} AND close IS NOT NULL ORDER BY index_id, ts`;
const dailySql = `SELECT index_id, ts + ${MICROS_PER_DAY}, close FROM ohlcv WHERE index_type = 'GWA'
    AND ts BETWEEN :from - ${MICROS_PER_DAY} AND :now - ${MICROS_PER_DAY} AND close IS NOT NULL ORDER BY index_id, ts`;
const newestSql =
  "SELECT asset_id, ts, price FROM latest_market_caps WHERE price > 0 AND ts BETWEEN :from AND :now";

/** The closes of the last 168 hours up to the price of the ranking: hourly where ticks are synced, daily before and elsewhere. */
export function* readSparklines(reader: Connection, now: Micros) {
  const from = now - SPARKLINE_HOURS * MICROS_PER_HOUR;
  const read = (sql: string) =>
    Map.groupBy(reader.tuples<PricePoint>(sql, { from, now }), ([indexId]) => indexId);
  const daily = read(dailySql);
  yield;
  const hourly = read(hourlySql);
  yield;
  const newest = read(newestSql);
  yield;
  const linesOf = (id: string): readonly (readonly [string, Sparkline])[] => {
    const hours = hourly.get(id) ?? [];
    const days = (daily.get(id) ?? []).filter(([, ts]) => ts < (hours[0]?.[1] ?? now));
    const points = [...days, ...hours, ...(newest.get(id) ?? [])];
    return points.length < 2 ? [] : [[id, toSparkline(points, from)]];
  };
  return Object.fromEntries([...new Set([...daily.keys(), ...hourly.keys()])].flatMap(linesOf));
}

function toSparkline(points: readonly PricePoint[], from: Micros): Sparkline {
  const prices = points.map(([, , price]) => price);
  const [low, high] = [Math.min(...prices), Math.max(...prices)];
  return points.flatMap(([, ts, price]) => [
    Math.round((ts - from) / MICROS_PER_MINUTE),
    high > low ? Math.round(((price - low) / (high - low)) * 100) : 50,
  ]);
}

const foldSql = (sql: string) => `lower(replace(${sql}, '/', '-'))`;

/** Of several labels of one ticker the best match counts. Of two names with one slug, the exact name is meant. */
const findSql = `SELECT stream, key, id, name,
    max(CASE WHEN :text IN (id, name) THEN 2 ELSE ${foldSql("label")} = :needle END) AS quality
  FROM (${snapshotNamesSql}) WHERE id = :text OR instr(${foldSql("label")}, :needle)
  GROUP BY stream, key ORDER BY quality DESC, length(name), name LIMIT :most`;

interface FoundTicker {
  readonly stream: SnapshotStream;
  readonly key: number;
  readonly id: string;
  readonly name: string;
  readonly quality: number;
}

/** So many of those that a name finds are looked at for rows: most contracts have expired. */
const MAX_EXAMINED = 200;

/**
 * The tickers of exchanges, contracts and market caps that a text finds, beside the indices that it has found; if nothing has the
 * name, those that have the part after its colon.
 */
export function addTickers(
  connection: Connection,
  text: string,
  found: readonly SeriesMatch[],
  limit: number,
): readonly SeriesMatch[] {
  const needle = fold(text);
  // One letter finds nearly all of the thousands.
  if (needle.length < 2) return found;
  const slugs = new Set<string>();
  const tickers = connection
    .rows<FoundTicker>(findSql, { text, needle, most: MAX_EXAMINED })
    .filter(({ stream, key }) => connection.findValue(`SELECT 1 ${ofSeries(stream, "true")} LIMIT 1`, [key]))
    .slice(0, limit)
    .map(({ stream, id, name, quality }): SeriesMatch => {
      const slug = slugs.has(nameToSlug(name)) ? id : nameToSlug(name);
      slugs.add(slug);
      const match = quality > 0 ? "exact" : "part";
      return { index_type: stream, index_id: id, name, slug, has_ticks: true, match };
    });
  const own = found.filter(({ match }) => match !== "similar");
  if (own.length + tickers.length > 0) return [...own, ...tickers].slice(0, limit);
  const colon = text.indexOf(":");
  const near = colon > 0 ? addTickers(connection, text.slice(colon), [], limit) : [];
  return [...near.map((one) => ({ ...one, match: "similar" as const })), ...found].slice(0, limit);
}
