import type { Asset, DerivativeContract, Exchange, Market } from "../../model/records.ts";
import { setRowCount } from "../rows/stream-stats.ts";
import type { Value } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import {
  type LookupTable,
  type ReconcileOptions,
  type ReconcileResult,
  reconcileLookup,
} from "./reconcile-lookup.ts";

const untracked = ["quality", "extra"];

const assets: LookupTable = {
  entity: "asset",
  table: "assets",
  keys: ["id"],
  tracked: ["symbol", "name", "type", "status", "url", "contract_address"],
  untracked,
};
const markets: LookupTable = {
  entity: "market",
  table: "market_rows",
  keys: ["id"],
  tracked: ["base_asset_id", "quote_asset_id"],
  untracked,
};
const exchanges: LookupTable = {
  entity: "exchange",
  table: "exchanges",
  keys: ["id"],
  tracked: ["name", "url", "status"],
  untracked,
};
const exchangeMarkets: LookupTable = {
  entity: "exchange_market",
  table: "exchange_markets",
  keys: ["exchange_id", "market_id"],
  tracked: ["status", "qualified"],
  untracked: ["extra"],
};
const exchangeSymbols: LookupTable = {
  entity: "exchange_symbol",
  table: "exchange_symbols",
  keys: ["exchange_id", "asset_id"],
  tracked: ["symbol"],
  untracked: ["extra"],
};
const contracts: LookupTable = {
  entity: "contract",
  table: "contracts",
  keys: ["derivative_type", "id"],
  tracked: [
    "exchange_id",
    "market_id",
    "exchange_name",
    "settlement_currency",
    "contract_value",
    "value_currency",
    "option_type",
    "option_strike",
    "listing",
    "expiration",
  ],
  untracked: ["aside", "described", ...untracked],
  timestamps: ["listing", "expiration"],
};

export function writeAssets(
  transaction: Transaction,
  list: readonly Asset[],
  options: ReconcileOptions,
): ReconcileResult {
  const rows = list.map((a) => [
    a.id,
    a.symbol,
    a.name,
    a.type,
    a.status,
    a.url,
    a.contractAddress,
    a.quality,
    a.extra,
  ]);
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
  const rows = list.map((m) => [m.id, m.baseAssetId, m.quoteAssetId, m.quality, m.extra]);
  const result = reconcileLookup(transaction, markets, rows, options);
  setRowCount(transaction, "markets", markets.table);
  refreshNames(transaction);
  return result;
}

/** Stores exchanges with their markets and symbols; an incident in either is reported for the exchanges. */
export function writeExchanges(
  transaction: Transaction,
  list: readonly Exchange[],
  options: ReconcileOptions,
): ReconcileResult {
  const rows = list.map((e) => [e.id, e.name, e.url, e.status, e.quality, e.extra]);
  const listed = list.flatMap((e) =>
    e.markets.map((m): Value[] => [e.id, m.marketId, m.status, toInteger(m.qualified), m.extra]),
  );
  const symbols = list.flatMap((e) => e.symbols.map((s): Value[] => [e.id, s.assetId, s.symbol, s.extra]));
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
  const rows = list.map((c): Value[] => [
    c.derivativeType,
    c.id,
    c.exchangeId ?? exchangeId,
    c.marketId,
    c.exchangeName,
    c.settlementCurrency,
    c.contractValue?.real ?? null,
    c.valueCurrency,
    c.optionType,
    c.optionStrike?.real ?? null,
    c.listing,
    c.expiration,
    encodeExactTexts(c),
    1,
    c.quality,
    c.extra,
  ]);
  const result = reconcileLookup(transaction, contracts, rows, {
    ...reconcileOptions,
    scope: [
      { column: "derivative_type", value: derivativeType },
      { column: "exchange_id", value: exchangeId },
      { column: "described", value: 1 },
    ],
  });
  setRowCount(transaction, "derivative_contracts", `${contracts.table} WHERE described = 1`);
  return result;
}

function encodeExactTexts({ contractValue, optionStrike }: DerivativeContract): string | null {
  const entries = {
    ...(contractValue?.exact && { contract_value: contractValue.exact }),
    ...(optionStrike?.exact && { option_strike: optionStrike.exact }),
  };
  return Object.keys(entries).length === 0 ? null : JSON.stringify(entries);
}

function toInteger(value: boolean | null): number | null {
  return value === null ? null : Number(value);
}

/** `series` and `listings` duplicate the readable names, so that a query by name is an index seek. */
function refreshNames(transaction: Transaction): void {
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
  ]) {
    transaction.statement(sql).run();
  }
}
