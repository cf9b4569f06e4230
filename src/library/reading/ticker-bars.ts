import type { ChartBar, ChartBarsResult, ChartRange } from "../../model/answers/chart-bars.ts";
import { barWidths, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import { figuresOf, ofSeries, tickColumns } from "../../warehouse/lookups/series-kinds.ts";
import { type ChartBarsOptions, MAX_GAPS, readNewestFirst } from "../../warehouse/read/chart-bars.ts";
import { NOT_FOLLOWED_REASON, readGapReport } from "../../warehouse/read/gap-report.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { createBarGrid } from "./bar-grid.ts";
import { readBars } from "./bar-reader.ts";
import { readTicker, withSource } from "./series-names.ts";

const toSeconds = (ts: Micros) => ts / MICROS_PER_SECOND;

/** The bars of an exchange's ticker, a contract or a market cap, as the library reads them. Undefined if none has that id. */
export function readTickerBars(
  connection: Connection,
  options: ChartBarsOptions,
  hasTime: () => boolean,
): ChartBarsResult | undefined {
  const { indexType, indexId, width, of, to } = options;
  return connection.database.transaction(() => {
    const ticker = readTicker(connection, { stream: indexType, id: indexId, of });
    if (!ticker) return undefined;
    const { stream, key, name, named } = ticker;
    const grid = createBarGrid(width);
    const { from, parts } = readNewestFirst(options, hasTime, (range) => [
      ...readBars(connection, { ...withSource(ticker, "ticks"), range }, grid, true),
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
    const { gaps } = readGapReport(connection, { streams: [stream], series: [named] }, known);
    return {
      // No news of commits are about it.
      series: 0,
      ...{ index_type: indexType, index_id: indexId, name, width, from: toSeconds(from), to: toSeconds(to) },
      ...{
        is_cut: from > options.from,
        first,
        ticks_from: first,
        last_price: seek(price, `${price} IS NOT NULL`, "DESC"),
        of: ticker.figure,
        figures: figuresOf(stream),
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
