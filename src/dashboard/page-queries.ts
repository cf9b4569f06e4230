import { readChartBars } from "../library/reading/chart-bars.ts";
import type { RankingResult } from "../model/answers/market.ts";
import type { Micros } from "../model/time.ts";
import { readSchema } from "../warehouse/query/query.ts";
import { type Heatmap, readHeatmap } from "../warehouse/read/heatmap.ts";
import {
  addTickers,
  readExchanges,
  readMarketRanking,
  readSparklines,
  type SearchedPages,
  searchPages,
} from "../warehouse/read/page-search.ts";
import { readStatusInSteps } from "../warehouse/read/status.ts";
import { openReader } from "../warehouse/reader.ts";
import { type Connection, SMALL_CACHE_KIB } from "../warehouse/sqlite/connection.ts";
import type { QueryResults } from "./api-answers.ts";
import { readPageView } from "./page-views.ts";
import type { PageParams } from "./query-params.ts";
import { type CacheClock, TtlCache } from "./ttl-cache.ts";

export type PageQuery = {
  readonly [K in keyof QueryResults]: {
    /** The warehouse file; it may not exist yet. */
    readonly path: string;
    readonly kind: K;
    readonly params: PageParams[K];
    /** By the service's clock. */
    readonly now: Micros;
    /** When the service is asked again about what it must repeat. */
    readonly confirmation?: Parameters<typeof readStatusInSteps>[2];
  };
}[keyof QueryResults];

const FOLDED_ROWS = 8;
const MAX_UNFOLDED_ROWS = 400;
const MAX_MISSING_PARTS = 40;
/** Reading the whole ledger takes the longest: a page that asks rarely gets the last state, and soon a newer one. */
const HEATMAP_TTL = { minTtlMs: 10_000, maxStaleMs: 50_000 };
/** Seven days change little, but the first bars of a backfill must appear. */
const SPARKLINES_TTL = { minTtlMs: 15_000, maxStaleMs: 240_000 };
/** Pairs, contracts and relations change rarely. */
const SEARCHED_TTL = { minTtlMs: 60_000, maxStaleMs: 600_000 };
const MAX_SERIES_FOUND = 12;
const MAX_SERIES_SEARCHED = 6;
/** A longer read of bars is cut short, because other queries wait for it. */
const BARS_TIMEOUT_MS = 2_000;

/** Runs the dashboard's queries; lives in the reader thread and has its own connection. */
export class PageQueries {
  readonly #clock: CacheClock;
  readonly #heatmaps: TtlCache<Heatmap>;
  readonly #sparklines: TtlCache<RankingResult["sparklines"]>;
  readonly #searched: TtlCache<SearchedPages>;
  #reader: Connection | undefined;
  /** Those that no read in steps has at present: to open one takes longer than a small read. */
  readonly #idle: Connection[] = [];

  constructor(clock: CacheClock) {
    this.#clock = clock;
    this.#heatmaps = new TtlCache(clock);
    this.#sparklines = new TtlCache(clock);
    this.#searched = new TtlCache(clock);
  }

  async run(query: PageQuery): Promise<QueryResults[keyof QueryResults]> {
    this.#reader ??= openReader(query.path, SMALL_CACHE_KIB);
    const reader = this.#reader;
    // Three queries use the heat map, and building it is the slowest part of them.
    const heatmap = () =>
      this.#heatmaps.get("heatmap", HEATMAP_TTL, () =>
        this.#readInSteps(query.path, (connection) => readHeatmap(connection, query.now)),
      );
    const find = async (name: string, limit: number) =>
      addTickers(reader, name, (await heatmap()).series.find(name, limit), limit);
    switch (query.kind) {
      case "status":
        return this.#readInSteps(query.path, (connection) =>
          readStatusInSteps(connection, query.now, query.confirmation),
        );
      case "coverage":
        return (await heatmap()).toResult({
          ...{ ...query.params, defaultLimit: FOLDED_ROWS },
          byGroup: new Map(query.params.unfolded.map((group) => [group, MAX_UNFOLDED_ROWS])),
        });
      case "missing":
        return (await heatmap()).summarizeGaps(MAX_MISSING_PARTS);
      case "bars": {
        const until = this.#clock.monotonic() + BARS_TIMEOUT_MS;
        return readChartBars(reader, query.params, () => this.#clock.monotonic() < until);
      }
      case "series":
        return find(query.params.name, MAX_SERIES_FOUND);
      case "search": {
        const pages = await this.#searched.get("searched", SEARCHED_TTL, async () => ({
          pairs: readPageView(reader, "pairs", {}, query.now).parts.pairs.rows,
          exchanges: readExchanges(reader),
          assets: readPageView(reader, "derivative-assets", {}, query.now).parts.assets.rows,
          schema: readSchema(reader),
        }));
        return searchPages(query.params.name, await find(query.params.name, MAX_SERIES_SEARCHED), pages);
      }
      case "schema":
        return readSchema(reader);
      case "market": {
        const sparklines = await this.#sparklines.get("sparklines", SPARKLINES_TTL, () =>
          this.#readInSteps(query.path, (connection) => readSparklines(connection, query.now)),
        );
        return { assets: readMarketRanking(reader), sparklines };
      }
      default:
        return readPageView(reader, query.kind, query.params, query.now);
    }
  }

  /** Between the steps this thread answers other queries; so they have a connection and a transaction of their own. */
  async #readInSteps<T>(path: string, read: (connection: Connection) => Generator<void, T>): Promise<T> {
    const connection = this.#idle.pop() ?? openReader(path, SMALL_CACHE_KIB);
    try {
      connection.database.exec("BEGIN");
      for (const steps = read(connection); ; ) {
        const { done, value } = steps.next();
        if (done) {
          connection.database.exec("COMMIT");
          this.#idle.push(connection);
          return value;
        }
        await new Promise<void>((resolve) => this.#clock.after(0, resolve));
      }
    } catch (error) {
      connection.close();
      throw error;
    }
  }
}
