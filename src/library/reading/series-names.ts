import { Failure } from "../../model/failure.ts";
import type { NameIndex } from "../../model/name-index.ts";
import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import {
  describeChoices,
  type KnownSeries,
  readNames,
  unknownSeries,
} from "../../warehouse/lookups/resolve-names.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SeriesInfo } from "../rows.ts";

/** A series with its key in the tables; null if the warehouse has nothing of it. */
export interface KeyedSeries extends SeriesInfo {
  readonly key: number | null;
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
    .rows<KeyedSeries>(allSql)
    .filter(hasRows)
    .map(({ key: _, ...series }) => series);
}

const hasRows = ({ has_ticks, has_ohlcv }: SeriesInfo) => has_ticks === 1 || has_ohlcv === 1;

/** Resolves names. If several series share one, the only one with rows is meant; otherwise a Failure lists them. */
export function resolveSeries(
  connection: Connection,
  names: readonly string[],
  indexType?: string,
): KeyedSeries[] {
  if (names.length === 0) throw usage("no series is given", "name one, such as BTC, BTC/USD or BLX");
  const type = indexType === undefined ? undefined : readIndexType(indexType);
  const index = readNames(connection);
  const resolved = names.map((name) => resolveName(connection, index, name, type));
  // The same series under two names would appear twice.
  return [...new Map(resolved.map((series) => [`${series.index_type} ${series.index_id}`, series])).values()];
}

function resolveName(
  connection: Connection,
  index: NameIndex<KnownSeries>,
  name: string,
  type: IndexType | undefined,
): KeyedSeries {
  const found = index.find(name, type).filter(({ indexType }) => indexType !== null);
  if (found.length === 0) throw unknownSeries(name, index, type);
  const all = found.map((named) => ({ named, series: readKeyed(connection, named) }));
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

function readKeyed(connection: Connection, { key, id, indexType, name }: KnownSeries): KeyedSeries {
  const stored = key === null ? undefined : connection.findRow<KeyedSeries>(oneSql, [key]);
  return stored ?? { key: null, index_type: indexType ?? "", index_id: id, name, has_ticks: 0, has_ohlcv: 0 };
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
