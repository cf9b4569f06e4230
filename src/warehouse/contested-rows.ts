import type { Micros } from "../model/instant.ts";
import type { StreamRecords } from "../model/records.ts";
import type { WalkedStream } from "../model/series.ts";
import { normalise, subtract, type TimeRange } from "../model/time-range.ts";
import { settledRanges } from "./ledger.ts";
import { type RowTable, rowTables, type Value } from "./row-tables.ts";
import type { Transaction } from "./transaction.ts";

/**
 * Whether a page that only filled in found a row in `range` that is not settled and says something else, or that the page
 * lacks. Either of the two may be the newer, so neither may be called final. To be called after the page's rows are
 * written; `standing` are moments of rows that are known to be right, on the page or not.
 */
export function isContested<S extends WalkedStream>(
  transaction: Transaction,
  { stream, series }: { readonly stream: S; readonly series: number },
  range: TimeRange,
  records: readonly StreamRecords[S][],
  standing: readonly Micros[],
): boolean {
  const table: RowTable<StreamRecords[S]> = rowTables[stream];
  const { keyColumn, momentColumn, moment, momentTs, sourceAt } = table;
  const textOf = (values: readonly Value[]) => JSON.stringify(values.filter((_, i) => i !== sourceAt));
  const said = new Map<Micros, string[]>();
  for (const record of records) {
    const values: Value[] = [];
    table.encode(record, 0, values);
    const ts = table.ts(record);
    said.set(ts, [...(said.get(ts) ?? []), textOf(values)]);
  }
  const isRight = new Set(standing);
  const proven = settledRanges(transaction, { stream, series }).filter(({ proof }) => proof !== "lost");
  const rows = transaction.statement(
    `SELECT ${momentColumn}, ${table.columns.join(", ")} FROM ${table.table}
      WHERE ${keyColumn} = ? AND ${momentColumn} >= ? AND ${momentColumn} < ?`,
  );
  return subtract([range], normalise(proven)).some(({ from, to }) => {
    const stored = rows.raw().all([series, moment(from), moment(to)]) as [string | number, ...Value[]][];
    return stored.some(([at, ...values]) => {
      const ts = momentTs(at);
      return !(said.get(ts)?.includes(textOf(values)) ?? isRight.has(ts));
    });
  });
}
