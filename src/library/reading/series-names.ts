import { Failure } from "../../model/failure.ts";
import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import {
  describeChoices,
  KnownNames,
  type KnownSeries,
  type NamedSeries,
} from "../../warehouse/lookups/resolve-names.ts";
import { findFigure, ofSeries, type TickStream } from "../../warehouse/lookups/series-kinds.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SeriesInfo } from "../rows.ts";

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
  /** Its price is told in that of another series. */
  readonly over?: KeyedSeries | undefined;
  /** What the reports of gaps know it by. */
  readonly named: NamedSeries;
}

const MAX_CHOICES = 5;

/** `schema`: `main.` reads the present state, also where an earlier one is shown. */
const seriesSql = (schema: "" | "main.") => `SELECT s.series AS key, s.index_type, s.index_id, s.name,
  EXISTS (SELECT 1 FROM ${schema}index_tick_rows t WHERE t.series = s.series) AS has_ticks,
  EXISTS (SELECT 1 FROM ${schema}daily_bar_rows b WHERE b.series = s.series) AS has_ohlcv
FROM series s WHERE s.index_type <> ''`;
const allSql = `${seriesSql("main.")} ORDER BY s.index_type, s.name, s.index_id`;
const oneSql = `${seriesSql("")} AND s.series = ?`;

/** Every series of which the warehouse has ticks or daily bars. */
export function readSeries(connection: Connection): SeriesInfo[] {
  return connection
    .rows<StoredSeries>(allSql)
    .filter(hasRows)
    .map(({ key: _, ...series }) => series);
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
  names: readonly string[],
  { indexType, of, over: divisor }: SeriesOptions = {},
): KeyedSeries[] {
  if (names.length === 0) throw usage("no series is given", "name one, such as BTC, BTC/USD or BLX");
  const type = indexType === undefined ? undefined : readIndexType(indexType);
  const known = new KnownNames(connection);
  const resolved = names.map((name) => resolveName(connection, known, name, type));
  // The same series under two names would appear twice.
  const unique = new Map(resolved.map((series) => [`${series.index_type} ${series.index_id}`, series]));
  const over = divisor === undefined ? undefined : resolveSeries(connection, [divisor], { indexType })[0];
  return [...unique.values()].map((series) => ({
    ...series,
    figure: findFigure(series.stream, series.name, of),
    ...(over && { over, name: `${series.name} over ${over.name}` }),
  }));
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
    throw usage(`${name} is an exchange`, `give one of its markets too, such as ${name}:BTC/USD`);
  const stored = all.filter(({ series }) => hasRows(series));
  const choices = stored.length > 0 ? stored : all;
  const [only] = choices;
  if (choices.length === 1 && only) return only.series;
  const told = describeChoices(
    connection,
    index,
    choices.map(({ named }) => named),
  );
  throw new Failure(`${name} is the name of ${choices.length} series`, {
    code: "unknown_series",
    remedy: `give ${told.slice(0, MAX_CHOICES).join(" or ")}`,
  });
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
    throw usage(`there is no index type ${text}`, `give one of ${indexTypes.join(", ")}`);
  return type;
}

function usage(message: string, remedy: string): Failure {
  return new Failure(message, { code: "usage", remedy });
}
