import { type Dictionary, hasHistory, type RowStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SettledRange } from "../../rule/answer.ts";
import type { LedgerKey } from "../coverage/ledger.ts";
import { addTarget } from "../coverage/targets.ts";
import { markRangeStale } from "../rows/kept-bars.ts";
import { keepPastRow } from "../rows/past-rows.ts";
import { hasSameValues, storeRevision } from "../rows/revisions.ts";
import { getRowSql } from "../rows/row-sql.ts";
import { addRowCount } from "../rows/stream-stats.ts";
import { withdrawRows } from "../rows/withdraw-rows.ts";
import type { TargetRow } from "../schema/coverage.ts";
import type { StoredTime } from "../schema/rows.ts";
import type { SqlRunner } from "../sqlite/connection.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/*
 * The rows of both warehouses. The other one is attached to the connection as `other`. Its keys differ from ours, so every
 * statement has both.
 */

/** A key of a dictionary in both warehouses. */
export interface KeyPair {
  readonly theirs: number;
  /** Null: our dictionary lacks it, so we have no rows of it. */
  readonly ours: number | null;
  /** The exchange of a market or contract; empty for an index. */
  readonly exchangeId: string;
}

/** A key that our dictionary has. */
type OurKeyPair = KeyPair & { readonly ours: number };

/** The dictionaries are merged before the rows, except in a dry run, which does no work. */
export function asOurs(pair: KeyPair): OurKeyPair {
  const { ours } = pair;
  if (ours === null) throw new Error("the dictionary lacks a key: merge the dictionaries first");
  return { ...pair, ours };
}

/** What names a key of a dictionary in every warehouse. */
export const identityColumns: Readonly<Record<Dictionary, readonly [string, string]>> = {
  series: ["index_type", "index_id"],
  listings: ["exchange_id", "market_id"],
  contracts: ["derivative_type", "id"],
};

/** About a tenth of a second of work. */
const ROWS_PER_CHUNK = 20_000;

/** The keys of the other warehouse that have rows of a stream, or a part of its ledger. */
export function readKeyPairs(reader: SqlRunner, stream: RowStream): KeyPair[] {
  const { table, keyColumn }: RowTable<never> = rowTables[stream];
  const { dictionary, kind } = streamTable[stream];
  const [first, second] = identityColumns[dictionary];
  const ledger =
    kind === "history"
      ? `OR o.${keyColumn} IN (SELECT series FROM other.settled_ranges WHERE stream = '${stream}')`
      : "";
  return reader.rows<KeyPair>(`SELECT o.${keyColumn} AS theirs, m.${keyColumn} AS ours,
        ${dictionary === "series" ? "''" : "coalesce(o.exchange_id, '')"} AS exchangeId
      FROM other.${dictionary} o LEFT JOIN main.${dictionary} m ON m.${first} = o.${first} AND m.${second} = o.${second}
      WHERE EXISTS (SELECT 1 FROM other.${table} r WHERE r.${keyColumn} = o.${keyColumn}) ${ledger} ORDER BY o.${keyColumn}`);
}

/** The settled ranges of a ledger key in one of both warehouses, ascending. */
export function readRanges(
  reader: SqlRunner,
  side: "main" | "other",
  { stream, series }: LedgerKey,
): SettledRange[] {
  const sql = `SELECT from_ts AS "from", to_ts AS "to", proof, reason FROM ${side}.settled_ranges
    WHERE stream = ? AND series = ? ORDER BY from_ts`;
  return reader.rows<SettledRange>(sql, [stream, series]);
}

/** The targets of the other warehouse as far as its ledger reaches: what it lacks there is open or lost here too. */
export function mergeTargets(
  transaction: Transaction,
  stream: RowStream,
  { theirs, ours }: OurKeyPair,
): void {
  const end = readRanges(transaction, "other", { stream, series: theirs }).at(-1)?.to;
  if (end === undefined) return;
  const targets = transaction.rows<Omit<TargetRow, "stream" | "series" | "isSnapshot" | "blockedReason">>(
    `SELECT from_ts AS "from", to_ts AS "to", settle_delay AS settleDelay, period, step, service_window AS serviceWindow
    FROM other.targets WHERE stream = ? AND series = ? ORDER BY from_ts`,
    [stream, theirs],
  );
  const key = { stream, series: ours };
  for (const { to, ...target } of targets)
    addTarget(transaction, { key, ...target }, Math.min(to ?? end, end), !hasHistory(stream));
}

/** Cuts a range so that the other warehouse has about `ROWS_PER_CHUNK` rows in each part; the last part has a row too. */
export function* cutIntoChunks(
  reader: SqlRunner,
  table: RowTable<never>,
  theirs: number,
  range: TimeRange,
): Generator<TimeRange & { readonly rows: number }> {
  const { keyColumn, timeColumn, storedTime, tsOfStored } = table;
  const where = `FROM other.${table.table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`;
  const nextSql = `SELECT ${timeColumn} ${where} ORDER BY ${timeColumn} LIMIT 1 OFFSET ${ROWS_PER_CHUNK}`;
  for (let from = range.from; ; ) {
    const bounds = [theirs, storedTime(from), storedTime(range.to)];
    const cut = reader.findValue<StoredTime>(nextSql, bounds);
    if (cut === undefined) {
      yield { from, to: range.to, rows: reader.value<number>(`SELECT count(*) ${where}`, bounds) };
      return;
    }
    const to = tsOfStored(cut);
    yield { from, to, rows: ROWS_PER_CHUNK };
    from = to;
  }
}

