import type { EntityKind } from "../../api-server/source.ts";
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

const lookups: Readonly<Record<EntityKind, { readonly table: string; readonly columns: readonly Column[] }>> =
  {
    asset: { table: "assets", columns: assetColumns },
    market: { table: "market_rows", columns: marketColumns },
    exchange: { table: "exchanges", columns: exchangeColumns },
  };

function recordText(columns: readonly Column[]): (row: Row) => string {
  const writer = new RecordWriter(columns);
  return (row) => writer.properties(row) + extraProperties(row.extra);
}

const writers = {
  asset: recordText(assetColumns),
  market: recordText(marketColumns),
  exchange: recordText(exchangeColumns),
};

/** The elements of a list of an exchange. */
function elements(columns: readonly Column[], table: string) {
  const write = recordText(columns);
  const sql = `SELECT * FROM ${table} WHERE exchange_id = ? AND delisted_at IS NULL`;
  return (connection: Connection, exchangeId: string) =>
    connection.rows<Row>(sql, [exchangeId]).map((row) => `{${write(row)}}`);
}

const writeMarkets = elements(exchangeMarketColumns, "exchange_markets");
const writeSymbols = elements(exchangeSymbolColumns, "exchange_symbols");

function writeEntity(connection: Connection, kind: EntityKind, row: Row): string {
  const properties = writers[kind](row);
  if (kind !== "exchange") return `{${properties}}`;
  const [markets, symbols] = [writeMarkets(connection, row.id), writeSymbols(connection, row.id)];
  return `{${properties},"markets":[${markets}],"symbols":[${symbols}]}`;
}

/** What the service listed last. */
export function readEntities(
  connection: Connection,
  kind: EntityKind,
  filter: Readonly<Record<string, string | undefined>>,
): string[] {
  const { table, columns } = lookups[kind];
  const given = columns.filter(({ field }) => filter[field] !== undefined);
  const conditions = given.map(({ name }) => ` AND ${name} = ?`).join("");
  const rows = connection.rows<Row>(
    `SELECT * FROM ${table} WHERE delisted_at IS NULL${conditions} ORDER BY first_seen, id`,
    given.map(({ field }) => filter[field]),
  );
  return rows.map((row) => writeEntity(connection, kind, row));
}

/** One entity, also one that the service no longer lists. */
export function readEntity(connection: Connection, kind: EntityKind, id: string): string | undefined {
  const row = connection.findRow<Row>(`SELECT * FROM ${lookups[kind].table} WHERE id = ?`, [id]);
  return row && writeEntity(connection, kind, row);
}

/** The markets of a pair joined by an underscore; several if they share their symbols. */
export function findMarkets(connection: Connection, name: string): readonly string[] {
  const sql = `SELECT m.id FROM market_rows m JOIN assets b ON b.id = m.base_asset_id JOIN assets q ON q.id = m.quote_asset_id
    WHERE b.symbol || '_' || q.symbol = ? AND m.delisted_at IS NULL`;
  return connection.values<string>(sql, [name]);
}
