import {
  assetColumns,
  exchangeColumns,
  exchangeMarketColumns,
  exchangeSymbolColumns,
  marketColumns,
} from "../../model/stream-columns.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { ParamReader } from "./param-reader.ts";
import { extraProperties, RecordWriter } from "./record-text.ts";
import { ServeError } from "./serve-error.ts";
import { listResponse, type ServeResponse } from "./serve-response.ts";

type Row = Readonly<Record<string, unknown>> & { readonly id: string; readonly extra: string | null };

interface Lookup {
  readonly object: string;
  readonly table: string;
  /** The conditions of the query parameters, by column. */
  readonly filters: (params: ParamReader) => Readonly<Record<string, string | undefined>>;
  readonly write: (connection: Connection, row: Row) => string;
}

const statuses = ["ACTIVE", "INACTIVE"] as const;

function recordText(columns: ConstructorParameters<typeof RecordWriter>[0]): (row: Row) => string {
  const writer = new RecordWriter(columns);
  return (row) => writer.properties(row) + extraProperties(row.extra);
}

const writeAsset = recordText(assetColumns);
const writeMarket = recordText(marketColumns);
const writeExchange = recordText(exchangeColumns);

/** The elements of a list of an exchange. */
function elements(columns: ConstructorParameters<typeof RecordWriter>[0], table: string) {
  const write = recordText(columns);
  const sql = `SELECT * FROM ${table} WHERE exchange_id = ? AND delisted_at IS NULL`;
  return (connection: Connection, exchangeId: string) =>
    connection
      .rows<Row>(sql, [exchangeId])
      .map((row) => `{${write(row)}}`)
      .join(",");
}

const writeMarkets = elements(exchangeMarketColumns, "exchange_markets");
const writeSymbols = elements(exchangeSymbolColumns, "exchange_symbols");

const lookups = {
  asset: {
    object: "asset",
    table: "assets",
    filters: (params) => ({
      type: params.oneOf("type", ["FIAT", "CRYPTO"]),
      symbol: params.text("symbol"),
      status: params.oneOf("status", statuses),
    }),
    write: (_, row) => `{${writeAsset(row)}}`,
  },
  market: {
    object: "market",
    table: "market_rows",
    filters: (params) => ({
      base_asset_id: params.text("baseAssetId"),
      quote_asset_id: params.text("quoteAssetId"),
    }),
    write: (_, row) => `{${writeMarket(row)}}`,
  },
  exchange: {
    object: "exchange",
    table: "exchanges",
    filters: (params) => ({ status: params.oneOf("status", statuses), name: params.text("name") }),
    write: (connection, row) =>
      `{${writeExchange(row)},"markets":[${writeMarkets(connection, row.id)}],"symbols":[${writeSymbols(connection, row.id)}]}`,
  },
} as const satisfies Readonly<Record<string, Lookup>>;

type LookupName = keyof typeof lookups;

export function isLookup(name: string): name is LookupName {
  return Object.hasOwn(lookups, name);
}

/** The list of what the service listed last. */
export function serveLookup(connection: Connection, name: LookupName, query: URLSearchParams): ServeResponse {
  const { object, table, filters, write }: Lookup = lookups[name];
  const params = new ParamReader(object, query);
  const given = Object.entries(filters(params)).filter(([, value]) => value !== undefined);
  params.finish();
  const conditions = given.map(([column]) => ` AND ${column} = ?`).join("");
  const rows = connection.rows<Row>(
    `SELECT * FROM ${table} WHERE delisted_at IS NULL${conditions} ORDER BY first_seen, id`,
    given.map(([, value]) => value),
  );
  return listResponse(rows.map((row) => write(connection, row)));
}

/** One entity, also one that the service no longer lists. */
export function serveLookupEntry(connection: Connection, name: LookupName, id: string): ServeResponse {
  const { object, table, write }: Lookup = lookups[name];
  const row = connection.findRow<Row>(`SELECT * FROM ${table} WHERE id = ?`, [id]);
  if (!row) throw new ServeError(404, `No ${object} ${id}`);
  return { body: write(connection, row), headers: {} };
}

/** Throws 404 if the lookups do not know the id. */
export function assertKnown(connection: Connection, name: LookupName, id: string | undefined): void {
  if (id === undefined) return;
  const { object, table }: Lookup = lookups[name];
  if (connection.findRow(`SELECT 1 FROM ${table} WHERE id = ?`, [id]) === undefined)
    throw new ServeError(404, `No ${object} ${id}`);
}
