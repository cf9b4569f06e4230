import { Failure, usageFailure } from "../../model/failure.ts";
import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import {
  describeChoices,
  KnownNames,
  type KnownSeries,
  type NamedSeries,
  snapshotNamesSql,
} from "../../warehouse/lookups/resolve-names.ts";
import { findFigure, ofSeries, seriesKinds, type TickStream } from "../../warehouse/lookups/series-kinds.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { sqliteDialect } from "../../warehouse/views/sqlite-dialect.ts";
import type { SeriesSelection } from "../read-options.ts";
import type { BarSource, ListedSeries, SeriesInfo } from "../rows.ts";
import type { BarGrid } from "./bar-grid.ts";
import type { TimeZone } from "./time-zone.ts";

/** The stored columns of a series. */
type StoredSeries = SeriesInfo & Pick<KeyedSeries, "key">;

/** A series with its key in the tables; null if the warehouse has nothing of it. */
export interface KeyedSeries extends SeriesInfo {
  readonly key: number | null;
  /** The stream of its ticks. */
  readonly stream: TickStream;
  /** The figure of its ticks that is read as their price. */
  readonly figure: string;
  /** Its keys in the ledger: its own, or those of the subscriptions to its exchange and to all. */
  readonly ledgerKeys: readonly [number | null, number | null];
  /** Its price is stated in that of another series. */
  readonly over?: KeyedSeries | undefined;
  /** What the reports of gaps know it by. */
  readonly named: NamedSeries;
}

/** A series, what its rows are made of, and the stream that has them. */
export interface SourcedSeries {
  readonly series: KeyedSeries;
  readonly source: BarSource;
  readonly stream: RowStream;
}

/** Which ticks of one series to read. */
export interface TickPlan extends SourcedSeries {
  readonly range: TimeRange;
  /** Of the times in the rows. */
  readonly zone: TimeZone;
}

/** Which bars of one series to read. */
export interface BarPlan extends SourcedSeries {
  readonly range: TimeRange;
  readonly grid: BarGrid;
}

/** Which moments of one series to read. */
export interface MomentPlan extends SourcedSeries, Pick<TickPlan, "zone"> {
  readonly moments: readonly Micros[];
  /** The time of day at which they are, if they are one a day. */
  readonly schedule?: string | undefined;
}

const MAX_CHOICES = 5;

const hasDailyBars = (key: string) =>
  `EXISTS (SELECT 1 FROM daily_bar_rows b WHERE b.series = ${key}) AS has_ohlcv`;
const oneSql = `SELECT s.series AS key, s.index_type, s.index_id, s.name,
  EXISTS (SELECT 1 FROM index_tick_rows t WHERE t.series = s.series) AS has_ticks, ${hasDailyBars("s.series")}
FROM series s WHERE s.index_type <> '' AND s.series = ?`;

/** The first and the last tick are two seeks each: an exchange ticker may have millions. */
const listSql = `WITH listed AS MATERIALIZED (
  ${Object.entries(seriesKinds)
    .map(([name, { namesSql }]) => {
      const stream = name as TickStream;
      const end = (direction?: "DESC") =>
        `(SELECT ts ${ofSeries(stream, "true", direction, "d.key")} LIMIT 1)`;
      const [names, hasOhlcv] =
        namesSql === null
          ? [
              "SELECT series AS key, index_type, index_id, name FROM series WHERE index_type <> ''",
              hasDailyBars("d.key"),
            ]
          : [
              `SELECT DISTINCT key, '${stream}' AS index_type, id AS index_id, name FROM (${namesSql})`,
              "0 AS has_ohlcv",
            ];
      return `SELECT d.*, ${hasOhlcv}, ${end()} AS first, ${end("DESC")} AS last FROM (${names}) d`;
    })
    .join(" UNION ALL ")})
SELECT index_type, index_id, name, first IS NOT NULL AS has_ticks, has_ohlcv,
  ${sqliteDialect.moment("first")} AS first, ${sqliteDialect.moment("last")} AS last
FROM listed WHERE listed.first IS NOT NULL OR has_ohlcv ORDER BY index_type, name, index_id`;

/** Every series of which the warehouse has ticks or daily bars. */
export function readSeries(connection: Connection): ListedSeries[] {
  return connection.rows<ListedSeries>(listSql);
}

const hasRows = ({ has_ticks, has_ohlcv }: SeriesInfo) => has_ticks === 1 || has_ohlcv === 1;

/** Which series to read, and which figure of them. */
export interface SeriesOptions {
  readonly indexType?: string | undefined;
  /** Default: the price. */
  readonly of?: string | undefined;
  /** The series in whose price those of the others are. */
  readonly over?: string | undefined;
}

