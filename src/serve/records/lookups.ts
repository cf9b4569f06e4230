import type { EntityKind, SourceState } from "../../api-server/source.ts";
import type { Column } from "../../model/column.ts";
import {
  assetColumns,
  exchangeColumns,
  exchangeMarketColumns,
  exchangeSymbolColumns,
  marketColumns,
} from "../../model/stream-columns.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { extraProperties, RecordWriter } from "./record-text.ts";

type Row = Readonly<Record<string, unknown>> & { readonly id: string; readonly extra: string | null };

const lookups = {
  asset: lookup("assets", assetColumns),
  market: lookup("market_rows", marketColumns),
  exchange: lookup("exchanges", exchangeColumns),
};

function lookup(table: string, columns: readonly Column[]) {
  const writer = new RecordWriter(columns);
  return { table, columns, write: (row: Row) => writer.properties(row) + extraProperties(row.extra) };
}

/** What the lists of an exchange have. */
const listsOfExchange = {
  markets: lookup("exchange_markets", exchangeMarketColumns),
  symbols: lookup("exchange_symbols", exchangeSymbolColumns),
};

function writeEntity(connection: Connection, kind: EntityKind, row: Row): string {
  const properties = lookups[kind].write(row);
  if (kind !== "exchange") return `{${properties}}`;
  const lists = Object.entries(listsOfExchange).map(([name, { table, write }]) => {
    const sql = `SELECT * FROM ${table} WHERE exchange_id = ? AND delisted_at IS NULL`;
    return `"${name}":[${connection.rows<Row>(sql, [row.id]).map((each) => `{${write(each)}}`)}]`;
  });
  return `{${properties},${lists}}`;
}

/** The lists of a warehouse as the API serves them. */
export function lookupReaders(connection: Connection): Pick<SourceState, "entities" | "findMarkets"> {
  return {
    entities(kind, filter) {
      const { table, columns } = lookups[kind];
      const given = columns.filter(({ field }) => filter[field] !== undefined);
      const conditions = given.map(({ name }) => `${name} = ?`);
      if (filter.id === undefined) conditions.push("delisted_at IS NULL");
      const rows = connection.rows<Row>(
        `SELECT * FROM ${table} WHERE ${conditions.join(" AND ")} ORDER BY first_seen, id`,
        given.map(({ field }) => filter[field]),
      );
      return rows.map((row) => writeEntity(connection, kind, row));
    },
    findMarkets(name) {
      const sql = `SELECT m.id FROM market_rows m JOIN assets b ON b.id = m.base_asset_id JOIN assets q ON q.id = m.quote_asset_id
        WHERE b.symbol || '_' || q.symbol = ? AND m.delisted_at IS NULL`;
      return connection.values<string>(sql, [name]);
    },
  };
}
