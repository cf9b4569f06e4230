import { createBarGrid } from "../library/reading/bar-grid.ts";
import { readBars } from "../library/reading/bar-reader.ts";
import { readTicker } from "../library/reading/series-names.ts";
import type { ChartBar, ChartBarsResult, ChartRange } from "../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../model/answers/heatmap.ts";
import { nameToSlug } from "../model/answers/page-address.ts";
import type { SnapshotStream } from "../model/streams.ts";
import { barWidths, MICROS_PER_SECOND, type Micros } from "../model/time.ts";
import { readPresentTs } from "../warehouse/coverage/targets.ts";
import { snapshotNamesSql } from "../warehouse/lookups/resolve-names.ts";
import { ofSeries, tickColumns } from "../warehouse/lookups/series-kinds.ts";
import { type ChartBarsOptions, MAX_GAPS, readNewestFirst } from "../warehouse/read/chart-bars.ts";
import { NOT_FOLLOWED_REASON, readGapReportInRange } from "../warehouse/read/gap-report.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";

const toSeconds = (ts: Micros) => ts / MICROS_PER_SECOND;

/** The bars of an exchange's ticker, a contract or a market cap, as the library reads them. Undefined if none has that id. */
export function readTickerBars(
  connection: Connection,
  options: ChartBarsOptions,
  hasTime: () => boolean,
): ChartBarsResult | undefined {
  const { indexType, indexId, width, to } = options;
  return connection.database.transaction(() => {
    const ticker = readTicker(connection, indexType, indexId);
    if (!ticker) return undefined;
    const { stream, key, name, named } = ticker;
    const grid = createBarGrid(width);
    const { from, parts } = readNewestFirst(options, hasTime, (range) => [
      ...readBars(connection, ticker, { grid, range, source: "ticks", running: true }),
    ]);
    const seek = (column: string, condition: string, direction?: "DESC") =>
      connection.findValue<number>(`SELECT ${column} ${ofSeries(stream, condition, direction)} LIMIT 1`, [
        key,
      ]) ?? null;
    const { price } = tickColumns(ticker);
    const firstTick = seek("ts", "true");
    const length = barWidths[width];
    const first = firstTick === null ? null : toSeconds(Math.floor(firstTick / length) * length);
    const known = { from, to: Math.min(to, readPresentTs(connection)) };
    const { gaps } = readGapReportInRange(connection, { streams: [stream], series: [named] }, known);
    return {
      // No news of commits are about it.
      series: 0,
      ...{ index_type: indexType, index_id: indexId, name, width, from: toSeconds(from), to: toSeconds(to) },
      ...{
        is_cut: from > options.from,
        first,
        ticks_from: first,
        last_price: seek(price, `${price} IS NOT NULL`, "DESC"),
      },
      bars: parts.map(
        (bar): ChartBar => [
          ...([toSeconds(bar.ts), bar.open, bar.high, bar.low, bar.close, bar.n_ticks] as const),
          ...([bar.expected_ticks, bar.coverage, bar.is_complete, bar.volume_24h] as const),
        ],
      ),
      days: [],
      spans: gaps.slice(-MAX_GAPS).map(
        ({ from_ts, to_ts, state, reason }): ChartRange => ({
          ...{ from: toSeconds(from_ts), to: toSeconds(to_ts), stream, reason },
          state: reason === NOT_FOLLOWED_REASON ? "none" : state,
        }),
      ),
    };
  })();
}

const fold = (sql: string) => `lower(replace(${sql}, '/', '-'))`;

/** Of several labels of one ticker the best match counts. Of two names with one slug, the exact name is meant. */
const findSql = `SELECT stream, key, id, name,
    max(CASE WHEN :text IN (id, name) THEN 2 ELSE ${fold("label")} = :needle END) AS quality
  FROM (${snapshotNamesSql}) WHERE id = :text OR instr(${fold("label")}, :needle)
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
  const needle = nameToSlug(text).toLowerCase();
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
