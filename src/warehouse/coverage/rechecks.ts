import type { HistoryStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import type { LedgerLine } from "./ledger.ts";

/** A line whose youngest stretch has not been read again today. */
export interface DueReread {
  readonly line: LedgerLine;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** Nothing older is wanted of it. */
  readonly wantedFrom: Micros;
  readonly keptFor: Micros | null;
  readonly settleDelay: Micros;
  readonly step: Micros;
}

const dueSql = (
  narrowed: string,
) => `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name, w.from_ts AS wantedFrom,
    w.kept_for AS keptFor, w.settle_delay AS settleDelay, w.step
  FROM wanted_ranges w JOIN series s ON s.series = w.series
    JOIN rereads r ON r.stream = w.stream AND r.series = w.series
  WHERE w.stream = ? AND w.to_ts IS NULL AND w.observed = 0 AND r.day < ? ${narrowed} ORDER BY w.series`;
const everyLine = dueSql("");
const oneLine = dueSql("AND w.series = ?");

/** Followed lines of a stream, or one of them, that were last read again before `day` (`YYYY-MM-DD`). */
export function dueRereads(
  connection: Connection,
  stream: HistoryStream,
  day: string,
  series?: number,
): DueReread[] {
  const rows = (
    series === undefined
      ? connection.statement(everyLine).all([stream, day])
      : connection.statement(oneLine).all([stream, day, series])
  ) as (Omit<DueReread, "line"> & { series: number })[];
  return rows.map(({ series, ...rest }) => ({ line: { stream, series }, ...rest }));
}

export function noteReread(transaction: Transaction, { stream, series }: LedgerLine, day: string): void {
  transaction
    .statement(
      `INSERT INTO rereads (stream, series, day) VALUES (?, ?, ?)
      ON CONFLICT (stream, series) DO UPDATE SET day = excluded.day WHERE day < excluded.day`,
    )
    .run([stream, series, day]);
}

/** A line that is new today has nothing old to correct: all of it will be read today. */
export function beginRereads(transaction: Transaction, { stream, series }: LedgerLine, day: string): void {
  transaction
    .statement("INSERT INTO rereads (stream, series, day) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
    .run([stream, series, day]);
}

/** An exchange without contracts of a type is asked for them once a day, like a line that is read again. */
const denialOf = (derivativeType: string) => `derivative_contracts ${derivativeType}`;

/** Whether the service has said on this day (`YYYY-MM-DD`) that an exchange has no contracts of this type. */
export function hasNoContracts(
  connection: Connection,
  { exchangeId, derivativeType, day }: ContractsDenial,
): boolean {
  return (
    connection
      .statement(
        `SELECT 1 FROM rereads r JOIN series s ON s.series = r.series
        WHERE r.stream = ? AND r.day = ? AND s.index_type = '' AND s.index_id = ?`,
      )
      .get([denialOf(derivativeType), day, exchangeId]) !== undefined
  );
}

/** Where contracts were listed before, an empty list is asked for again at once: it may be an incident. */
export function noteNoContracts(
  transaction: Transaction,
  { exchangeId, derivativeType, day }: ContractsDenial,
): void {
  const series = transaction.dictionary.subscription(exchangeId);
  transaction
    .statement(
      `INSERT INTO rereads (stream, series, day) SELECT ?, ?, ?
      WHERE NOT EXISTS (SELECT 1 FROM contracts WHERE derivative_type = ? AND exchange_id = ?)
      ON CONFLICT (stream, series) DO UPDATE SET day = excluded.day WHERE day <> excluded.day`,
    )
    .run([denialOf(derivativeType), series, day, derivativeType, exchangeId]);
}

export interface ContractsDenial {
  readonly exchangeId: string;
  readonly derivativeType: string;
  /** The UTC day of it, `YYYY-MM-DD`. */
  readonly day: string;
}
