import { type Column, camelCase } from "../../model/column.ts";
import type { Decimal } from "../../model/decimal.ts";
import type { Asset, DerivativeContract, Exchange, Market } from "../../model/records.ts";
import {
  assetColumns,
  derivativeContractColumns,
  exchangeColumns,
  exchangeMarketColumns,
  exchangeSymbolColumns,
  marketColumns,
} from "../../model/stream-columns.ts";
import { setRowCount } from "../rows/stream-stats.ts";
import type { SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import {
  type LookupTable,
  type ReconcileOptions,
  type ReconcileResult,
  reconcileLookup,
} from "./reconcile-lookup.ts";

const untracked = ["quality", "extra"];

/** Completes the description of a lookup table with the tracked columns from its column list. */
function buildLookupTable(columns: readonly Column[], table: Omit<LookupTable, "tracked">): LookupTable {
  const tracked = columns.filter(({ name, source }) => source === "row" && !table.keys.includes(name));
  const timestamps = tracked.filter(({ type }) => type === "timestamp");
  const names = ({ name }: Column) => name;
  return { ...table, tracked: tracked.map(names), timestamps: timestamps.map(names) };
}

const assets = buildLookupTable(assetColumns, { entity: "asset", table: "assets", keys: ["id"], untracked });
const markets = buildLookupTable(marketColumns, {
  entity: "market",
  table: "market_rows",
  keys: ["id"],
  untracked,
});
const exchanges = buildLookupTable(exchangeColumns, {
  entity: "exchange",
  table: "exchanges",
  keys: ["id"],
  untracked,
});
const exchangeMarkets = buildLookupTable(exchangeMarketColumns, {
  entity: "exchange_market",
  table: "exchange_markets",
  keys: ["exchange_id", "market_id"],
  untracked: ["extra"],
});
const exchangeSymbols = buildLookupTable(exchangeSymbolColumns, {
  entity: "exchange_symbol",
  table: "exchange_symbols",
  keys: ["exchange_id", "asset_id"],
  untracked: ["extra"],
});
const contracts = buildLookupTable(derivativeContractColumns, {
  entity: "contract",
  table: "contracts",
  keys: ["derivative_type", "id"],
  untracked: ["details", "is_described", ...untracked],
});

/**
 * The values of a row, in the order of the table's columns. `overrides` take precedence over the record's properties.
 */
function rowOf(
  { keys, tracked, untracked }: LookupTable,
  record: object,
  overrides: Readonly<Record<string, SqlValue>> = {},
): SqlValue[] {
  const values = record as Readonly<Record<string, SqlValue | boolean | Decimal>>;
  return [...keys, ...tracked, ...untracked].map((name) => {
    const value = overrides[name] ?? values[camelCase(name)] ?? null;
    if (typeof value === "boolean") return Number(value);
    return value !== null && typeof value === "object" ? value.real : value;
  });
}

/** Stores the service's list of assets; if it is complete, rows that it lacks count as absent. */
export function writeAssets(
  transaction: Transaction,
  list: readonly Asset[],
  options: ReconcileOptions,
): ReconcileResult {
  const rows = list.map((asset) => rowOf(assets, asset));
  const result = reconcileLookup(transaction, assets, rows, options);
  setRowCount(transaction, "assets", assets.table);
  refreshNames(transaction);
  return result;
}

export function writeMarkets(
  transaction: Transaction,
  list: readonly Market[],
  options: ReconcileOptions,
): ReconcileResult {
  const rows = list.map((market) => rowOf(markets, market));
  const result = reconcileLookup(transaction, markets, rows, options);
  setRowCount(transaction, "markets", markets.table);
  refreshNames(transaction);
  return result;
}

/** Stores exchanges with their markets and symbols; reports an incident in any of the three lists. */
export function writeExchanges(
  transaction: Transaction,
  list: readonly Exchange[],
  options: ReconcileOptions,
): ReconcileResult {
  const rows = list.map((exchange) => rowOf(exchanges, exchange));
  const listed = list.flatMap(({ id, markets: own }) =>
    own.map((market) => rowOf(exchangeMarkets, market, { exchange_id: id })),
  );
  const symbols = list.flatMap(({ id, symbols: own }) =>
    own.map((symbol) => rowOf(exchangeSymbols, symbol, { exchange_id: id })),
  );
  const result = reconcileLookup(transaction, exchanges, rows, options);
  const parts = [
    reconcileLookup(transaction, exchangeMarkets, listed, options),
    reconcileLookup(transaction, exchangeSymbols, symbols, options),
  ];
  setRowCount(transaction, "exchanges", exchanges.table);
  refreshNames(transaction);
  return { ...result, incident: result.incident ?? parts.find((part) => part.incident)?.incident ?? null };
}

/** Stores the contracts of one type on one exchange. */
export function writeContracts(
  transaction: Transaction,
  list: readonly DerivativeContract[],
  options: ReconcileOptions & { readonly derivativeType: string; readonly exchangeId: string },
): ReconcileResult {
  const { derivativeType, exchangeId, ...reconcileOptions } = options;
  const rows = list.map((contract) =>
    rowOf(contracts, contract, {
      exchange_id: contract.exchangeId ?? exchangeId,
      details: exactDetails(contract),
      is_described: 1,
    }),
  );
  const result = reconcileLookup(transaction, contracts, rows, {
    ...reconcileOptions,
    scope: [
      { column: "derivative_type", value: derivativeType },
      { column: "exchange_id", value: exchangeId },
      { column: "is_described", value: 1 },
    ],
  });
  setRowCount(transaction, "derivative_contracts", `${contracts.table} WHERE is_described = 1`);
  transaction.run(`${refreshContractsSql} AND derivative_type = ? AND exchange_id = ?`, [
    derivativeType,
    exchangeId,
  ]);
  return result;
}

/** The exact digits of the decimals that a REAL cannot represent. */
function exactDetails(contract: DerivativeContract): string | null {
  const values = contract as object as Readonly<Record<string, Decimal | null>>;
  const exact = decimals.flatMap(({ name }) => {
    const digits = values[camelCase(name)]?.exact;
    return digits ? [[name, digits]] : [];
  });
  return exact.length === 0 ? null : JSON.stringify(Object.fromEntries(exact));
}

const decimals = derivativeContractColumns.filter(({ type }) => type === "decimal");

const exchangeOfContract = "coalesce((SELECT e.name FROM exchanges e WHERE e.id = exchange_id), exchange_id)";
const pairOfContract = "coalesce((SELECT m.pair FROM markets m WHERE m.id = market_id), market_id)";
const refreshContractsSql = `UPDATE contracts SET exchange = ${exchangeOfContract}, pair = ${pairOfContract}
  WHERE (exchange IS NOT ${exchangeOfContract} OR pair IS NOT ${pairOfContract})`;

/** Copies symbols, pairs and exchange names into the dictionaries, so that a query by name is an index seek. */
export function refreshNames(transaction: Transaction): void {
  for (const sql of [
    `UPDATE series SET name = a.symbol FROM assets a
      WHERE series.index_type = 'GWA' AND a.id = series.index_id AND a.symbol <> series.name`,
    `UPDATE series SET name = m.pair FROM markets m
      WHERE series.index_type = 'MWA' AND m.id = series.index_id AND m.pair <> series.name`,
    `UPDATE series SET name = e.name FROM exchanges e
      WHERE series.index_type = '' AND e.id = series.index_id AND e.name <> series.name`,
    `UPDATE listings SET exchange = e.name FROM exchanges e
      WHERE e.id = listings.exchange_id AND e.name <> listings.exchange`,
    `UPDATE listings SET pair = m.pair FROM markets m WHERE m.id = listings.market_id AND m.pair <> listings.pair`,
    refreshContractsSql,
  ]) {
    transaction.run(sql);
  }
}