/** How many rows of the other warehouse are new to ours in the range. */
export function countNewRows(
  reader: SqlRunner,
  table: RowTable<never>,
  pair: KeyPair,
  range: TimeRange,
): number {
  const { keyColumn, timeColumn, storedTime } = table;
  const sql = `SELECT count(*) FROM other.${table.table} o WHERE o.${keyColumn} = ? AND o.${timeColumn} >= ? AND o.${timeColumn} < ?
    AND NOT EXISTS (SELECT 1 FROM main.${table.table} m WHERE m.${keyColumn} = ? AND m.${timeColumn} = o.${timeColumn})`;
  return reader.value<number>(sql, [
    pair.theirs,
    storedTime(range.from),
    storedTime(range.to),
    pair.ours ?? -1,
  ]);
}

/** Adds the rows of the other warehouse for whose timestamps we have none. Returns how many. */
export function addMissingRows(
  transaction: Transaction,
  table: RowTable<never>,
  { theirs, ours }: OurKeyPair,
  range: TimeRange,
): number {
  const { stream, keyColumn, timeColumn, columns, pastTable, storedTime } = table;
  const values = [timeColumn, ...columns].join(", ");
  // We know them from now on, whenever the other warehouse got them.
  const version = pastTable === undefined ? [] : [transaction.commit];
  const [since, commit] = pastTable === undefined ? ["", ""] : [", since", ", ?"];
  const changes = transaction.run(
    `INSERT INTO main.${table.table} (${keyColumn}, ${values}${since}) SELECT ?, ${values}${commit} FROM other.${table.table}
      WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ? ORDER BY ${timeColumn} ON CONFLICT DO NOTHING`,
    [ours, ...version, theirs, storedTime(range.from), storedTime(range.to)],
  );
  if (changes > 0) {
    const added = findHull(transaction, table, theirs, range);
    transaction.markWritten(stream, ours);
    addRowCount(transaction, stream, changes, added.to - 1);
    transaction.journal.add(stream, "rows", ours, added);
    if (stream === "index_ticks") markRangeStale(transaction, ours, range);
  }
  return changes;
}

/** From the first to the last row of the other warehouse in a range that has some. */
function findHull(reader: SqlRunner, table: RowTable<never>, theirs: number, range: TimeRange): TimeRange {
  const { keyColumn, timeColumn, storedTime, tsOfStored } = table;
  const find = (extreme: "min" | "max") =>
    reader.value<StoredTime>(
      `SELECT ${extreme}(${timeColumn}) FROM other.${table.table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`,
      [theirs, storedTime(range.from), storedTime(range.to)],
    );
  return { from: tsOfStored(find("min")), to: tsOfStored(find("max")) + 1 };
}

type StoredRow = readonly [time: StoredTime, ...values: SqlValue[]];

/**
 * Replaces our rows that differ from the other warehouse's at the same timestamp, and stores ours in `revisions`. `isProven`:
 * whether the other warehouse has proven that timestamp and we have not. Returns how many.
 */
export function replaceDifferingRows(
  transaction: Transaction,
  table: RowTable<never>,
  { theirs, ours }: OurKeyPair,
  range: TimeRange,
  isProven: (ts: Micros) => boolean,
): number {
  const { keyColumn, timeColumn, columns, storedTime, tsOfStored } = table;
  const differs = columns.map((column) => `o.${column} IS NOT m.${column}`).join(" OR ");
  const both = [...columns.map((column) => `o.${column}`), ...columns.map((column) => `m.${column}`)];
  const rows = transaction.tuples<StoredRow>(
    `SELECT o.${timeColumn}, ${both.join(", ")} FROM other.${table.table} o JOIN main.${table.table} m
        ON m.${keyColumn} = ? AND m.${timeColumn} = o.${timeColumn}
      WHERE o.${keyColumn} = ? AND o.${timeColumn} >= ? AND o.${timeColumn} < ? AND (${differs})`,
    [ours, theirs, storedTime(range.from), storedTime(range.to)],
  );
  const replace = transaction.statement(getRowSql(table).replaceOne);
  const version = table.pastTable === undefined ? [] : [transaction.commit];
  let replaced = 0;
  for (const [time, ...values] of rows) {
    const ts = tsOfStored(time);
    if (!isProven(ts)) continue;
    const [after, before] = [values.slice(0, columns.length), values.slice(columns.length)];
    if (!hasSameValues(table, before, after))
      storeRevision(transaction, table, { key: ours, ts, before, after });
    keepPastRow(transaction, table, { key: ours, ts });
    replace.run([...after, ...version, ours, time]);
    transaction.journal.add(table.stream, "rows", ours, { from: ts, to: ts + 1 });
    replaced++;
  }
  if (replaced > 0 && table.stream === "index_ticks") markRangeStale(transaction, ours, range);
  return replaced;
}

/** Deletes our rows that the other warehouse proves not to exist, and stores them in `revisions`. Returns how many. */
export function withdrawForeignRows(
  transaction: Transaction,
  table: RowTable<never>,
  { theirs, ours }: OurKeyPair,
  range: TimeRange,
): number {
  const { stream, keyColumn, timeColumn, storedTime, tsOfStored } = table;
  const foreign = transaction.values<StoredTime>(
    `SELECT m.${timeColumn} FROM main.${table.table} m
      WHERE m.${keyColumn} = ? AND m.${timeColumn} >= ? AND m.${timeColumn} < ? AND NOT EXISTS
        (SELECT 1 FROM other.${table.table} o WHERE o.${keyColumn} = ? AND o.${timeColumn} = m.${timeColumn})`,
    [ours, storedTime(range.from), storedTime(range.to), theirs],
  );
  return withdrawRows(transaction, { stream, series: ours }, foreign.map(tsOfStored));
}
