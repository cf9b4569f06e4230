import type { Column } from "../../model/column.ts";
import {
  hasHistory,
  isDaily,
  keyColumns,
  type RowStream,
  rowStreams,
  streamTable,
} from "../../model/streams.ts";
import { formatDay, MICROS_PER_DAY, type Micros, startOfDay } from "../../model/time.ts";
import { normalise, type TimeRange } from "../../model/time-range.ts";
import { readPresentTs } from "../coverage/targets.ts";
import type { SettledRangeRow } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import { canContinue, type JournalEntry, readEntries, readJournalPosition } from "../tables/journal.ts";
import { timeOrder } from "../tables/row-parts.ts";
import { rowTables, type SqlValue } from "../tables/row-tables.ts";
import { refreshPeriod } from "../views/sql-dialect.ts";
import { sqliteDialect } from "../views/sqlite-dialect.ts";
import { repetitions, tickerBefore } from "../views/stale-price.ts";
import { type ExportPeriod, labelColumns, readParts } from "./export-periods.ts";

const ROWS_PER_BLOCK = 8_192;

/** [ts, columns of the table …, `details` if the period has any] */
type ExportedRow = readonly [ts: Micros, ...columns: SqlValue[]];

export type PeriodContent = ReturnType<typeof readPeriod>;

/**
 * Reads everything about a period except its rows. The caller keeps a read transaction open until it has read the blocks,
 * so that rows and ledger agree.
 */
export function readPeriod(connection: Connection, period: ExportPeriod) {
  const { stream, keys, from, to } = period;
  const { table, keyColumn } = rowTables[stream];
  const sql = `SELECT count(*), min(r.ts), max(r.ts), count(r.details) FROM json_each(?) k CROSS JOIN ${table} r
    WHERE r.${keyColumn} = k.value AND r.ts >= ? AND r.ts < ?`;
  const [rows, oldest, newest, detailsCount] = connection.findTuple<
    readonly [rows: number, first: Micros, last: Micros, detailsCount: number]
  >(sql, [JSON.stringify(keys), from, to]) ?? [0, 0, 0, 0];
  /** Whether any row has a `details`: exact digits, quality notes or unknown properties. */
  const hasDetails = detailsCount > 0;
  const shown = isDaily(stream) ? formatDay : (ts: Micros) => ts;
  /** The first and the last time, as the files have it: a day of daily bars; undefined without rows. */
  const times = rows === 0 ? undefined : { first: shown(oldest), last: shown(newest) };
  const ledger = hasHistory(stream) ? provenRanges(connection, period) : undefined;
  return { rows, times, hasDetails, blocks: () => readBlocks(connection, period, { ledger, hasDetails }) };
}

/** The label columns of each series of a period. */
export function readLabels(connection: Connection, { stream, keys }: ExportPeriod) {
  const { dictionary } = streamTable[stream];
  const names = labelColumns(stream).map(({ from }) => from);
  const sql = `SELECT ${names.join(", ")} FROM ${dictionary} WHERE ${keyColumns[dictionary]} = ?`;
  return keys.map((key) => connection.findTuple<readonly (string | null)[]>(sql, [key]) ?? []);
}

/** The refresh period of each stream, as the views compute it. */
function readRefreshPeriods(connection: Connection): Readonly<Record<RowStream, Micros>> {
  const period = (stream: RowStream) =>
    connection.value<Micros>(`SELECT ${refreshPeriod(sqliteDialect, stream)}`);
  return Object.fromEntries(rowStreams.map((stream) => [stream, period(stream)])) as Record<
    RowStream,
    Micros
  >;
}

/** Whether an export marks rows that repeat the price of the previous row. */
export function comparesPrices(stream: RowStream): boolean {
  const columns: readonly Column[] = streamTable[stream].columns;
  return columns.some(({ name }) => name === "is_stale");
}

/** The covered ranges by series, clipped to the period. */
function provenRanges(connection: Connection, { stream, from, to }: ExportPeriod): Map<number, TimeRange[]> {
  // A bar of a day that is not over is never final, even if the ledger covers it.
  const end = isDaily(stream) ? Math.min(to, startOfDay(readPresentTs(connection))) : to;
  const ranges = connection.rows<Pick<SettledRangeRow, "series" | "from" | "to">>(
    `SELECT series, max(from_ts, ?) AS "from", min(to_ts, ?) AS "to" FROM settled_ranges
      WHERE stream = ? AND from_ts < ? AND to_ts > ? AND proof <> 'lost' ORDER BY series, from_ts`,
    [from, end, stream, end, from],
  );
  return Map.groupBy(ranges, ({ series }) => series);
}

/**
 * Rows of one series in order of time; `at`: its position in the period's `keys`; `flags`: for each row whether the ledger covers it, or
 * whether a ticker repeats the previous price.
 */
