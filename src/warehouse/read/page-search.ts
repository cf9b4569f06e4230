import type { DerivativeAsset } from "../../model/answers/derivatives.ts";
import type { SeriesMatch } from "../../model/answers/heatmap.ts";
import type { ExchangeSummary, PairSummary } from "../../model/answers/market.ts";
import { nameToSlug, pagePath, type SearchMatch } from "../../model/answers/page-address.ts";
import { quoteText } from "../../model/sql-text.ts";
import type { SchemaResult } from "../schema/column-doc.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { SeriesSearch } from "./series-search.ts";

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

const MAX_SERIES = 6;
const MAX_OTHERS = 4;
const MAX_ASSETS = 2;

/** The pages whose subject contains the text: bars of series, exchanges and pairs on them, derivatives of assets, relations. */
export function searchPages(text: string, series: SeriesSearch, pages: SearchedPages): SearchMatch[] {
  const relations = pages.schema.flatMap((group) => group.relations);
  const found = series.find(text, MAX_SERIES);
  const others = [
    ...best(pages.exchanges, text, ({ name }) => name).map(toExchangePage),
    ...best(pages.pairs, text, ({ pair }) => pair).map(
      ({ pair, exchanges }): SearchMatch => ({
        group: "Exchanges",
        name: pair,
        note: exchanges === 1 ? "on one exchange" : `on ${exchanges} exchanges`,
        href: pagePath("exchanges", pair),
      }),
    ),
    ...best(pages.assets, text, ({ symbol }) => symbol).map(
      ({ symbol, contracts }): SearchMatch => ({
        group: "Derivatives",
        name: symbol,
        note: contracts === 1 ? "one contract" : `${contracts.toLocaleString("en")} contracts`,
        href: pagePath("derivatives", symbol),
      }),
    ),
    ...best(relations, text, ({ name }) => name).map(
      ({ name, summary }): SearchMatch => ({
        group: "Relations",
        name,
        note: summary,
        href: `/explore#${new URLSearchParams({ sql: `SELECT * FROM ${name} LIMIT 100` })}`,
      }),
    ),
  ];
  // Enter takes the first: a similar name is no answer where something has the name.
  if (found[0]?.match === "similar" && others.length > 0) return others;
  return [...found.flatMap(toAssetPage).slice(0, MAX_ASSETS), ...found.map(toBarsPage), ...others];
}

/** The average of an asset has its id. */
function toAssetPage({ index_type, index_id, name, slug, match }: SeriesMatch): SearchMatch[] {
  if (index_type !== "GWA" || match === "similar") return [];
  const href = pagePath("assets", slug === nameToSlug(name) ? name : index_id);
  return [{ group: "Assets", name: name || index_id, note: "everything about it", href }];
}

/** Among the others, in the pair that it has in common with the most of them. */
function toExchangePage({ name, pairs, pair }: ExchangeSummary): SearchMatch {
  return {
    group: "Exchanges",
    name,
    note:
      pair === null
        ? "no quotes are synced"
        : pairs === 1
          ? "one pair"
          : `${pairs.toLocaleString("en")} pairs`,
    href:
      pair === null
        ? `/explore#${new URLSearchParams({ sql: `SELECT * FROM exchanges WHERE name = ${quoteText(name)}` })}`
        : `${pagePath("exchanges", pair)}?${new URLSearchParams({ q: name })}`,
  };
}

function toBarsPage({ index_type, name, slug, has_ticks, match }: SeriesMatch): SearchMatch {
  const source = has_ticks ? "" : ", daily bars";
  return {
    group: "Bars",
    name: name || slug,
    note: `${index_type}${source}${match === "similar" ? ", a similar name" : ""}`,
    href: pagePath("bars", slug),
  };
}

/** Names that begin with the text first; else in the order of the list. */
function best<T>(list: readonly T[], text: string, nameOf: (one: T) => string): T[] {
  const needle = nameToSlug(text.trim()).toLowerCase();
  const place = (one: T) => nameToSlug(nameOf(one)).toLowerCase().indexOf(needle);
  return list
    .filter((one) => place(one) >= 0)
    .sort((a, b) => Math.min(1, place(a)) - Math.min(1, place(b)))
    .slice(0, MAX_OTHERS);
}
