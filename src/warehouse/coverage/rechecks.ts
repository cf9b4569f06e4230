import type { HistoryStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TargetRow } from "../schema/coverage.ts";
import type { SeriesNames } from "../schema/lookups.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import type { LedgerKey } from "./ledger.ts";
import type { TargetRules } from "./targets.ts";

/** Selected series of a stream, or one of them, whose last recheck was before `day` (`YYYY-MM-DD`). */
export function readDueRechecks(connection: Connection, stream: HistoryStream, day: string, series?: number) {
  const sql = `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name, w.from_ts AS targetFrom,
      w.service_window AS serviceWindow, w.settle_delay AS settleDelay, w.step
    FROM targets w JOIN series s ON s.series = w.series JOIN rechecks r ON r.stream = w.stream AND r.series = w.series
    WHERE w.stream = @stream ${series === undefined ? "" : "AND w.series = @series"} AND w.to_ts IS NULL AND w.is_snapshot = 0
      AND r.day < @day ORDER BY w.series`;
  type Row = SeriesNames & TargetRules & Pick<TargetRow, "series"> & { readonly targetFrom: Micros };
  return connection
    .rows<Row>(sql, { stream, series, day })
    .map(({ series, ...rest }) => ({ key: { stream, series }, ...rest }));
}

const putSql = `INSERT INTO rechecks (stream, series, day) VALUES (?, ?, ?)
  ON CONFLICT (stream, series) DO UPDATE SET day = excluded.day WHERE day < excluded.day`;

export function recordRecheck(transaction: Transaction, { key, day }: { key: LedgerKey; day: string }): void {
  transaction.run(putSql, [key.stream, key.series, day]);
}

/** A new series needs no recheck today: all of it is fetched today anyway. */
export function startRechecks(transaction: Transaction, { stream, series }: LedgerKey, day: string): void {
  const sql = "INSERT INTO rechecks (stream, series, day) VALUES (?, ?, ?) ON CONFLICT DO NOTHING";
  transaction.run(sql, [stream, series, day]);
}

/**
 * `rechecks` also stores on which day an exchange had no contracts of a type, so that such a list is requested only once
 * a day. This value is not a stream and no ledger key has it, so `readDueRechecks` skips these entries.
 */
const noContractsStream = (derivativeType: string) => `derivative_contracts ${derivativeType}`;

/** Whether the service answered on this day that the exchange has no contracts of this type. */
export function hasNoContracts(
  connection: Connection,
  { exchangeId, derivativeType, day }: NoContractsEntry,
): boolean {
  const sql = `SELECT 1 FROM rechecks r JOIN series s ON s.series = r.series
    WHERE r.stream = ? AND r.day = ? AND s.index_type = '' AND s.index_id = ?`;
  return connection.findRow(sql, [noContractsStream(derivativeType), day, exchangeId]) !== undefined;
}

/**
 * Records nothing if contracts are stored: then an empty list may be an incident, and the next poll requests it again.
 */
export function recordNoContracts(
  transaction: Transaction,
  { exchangeId, derivativeType, day }: NoContractsEntry,
): void {
  const isStored = "SELECT 1 FROM contracts WHERE derivative_type = ? AND exchange_id = ? LIMIT 1";
  if (transaction.findRow(isStored, [derivativeType, exchangeId])) return;
  const series = transaction.dictionary.getSubscriptionKey(exchangeId);
  transaction.run(putSql, [noContractsStream(derivativeType), series, day]);
}

/** `day`: the UTC day of the answer, `YYYY-MM-DD`. */
type NoContractsEntry = Readonly<Record<"exchangeId" | "derivativeType" | "day", string>>;
