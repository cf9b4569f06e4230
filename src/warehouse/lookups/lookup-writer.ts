import type { Asset, DerivativeContract, Exchange, Market } from "../../model/records.ts";
import { setRowCount } from "../rows/stream-stats.ts";
import type { SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { type ListWorth, type LookupTable, type Reconciled, reconcile } from "./list-diff.ts";

const kept = ["quality", "extra"];

const assets: LookupTable = {
  entity: "asset",
  table: "assets",
  keys: ["id"],
  tracked: ["symbol", "name", "type", "status", "url", "contract_address"],
  kept,
};
const markets: LookupTable = {
  entity: "market",
  table: "market_rows",
  keys: ["id"],
  tracked: ["base_asset_id", "quote_asset_id"],
  kept,
};
const exchanges: LookupTable = {
  entity: "exchange",
  table: "exchanges",
  keys: ["id"],
  tracked: ["name", "url", "status"],
  kept,
};
const exchangeMarkets: LookupTable = {
  entity: "exchange_market",
  table: "exchange_markets",
  keys: ["exchange_id", "market_id"],
  tracked: ["status", "qualified"],
  kept: ["extra"],
};
const exchangeSymbols: LookupTable = {
  entity: "exchange_symbol",
  table: "exchange_symbols",
  keys: ["exchange_id", "asset_id"],
  tracked: ["symbol"],
  kept: ["extra"],
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
  kept: ["aside", "described", ...kept],
  moments: ["listing", "expiration"],
};

/** Stores the service's list of assets; with `complete` it is the whole list, and what it lacks counts as absent. */
export function writeAssets(
  transaction: Transaction,
  list: readonly Asset[],
  options: ListWorth,
): Reconciled {
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
  const result = reconcile(transaction, assets, rows, options);
  setRowCount(transaction, "assets", assets.table);
  refreshNames(transaction);
  return result;
}

export function writeMarkets(
  transaction: Transaction,
  list: readonly Market[],
  options: ListWorth,
): Reconciled {
  const rows = list.map((m) => [m.id, m.baseAssetId, m.quoteAssetId, m.quality, m.extra]);
  const result = reconcile(transaction, markets, rows, options);
  setRowCount(transaction, "markets", markets.table);
  refreshNames(transaction);
  return result;
}

/** Exchanges with their markets and symbols; an incident in either list of parts is reported as the exchanges' own. */
export function writeExchanges(
  transaction: Transaction,
  list: readonly Exchange[],
  options: ListWorth,
): Reconciled {
  const rows = list.map((e) => [e.id, e.name, e.url, e.status, e.quality, e.extra]);
  const listed = list.flatMap((e) =>
    e.markets.map((m): SqlValue[] => [e.id, m.marketId, m.status, flag(m.qualified), m.extra]),
  );
  const symbols = list.flatMap((e) => e.symbols.map((s): SqlValue[] => [e.id, s.assetId, s.symbol, s.extra]));
  const result = reconcile(transaction, exchanges, rows, options);
  const parts = [
    reconcile(transaction, exchangeMarkets, listed, options),
    reconcile(transaction, exchangeSymbols, symbols, options),
  ];
  setRowCount(transaction, "exchanges", exchanges.table);
  refreshNames(transaction);
  return { ...result, incident: result.incident ?? parts.find((part) => part.incident)?.incident ?? null };
}

/** The contracts of one type on one exchange. */
export function writeContracts(
  transaction: Transaction,
  list: readonly DerivativeContract[],
  options: ListWorth & { readonly derivativeType: string; readonly exchangeId: string },
): Reconciled {
  const { derivativeType, exchangeId, ...worth } = options;
  const rows = list.map((c): SqlValue[] => [
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
    exactAside(c),
    1,
    c.quality,
    c.extra,
  ]);
  const result = reconcile(transaction, contracts, rows, {
    ...worth,
    scope: [
      { column: "derivative_type", value: derivativeType },
      { column: "exchange_id", value: exchangeId },
      { column: "described", value: 1 },
    ],
  });
  setRowCount(transaction, "derivative_contracts", `${contracts.table} WHERE described = 1`);
  return result;
}

function exactAside({ contractValue, optionStrike }: DerivativeContract): string | null {
  const entries = {
    ...(contractValue?.exact && { contract_value: contractValue.exact }),
    ...(optionStrike?.exact && { option_strike: optionStrike.exact }),
  };
  return Object.keys(entries).length === 0 ? null : JSON.stringify(entries);
}

function flag(value: boolean | null): number | null {
  return value === null ? null : Number(value);
}

/** The dictionaries repeat what people call things, so that a query by name is an index seek. */
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