function* readBlocks(
  connection: Connection,
  period: ExportPeriod,
  options: { ledger: ReadonlyMap<number, readonly TimeRange[]> | undefined; hasDetails: boolean },
) {
  const { stream, keys } = period;
  const { ledger, hasDetails } = options;
  const { table, keyColumn } = rowTables[stream];
  const columns = rowTables[stream].columns.filter((column) => hasDetails || column !== "details");
  const sql = `SELECT ts, ${columns.join(", ")} FROM ${table}
      WHERE ${keyColumn} = ? AND ts >= ? AND ts < ? ORDER BY ${timeOrder(stream)} LIMIT ${ROWS_PER_BLOCK}`;
  const length = isDaily(stream) ? MICROS_PER_DAY : 1;
  const tickerPeriod = comparesPrices(stream) ? readRefreshPeriods(connection).exchange_ticks : undefined;
  const lastAt = columns.indexOf("last") + 1;
  const flagOf = (key: number): ((row: ExportedRow) => boolean | null) | undefined => {
    if (tickerPeriod !== undefined) {
      const repeats = repetitions(tickerBefore(connection, key, period.from), tickerPeriod);
      return (row) => repeats({ ts: row[0], last: row[lastAt] as number | null });
    }
    const isProven = ledger && coverageTest(ledger.get(key) ?? [], length);
    return isProven && ((row) => isProven(row[0]));
  };
  for (const [at, key] of keys.entries()) {
    const flag = flagOf(key);
    let { from } = period;
    for (;;) {
      const rows = connection.tuples<ExportedRow>(sql, [key, from, period.to]);
      const last = rows.at(-1);
      if (!last) break;
      yield { at, rows, flags: flag && rows.map(flag) };
      if (rows.length < ROWS_PER_BLOCK) break;
      from = last[0] + 1;
    }
  }
}

/** Returns a function that says whether the ledger covers a row. Call it with ascending timestamps. */
function coverageTest(ranges: readonly TimeRange[], length: Micros): (ts: Micros) => boolean {
  let i = 0;
  return (ts) => {
    while (i < ranges.length && (ranges[i] as TimeRange).to <= ts) i++;
    const range = ranges[i];
    return range !== undefined && range.from <= ts && ts + length <= range.to;
  };
}

export type ExportedState = Readonly<ReturnType<typeof readExportedState>>;

/** The state of the warehouse from which an export is written: the journal and its last entry, and the service's time. */
export function readExportedState(connection: Connection) {
  const { id, seq } = readJournalPosition(connection);
  return {
    journal: { id, seq },
    present: readPresentTs(connection),
    refreshPeriods: readRefreshPeriods(connection),
  };
}

/**
 * Says of a period whether its rows and their coverage are as they were in an earlier state. The names of its series may have
 * changed. Without an earlier state of this file, or if the journal does not reach back to it, every period counts as changed.
 */
export function compareStates(
  connection: Connection,
  before: ExportedState | undefined,
  now: ExportedState,
): (period: ExportPeriod) => boolean {
  if (!before || !canContinue(readJournalPosition(connection), before.journal)) return () => false;
  const { seq: after } = before.journal;
  const entries = readEntries(connection, { after, until: now.journal.seq });
  const parts = new Map(rowStreams.map((stream) => [stream, readParts(connection, stream)]));
  const partsOf = ({ stream, key, keys }: JournalEntry) =>
    new Set(Array.from({ length: keys }, (_, i) => parts.get(stream)?.get(key + i) ?? null));
  const nameOf = ({ stream, part }: Pick<ExportPeriod, "stream" | "part">) => `${stream} ${part}`;
  const named = entries
    .filter(({ kind }) => kind !== "ledger")
    .flatMap((entry) => [...partsOf(entry)].map((part) => ({ ...entry, part })));
  const changed = new Map([...Map.groupBy(named, nameOf)].map(([name, own]) => [name, normalise(own)]));
  return ({ stream, part, from, to }) => {
    const tickerPeriod = before.refreshPeriods[stream];
    const hasPrices = comparesPrices(stream);
    if (hasPrices && tickerPeriod !== now.refreshPeriods[stream]) return false;
    // The first row of a period is compared with the last one before it.
    const first = hasPrices ? from - MAX_PERIODS_BEFORE * tickerPeriod : from;
    const ranges = changed.get(nameOf({ stream, part })) ?? [];
    if (ranges.some((range) => range.from < to && range.to > first)) return false;
    // A bar becomes final when its day ends.
    return !isDaily(stream) || startOfDay(before.present) === startOfDay(now.present) || to <= before.present;
  };
}

const MAX_PERIODS_BEFORE = 3;