/** Resolves names. If several series share one, the only one with rows is meant; otherwise a Failure lists them. */
export function resolveSeries(
  connection: Connection,
  given: SeriesSelection,
  { indexType, of, over: divisor }: SeriesOptions = {},
): KeyedSeries[] {
  const names = typeof given === "string" ? [given] : given;
  if (names.length === 0) throw usageFailure("no series is given", "name one, such as BTC, BTC/USD or BLX");
  const type = indexType === undefined ? undefined : readIndexType(indexType);
  const known = new KnownNames(connection);
  const resolved = names.map((name) => resolveName(connection, known, name, type));
  // The same series under two names would appear twice.
  const unique = new Map(resolved.map((series) => [`${series.index_type} ${series.index_id}`, series]));
  const over = divisor === undefined ? undefined : resolveSeries(connection, divisor, { indexType })[0];
  return [...unique.values()].map((series) => ({
    ...series,
    figure: findFigure(series.stream, series.name, of),
    ...(over && { over, name: `${series.name} over ${over.name}` }),
  }));
}

/** Whether the series is the price of an index, of which there are daily and hourly bars. */
export function hasKeptBars({ stream, figure, over }: KeyedSeries): boolean {
  return stream === "index_ticks" && figure === "price" && over === undefined;
}

/** Default: ticks, if the warehouse has any of the series; else its daily bars. */
function chooseSource(series: KeyedSeries, given?: BarSource): BarSource {
  if (given === "ohlcv" && !hasKeptBars(series))
    throw usageFailure(`${series.name} has no daily bars of ${series.figure}`, "leave out --source");
  return (
    given ?? (series.has_ticks === 0 && series.has_ohlcv === 1 && hasKeptBars(series) ? "ohlcv" : "ticks")
  );
}

export function withSource(series: KeyedSeries, source: BarSource): SourcedSeries {
  return { series, source, stream: source === "ohlcv" ? "ohlcv" : series.stream };
}

/** Resolves names, and where the rows of each series are from. */
export function resolveSources(
  connection: Connection,
  names: SeriesSelection,
  { source, ...options }: SeriesOptions & { readonly source?: BarSource | undefined },
): SourcedSeries[] {
  return resolveSeries(connection, names, options).map((series) =>
    withSource(series, chooseSource(series, source)),
  );
}

function resolveName(
  connection: Connection,
  known: KnownNames,
  name: string,
  type: IndexType | undefined,
): Omit<KeyedSeries, "figure"> {
  const { found, index } = known.find(name, type);
  const all = found
    .filter(({ indexType, stream }) => indexType !== null || stream !== undefined)
    .map((named) => ({ named, series: readKeyed(connection, named) }));
  if (all.length === 0)
    throw usageFailure(`${name} is an exchange`, `give one of its markets too, such as ${name}:BTC/USD`);
  const stored = all.filter(({ series }) => hasRows(series));
  const choices = stored.length > 0 ? stored : all;
  const [only] = choices;
  if (choices.length === 1 && only) return only.series;
  const choiceTexts = describeChoices(
    connection,
    index,
    choices.map(({ named }) => named),
  );
  throw new Failure(`${name} is the name of ${choices.length} series`, {
    code: "unknown_series",
    remedy: `give ${choiceTexts.slice(0, MAX_CHOICES).join(" or ")}`,
  });
}

const indexSql =
  "SELECT series AS key, index_id AS id, index_type AS indexType, name FROM series WHERE index_type = ? AND index_id = ?";
const tickerSql = `SELECT * FROM (${snapshotNamesSql}) WHERE stream = ? AND id = ? LIMIT 1`;

/** A series by its ids; `indexType` of what is no index is its stream. Undefined if there is none. */
export function readById(
  connection: Connection,
  { indexType, indexId, of }: Readonly<Record<"indexType" | "indexId", string>> & SeriesOptions,
): KeyedSeries | undefined {
  const ids = [indexType, indexId];
  const named =
    connection.findRow<KnownSeries>(indexSql, ids) ?? connection.findRow<KnownSeries>(tickerSql, ids);
  if (!named) return undefined;
  const series = readKeyed(connection, named);
  return { ...series, figure: findFigure(series.stream, series.name, of) };
}

const subscriptionsSql = "SELECT series FROM series WHERE index_type = '' AND index_id IN ('', ?)";

function readKeyed(connection: Connection, named: KnownSeries): Omit<KeyedSeries, "figure"> {
  const { key, id, indexType, name, stream, ledgerId } = named;
  if (stream !== undefined) {
    const hasTicks = connection.findValue(`SELECT 1 ${ofSeries(stream, "1")} LIMIT 1`, [key]);
    const [own = null, all = null] = connection.values<number>(subscriptionsSql, [ledgerId ?? ""]);
    return {
      ...{ key, stream, name, index_type: stream, index_id: id, has_ohlcv: 0 },
      has_ticks: hasTicks === undefined ? 0 : 1,
      ledgerKeys: [own, all],
      named,
    };
  }
  const stored = key === null ? undefined : connection.findRow<StoredSeries>(oneSql, [key]);
  const labels = { index_type: indexType ?? "", index_id: id, name };
  return {
    ...(stored ?? { key: null, ...labels, has_ticks: 0, has_ohlcv: 0 }),
    stream: "index_ticks",
    ledgerKeys: [key, null],
    named: { ...named, name: stored?.name ?? name },
  };
}

function readIndexType(text: string): IndexType {
  const type = indexTypes.find((known) => known === text.toUpperCase());
  if (type === undefined)
    throw usageFailure(`there is no index type ${text}`, `give one of ${indexTypes.join(", ")}`);
  return type;
}
