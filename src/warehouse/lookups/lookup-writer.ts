import { type Column, camelCase } from "../../model/column.ts";
import type { Decimal } from "../../model/decimal.ts";
import type { DerivativeContract, Exchange, StreamRecords } from "../../model/records.ts";
import {
  assetColumns,
  derivativeContractColumns,
  exchangeColumns,
  exchangeMarketColumns,
  exchangeSymbolColumns,
  marketColumns,
} from "../../model/stream-columns.ts";
import type { Stream } from "../../model/streams.ts";
import { setRowCount } from "../rows/stream-stats.ts";
import type { SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import {
  type LookupPlan,
  type LookupTable,
  planLookup,
  type ReconcileOptions,
  writeLookupPlan,
} from "./reconcile-lookup.ts";

const entries = { keys: ["id"], derived: ["quality"], untracked: ["extra"] };

/**
 * Completes the description of a lookup table with the tracked columns: those of its column list, and what the warehouse derives
 * from a record.
 */
function buildLookupTable(
  columns: readonly Column[],
  {
    derived = [],
    ...table
  }: Omit<LookupTable, "tracked" | "types"> & { readonly derived?: readonly string[] },
): LookupTable {
  const tracked = columns.filter(({ name, source }) => source === "row" && !table.keys.includes(name));
  const types = new Map(tracked.map(({ name, type }) => [name, type]));
  return { ...table, tracked: [...types.keys(), ...derived], types };
}

const entryTables = {
  assets: buildLookupTable(assetColumns, { entity: "asset", table: "assets", ...entries }),
  markets: buildLookupTable(marketColumns, { entity: "market", table: "market_rows", ...entries }),
  exchanges: buildLookupTable(exchangeColumns, { entity: "exchange", table: "exchanges", ...entries }),
};
const listOfExchange = (columns: readonly Column[], entity: string, id: string) =>
  buildLookupTable(columns, { entity, table: `${entity}s`, keys: ["exchange_id", id], untracked: ["extra"] });
const exchangeMarkets = listOfExchange(exchangeMarketColumns, "exchange_market", "market_id");
const exchangeSymbols = listOfExchange(exchangeSymbolColumns, "exchange_symbol", "asset_id");
const exchangeLists = [
  [exchangeMarkets, "markets"],
  [exchangeSymbols, "symbols"],
] as const;
const contracts = buildLookupTable(derivativeContractColumns, {
  entity: "contract",
  table: "contracts",
  keys: ["derivative_type", "id"],
  derived: ["details", "quality"],
  untracked: ["is_described", "extra"],
});

export const lookupTables: readonly LookupTable[] = [
  ...Object.values(entryTables),
  exchangeMarkets,
  exchangeSymbols,
  contracts,
];

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

/** What a list changes: its tables, and how to refresh what is derived from them. */
export interface ListPlan {
  readonly stream: Stream;
  readonly tables: readonly LookupPlan[];
  /** The table whose rows count as those of the stream, with its condition. */
  readonly counted: string;
  readonly refresh: readonly { readonly sql: string; readonly parameters: readonly SqlValue[] }[];
}

/** A list of the service, exchanges with their markets and symbols; if it is complete, rows that it lacks count as absent. */
export function planList<S extends keyof typeof entryTables>(
  transaction: Transaction,
  stream: S,
  list: readonly StreamRecords[S][],
  options: ReconcileOptions,
): ListPlan {
  const entryTable = entryTables[stream];
  const parts = stream === "exchanges" ? exchangeLists : [];
  const tables = [
    planLookup(
      transaction,
      entryTable,
      list.map((entry) => rowOf(entryTable, entry)),
      options,
    ),
    ...parts.map(([table, property]) => {
      const elements = (list as readonly Exchange[]).flatMap(({ id, [property]: own }) =>
        own.map((element) => rowOf(table, element, { exchange_id: id })),
      );
      return planLookup(transaction, table, elements, options);
    }),
  ];
  const refresh = refreshNamesSql.map((sql) => ({ sql, parameters: [] }));
  return { stream, tables, counted: entryTable.table, refresh };
}

/** The contracts of one type on one exchange. */
export function planContracts(
  transaction: Transaction,
  list: readonly DerivativeContract[],
  options: ReconcileOptions & { readonly derivativeType: string; readonly exchangeId: string },
): ListPlan {
  const { derivativeType, exchangeId, ...reconcileOptions } = options;
  const rows = list.map((contract) =>
    rowOf(contracts, contract, {
      exchange_id: contract.exchangeId ?? exchangeId,
      details: exactDetails(contract),
      is_described: 1,
    }),
  );
  const scope = [
    { column: "derivative_type", value: derivativeType },
    { column: "exchange_id", value: exchangeId },
    { column: "is_described", value: 1 },
  ];
  return {
    stream: "derivative_contracts",
    tables: [planLookup(transaction, contracts, rows, { ...reconcileOptions, scope })],
    counted: `${contracts.table} WHERE is_described = 1`,
    refresh: [
      {
        sql: `${refreshContractsSql} AND derivative_type = ? AND exchange_id = ?`,
        parameters: [derivativeType, exchangeId],
      },
    ],
  };
}

/** Writes the plan. Reports an incident in any of the lists. */
export function writeList(transaction: Transaction, { stream, tables, counted, refresh }: ListPlan) {
  const results = tables.map((plan) => writeLookupPlan(transaction, plan));
  setRowCount(transaction, stream, counted);
  // Copies symbols, pairs and exchange names into the dictionaries, so that a query by name is an index seek.
  for (const { sql, parameters } of refresh) transaction.run(sql, parameters);
  const [result] = results as [ReturnType<typeof writeLookupPlan>];
  return { ...result, incident: results.find(({ incident }) => incident)?.incident ?? null };
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

const refreshNamesSql = [
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
];
