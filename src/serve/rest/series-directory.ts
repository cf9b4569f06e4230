import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { ServeError } from "./serve-error.ts";

/** An index, and its key in the warehouse. */
export interface ServedSeries {
  /** Undefined: an asset or market of which nothing was synced. */
  readonly series: number | undefined;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
}

export interface SeriesFilter {
  readonly indexType?: string | undefined;
  readonly indexId?: string | undefined;
}

const columns = "series, index_type AS indexType, index_id AS indexId, name";
const seriesSql = {
  one: `SELECT ${columns} FROM series WHERE index_type = ? AND index_id = ?`,
  byId: `SELECT ${columns} FROM series WHERE index_id = ? AND index_type <> '' ORDER BY series`,
  byType: `SELECT ${columns} FROM series WHERE index_type = ? ORDER BY series`,
  all: `SELECT ${columns} FROM series WHERE index_type <> '' ORDER BY series`,
};

/** The series that a request selects. */
export function findSeries(
  connection: Connection,
  { indexType, indexId }: SeriesFilter,
): readonly ServedSeries[] {
  const all = (sql: string, values: readonly string[]) => connection.rows<ServedSeries>(sql, values);
  if (indexType !== undefined && indexId !== undefined) return all(seriesSql.one, [indexType, indexId]);
  if (indexId !== undefined) return all(seriesSql.byId, [indexId]);
  return indexType === undefined ? all(seriesSql.all, []) : all(seriesSql.byType, [indexType]);
}

/**
 * The one series of an index. Throws 404 if neither the lookups nor the rows know it. One that the service answered with 404 is
 * empty here: its ledger says for which time.
 */
export function requireSeries(
  connection: Connection,
  filter: { readonly indexType?: string | undefined; readonly indexId: string },
): ServedSeries {
  const [known] = findSeries(connection, filter);
  if (known?.series !== undefined) return known;
  const types = indexTypes.filter((type) => filter.indexType === undefined || type === filter.indexType);
  const found = types.find((type) => isListed(connection, type, filter.indexId));
  if (found === undefined) throw notFound(filter.indexId);
  return { series: undefined, indexType: found, indexId: filter.indexId, name: filter.indexId };
}

function isListed(connection: Connection, type: IndexType, id: string): boolean {
  if (type === "LX") return false;
  const table = type === "GWA" ? "assets" : "market_rows";
  return connection.findRow(`SELECT 1 FROM ${table} WHERE id = ?`, [id]) !== undefined;
}

function notFound(indexId: string): ServeError {
  return new ServeError(404, `No index ${indexId}`);
}
