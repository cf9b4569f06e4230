import type { Micros } from "../../model/time.ts";
import type { RowTable } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { getRowSql } from "./row-sql.ts";

/** Keeps the stored version of a row before it is replaced or deleted. One that this commit wrote was never known. */
export function keepPastRow(
  transaction: Transaction,
  table: RowTable<never>,
  { key, ts }: { readonly key: number; readonly ts: Micros },
): void {
  const { keepPast } = getRowSql(table);
  const { commit } = transaction;
  if (keepPast !== undefined) transaction.run(keepPast, [commit, key, table.storedTime(ts), commit]);
}
