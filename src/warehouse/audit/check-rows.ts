import { hasHistory, keyColumns, type SnapshotStream, streamTable } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SettledRange } from "../../rule/answer.ts";
import type { Connection, Statement } from "../sqlite/connection.ts";
import { timeOrder } from "../tables/row-parts.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import { type AuditContext, type AuditedKey, type AuditFinding, createFinding } from "./audited-key.ts";

/** A retraction may leave a part of a covered range between two rows: this many periods without a row prove nothing. */
const MAX_PERIODS_WITHOUT_ROW = 3;
/** A longer pause is worth a remark. */
const MAX_PAUSE_PERIODS = 20;
const MIN_REMARKED_PAUSE: Micros = 3600 * MICROS_PER_SECOND;
/** How many spacings are measured per series. */
const SPACING_SAMPLES = 15;

/**
 * Compares the proofs with the rows. Offline nobody knows which records the service had, so a pause inside a `rows`
 * range is a remark only; but `empty` with a row, and `rows` without any, contradict themselves.
 */
export function checkRows({ connection }: AuditContext, audited: AuditedKey): AuditFinding[] {
  const seeks = createRowSeeks(connection, audited);
  const isHistory = hasHistory(audited.key.stream);
  const covered = audited.settled.filter((range) => range.proof === "rows");
  const spacing = isHistory ? measureSpacing(seeks, audited, covered) : audited.cadence;
  return audited.settled.flatMap((range): AuditFinding[] => {
    // An empty snapshot lists nothing that the settings select; rows of other markets may lie in its period.
    if (range.proof === "empty") return isHistory ? findRowInEmpty(seeks, audited, range) : [];
    if (range.proof !== "rows") return [];
    const first = seeks.first(range);
    if (first === undefined) {
      const isLong = !isHistory || range.to - range.from > MAX_PERIODS_WITHOUT_ROW * spacing;
      return isLong ? [createFinding(audited, "no_rows", range, "covered as rows, but has no row")] : [];
    }
    return isHistory ? findPauses(seeks, audited, range, first, spacing) : [];
  });
}

function findRowInEmpty(seeks: RowSeeks, audited: AuditedKey, range: SettledRange): AuditFinding[] {
  const first = seeks.first(range);
  if (first === undefined) return [];
  const rows = seeks.count(range);
  const text = `covered as empty (${range.reason ?? "no reason"}), but has ${rows} rows, the oldest at ${formatTimestamp(first)}`;
  return [createFinding(audited, "row_in_empty", range, text)];
}

/** The series' own spacing: the median of a few, so that a series which is refreshed rarely causes no remarks. */
function measureSpacing(seeks: RowSeeks, { cadence }: AuditedKey, covered: readonly TimeRange[]): Micros {
  const stride = Math.max(1, Math.floor(covered.length / SPACING_SAMPLES));
  const perRange = Math.ceil(SPACING_SAMPLES / Math.max(1, covered.length));
  const spacings: Micros[] = [];
  for (let at = 0; at < covered.length; at += stride) {
    const range = covered[at] as TimeRange;
    for (let sample = 0; sample < perRange; sample++) {
      const from = range.from + Math.floor(((range.to - range.from) * sample) / perRange);
      const first = seeks.first({ from, to: range.to });
      const next = first === undefined ? undefined : seeks.first({ from: first + 1, to: range.to });
      if (first !== undefined && next !== undefined) spacings.push(next - first);
    }
  }
  spacings.sort((a, b) => a - b);
  return Math.max(cadence, spacings[Math.floor(spacings.length / 2)] ?? cadence);
}

/** Jumps from row to row, each time as far as an ordinary pause reaches: one seek per hour, not one per row. */
function findPauses(seeks: RowSeeks, audited: AuditedKey, range: TimeRange, first: Micros, spacing: Micros) {
  const limit = Math.max(MIN_REMARKED_PAUSE, MAX_PAUSE_PERIODS * spacing);
  const findings: AuditFinding[] = [];
  const remark = (from: Micros, to: Micros) => {
    if (to - from <= limit) return;
    const text = "no row for a long time in a range covered as rows: the service may have had none";
    findings.push(createFinding(audited, "long_pause", { from, to }, text));
  };
  remark(range.from, first);
  for (let at = first; at + limit < range.to; ) {
    const last = seeks.last({ from: at + 1, to: at + limit + 1 });
    if (last !== undefined) {
      at = last;
      continue;
    }
    const next = seeks.first({ from: at + 1, to: range.to }) ?? range.to;
    remark(at, next);
    at = next;
  }
  return findings;
}

type RowSeeks = ReturnType<typeof seekKeys>;

/** Finds rows of one ledger key by index seeks, so that the auditor never scans a table. */
function createRowSeeks(connection: Connection, audited: AuditedKey): RowSeeks {
  const { stream, series } = audited.key;
  if (hasHistory(stream)) return seekKeys(connection, rowTables[stream], [series]);
  const snapshot = stream as SnapshotStream;
  const { dictionary } = streamTable[snapshot];
  const exchangeId = audited.names?.indexId ?? "";
  const sql = `SELECT ${keyColumns[dictionary]} FROM ${dictionary}`;
  // The keys of the rows that a subscription to one exchange, or to all (an empty id), stores. The ranking has no exchange.
  const isOfAll = exchangeId === "" || dictionary === "series";
  const keys = connection.values<number>(
    isOfAll ? sql : `${sql} WHERE exchange_id = ?`,
    isOfAll ? [] : [exchangeId],
  );
  return seekKeys(connection, rowTables[snapshot], keys);
}

function seekKeys(connection: Connection, table: RowTable<never>, keys: number[]) {
  const select = (what: string) =>
    `SELECT ${what} FROM ${table.table} WHERE ${table.keyColumn} = ? AND ts >= ? AND ts < ?`;
  const first = (direction: "ASC" | "DESC") =>
    connection
      .statement<Micros>(`${select("ts")} ORDER BY ${timeOrder(table.stream, direction)} LIMIT 1`)
      .pluck();
  const [oldest, newest] = [first("ASC"), first("DESC")];
  const count = connection.statement<number>(select("count(*)")).pluck();
  const seek = (statement: Statement<Micros>, { from, to }: TimeRange) => {
    for (const [at, key] of keys.entries()) {
      const found = statement.get([key, from, to]);
      if (found === undefined) continue;
      // Neighbouring ranges have rows of the same keys: try this one first.
      if (at > 0) keys.unshift(...keys.splice(at, 1));
      return found;
    }
    return undefined;
  };
  return {
    /** The oldest and the newest row in the range. */
    first: (range: TimeRange) => seek(oldest, range),
    last: (range: TimeRange) => seek(newest, range),
    count: ({ from, to }: TimeRange) => keys.reduce((sum, key) => sum + (count.get([key, from, to]) ?? 0), 0),
  };
}
