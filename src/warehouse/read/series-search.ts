import type { SeriesId, SeriesMatch } from "../../model/answers/heatmap.ts";
import { nameToSlug } from "../../model/answers/page-address.ts";
import { findClosestWords } from "../../model/did-you-mean.ts";
import { splitType } from "../../model/name-index.ts";

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
    const similar = findClosestWords(
      needle,
      known.map(({ folded }) => folded),
    ).slice(0, limit);
    return known
      .filter(({ folded }) => similar.includes(folded))
      .sort((a, b) => similar.indexOf(a.folded) - similar.indexOf(b.folded))
      .slice(0, limit)
      .map((one) => toMatch(one, "similar"));
  }
}

function toMatch({ series, slug }: KnownSeries, match: SeriesMatch["match"]): SeriesMatch {
  const { title: _, ...rest } = series;
  return { ...rest, slug, match };
}
