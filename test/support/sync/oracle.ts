import assert from "node:assert/strict";
import { toPlainNotation } from "../../../src/model/decimal.ts";
import type { IndexType } from "../../../src/model/stream-columns.ts";
import {
  type HistoryStream,
  keyColumns,
  type SnapshotStream,
  streamTable,
} from "../../../src/model/streams.ts";
import { formatDay, MICROS_PER_DAY, type Micros } from "../../../src/model/time.ts";
import { intersect, normalise, subtract, totalDuration } from "../../../src/model/time-range.ts";
import type { SettledRange } from "../../../src/rule/answer.ts";
import { readSettledRanges } from "../../../src/warehouse/coverage/ledger.ts";
import { decayLateness, readLateness } from "../../../src/warehouse/coverage/publication.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { expectSoundLedger } from "../warehouse/expect-sound-ledger.ts";

interface TargetRow {
  readonly stream: HistoryStream;
  readonly series: number;
  readonly indexType: IndexType;
  readonly indexId: string;
  readonly name: string;
  readonly from: Micros;
  readonly to: Micros | null;
  readonly settleDelay: Micros;
  readonly step: Micros;
  readonly window: Micros | null;
}

interface SnapshotKeyRow {
  readonly stream: SnapshotStream;
  readonly series: number;
  /** Empty: all exchanges. */
  readonly exchangeId: string;
  readonly name: string;
  readonly cadence: Micros;
}

export type OracleRow = Readonly<Record<string, string | number | null>>;

interface ComparisonResult {
  readonly seriesCount: number;
  readonly rows: number;
  /** Sum over all series. */
  readonly coveredMicros: number;
  readonly lostMicros: number;
}

const WINDOW_MICROS = 200 * MICROS_PER_DAY;
/** The start of the window is known only as well as the service's clock. */
const CLOCK_ERROR_MICROS = 60e6;
/** The window moves while rows are compared. */
const WINDOW_MARGIN_MICROS = 3_600_000_000;

/**
 * The oracle of all sync tests, at `nowMs` (service time): the file is intact, each target is settled and has
 * exactly the rows that the service serves, and only ranges that had left the window are lost.
 */
export function expectWarehouseMatches(
  reader: Connection,
  simulator: Pick<Simulator, "oracle">,
  nowMs: number,
  asOf: Micros = Math.floor(nowMs * 1000),
): ComparisonResult {
  assert.equal(reader.database.pragma("integrity_check", { simple: true }), "ok");
  expectSoundLedger(reader, nowMs);
  expectSnapshotCoverage(reader);
  const now = Math.floor(nowMs * 1000);
  const sum = { seriesCount: 0, rows: 0, coveredMicros: 0, lostMicros: 0 };
  for (const targetRow of readTargetRows(reader)) {
    const settleDelay = Math.max(targetRow.settleDelay, readLatenessAt(reader, targetRow.stream, asOf));
    const targetEnd = Math.floor((asOf - settleDelay) / targetRow.step) * targetRow.step;
    const settled = readSettledRanges(reader, targetRow);
    // What left the window before the first walk reached it was never promised.
    const windowStart = targetRow.window === null ? Number.NEGATIVE_INFINITY : now - targetRow.window;
    const first = settled[0]?.from ?? Number.POSITIVE_INFINITY;
    const start = Math.max(targetRow.from, first <= windowStart + CLOCK_ERROR_MICROS ? first : windowStart);
    const target = normalise([{ from: start, to: Math.min(targetRow.to ?? targetEnd, targetEnd) }]);
    const label = `${targetRow.stream} ${targetRow.indexType} ${targetRow.name}`;
    const open = subtract(target, normalise([...settled, ...quietHead(simulator, targetRow, asOf)]));
    assert.deepEqual({ what: label, open }, { what: label, open: [] });
    const lost = checkLosses(settled, targetRow, now);
    sum.lostMicros += totalDuration(lost);
    sum.coveredMicros += totalDuration(subtract(intersect(target, normalise(settled)), lost));
    // Rows that have left the service's window stay stored but cannot be compared.
    const from = Math.max(targetRow.from, targetRow.window === null ? targetRow.from : now - WINDOW_MICROS);
    const to = target.at(-1)?.to ?? from;
    const stored = readStoredRows(reader, targetRow, from, to);
    const served = readServedRows(simulator, targetRow, from, to, nowMs);
    expectEqualRows(label, stored, served);
    sum.seriesCount++;
    sum.rows += stored.length;
  }
  return sum;
}

/** As of when a warehouse can be compared that was stopped: each series is covered up to a different time. */
export function readCoveredUntil(reader: Connection): Micros {
  return reader.value<number>(
    `SELECT min(reached) FROM (SELECT max(s.to_ts) + w.settle_delay AS reached FROM settled_ranges s
      JOIN targets w ON w.stream = s.stream AND w.series = s.series
      WHERE s.stream = 'index_ticks' AND w.to_ts IS NULL GROUP BY s.series)`,
  );
}

/** Late records delay the end of a target; a lateness that was seen falls to nothing in twelve times its length. */
function readLatenessAt(reader: Connection, stream: HistoryStream, asOf: Micros): Micros {
  const late = readLateness(reader, stream);
  return late ? decayLateness(late, asOf) : 0;
}

const QUIET_MARGIN_MICROS = 3600 * 1_000_000;

/** What may stay open of a series that has no newer records: silence of the last hour proves nothing. */
function quietHead(
  simulator: Pick<Simulator, "oracle">,
  targetRow: TargetRow,
  asOf: Micros,
): readonly { from: Micros; to: Micros }[] {
  const period = Math.max(targetRow.step, targetRow.settleDelay / 2);
  const { stream, indexType, indexId } = targetRow;
  const hasRecordsSince = (from: Micros) =>
    simulator.oracle.hasRecords(stream, indexType, indexId, from / 1000, asOf / 1000, asOf / 1000);
  if (hasRecordsSince(asOf - QUIET_MARGIN_MICROS - period)) return [];
  // Without any record of the series, and none of others, REST may be up to a day late. An index that does not exist is requested
  // again a day after the answer that confirmed another one, which covers it up to the settle delay.
  const silence = MICROS_PER_DAY + targetRow.settleDelay + QUIET_MARGIN_MICROS;
  const margin = hasRecordsSince(targetRow.from) ? QUIET_MARGIN_MICROS : silence;
  const from = Math.floor((asOf - margin) / targetRow.step) * targetRow.step;
  return [{ from, to: Number.MAX_SAFE_INTEGER }];
}

/** Knows which records a fault has hidden from an answer, or changed in it: nobody can tell that they are missing or wrong. */
export interface HiddenRows {
  /** The rows of the warehouse and of the service without these. */
  leaveOut(
    series: Pick<TargetRow, "stream" | "indexId">,
    stored: readonly OracleRow[],
    served: readonly OracleRow[],
  ): [stored: readonly OracleRow[], served: readonly OracleRow[]];
}

const nothingHidden: HiddenRows = { leaveOut: (_, stored, served) => [stored, served] };

/**
 * Checks what must hold at any time, even during faults: the file is intact; in ranges proven `rows` or
 * `empty`, the stored rows equal those of the service; a covered period of a snapshot stream has rows.
 */
export function expectCoverageCorrect(
  reader: Connection,
  simulator: Simulator,
  nowMs: number,
  hidden: HiddenRows = nothingHidden,
): void {
  assert.equal(reader.database.pragma("quick_check", { simple: true }), "ok");
  expectSoundLedger(reader, nowMs);
  expectSnapshotCoverage(reader);
  const now = Math.floor(nowMs * 1000);
  for (const targetRow of readTargetRows(reader)) {
    const servedSince =
      targetRow.window === null ? Number.NEGATIVE_INFINITY : now - WINDOW_MICROS + WINDOW_MARGIN_MICROS;
    for (const { proof, ...range } of readSettledRanges(reader, targetRow)) {
      const from = Math.max(range.from, servedSince);
      if (proof === "lost" || from >= range.to) continue;
      const label = `${proof} ${targetRow.stream} ${targetRow.indexType} ${targetRow.name}`;
      const stored = readStoredRows(reader, targetRow, from, range.to, "");
      const served = readServedRows(simulator, targetRow, from, range.to, nowMs, Number);
      expectEqualRows(label, ...hidden.leaveOut(targetRow, stored, served));
    }
  }
}

/** Every covered period of a snapshot stream must have rows. */
export function expectSnapshotCoverage(reader: Connection): void {
  const keys = reader
    .statement(
      `SELECT DISTINCT w.stream, w.series, s.index_id AS exchangeId, s.name, w.settle_delay / 2 AS cadence
      FROM targets w JOIN series s ON s.series = w.series WHERE w.is_snapshot = 1`,
    )
    .all() as SnapshotKeyRow[];
  for (const key of keys) {
    const { table, dictionary } = streamTable[key.stream];
    const keyColumn = keyColumns[dictionary];
    const periods = new Set(
      reader
        .statement(
          `SELECT DISTINCT r.ts / ${key.cadence} FROM ${table} r JOIN ${dictionary} d ON d.${keyColumn} = r.${keyColumn}
          ${key.exchangeId === "" ? "" : "WHERE d.exchange_id = @exchangeId"}`,
        )
        .pluck()
        .all(key.exchangeId === "" ? {} : { exchangeId: key.exchangeId }) as number[],
    );
    for (const { proof, from, to } of readSettledRanges(reader, key)) {
      if (proof !== "rows") continue;
      for (let at = Math.ceil(from / key.cadence); at * key.cadence < to; at++)
        assert.ok(hasRowBefore(periods, at, key), `${key.stream} ${key.name}: no row at period ${at}`);
    }
  }
}

/** The service refreshes the market caps every five minutes: until the next refresh a row stands for the present. */
function hasRowBefore(
  periods: ReadonlySet<number>,
  at: number,
  { stream, cadence }: SnapshotKeyRow,
): boolean {
  const periodsBefore = stream === "market_caps" ? Math.floor(450_000_000 / cadence) : 0;
  for (let period = at; period >= at - periodsBefore; period--) if (periods.has(period)) return true;
  return false;
}

function readTargetRows(reader: Connection): TargetRow[] {
  return reader
    .statement(
      `SELECT w.stream, w.series, s.index_type AS indexType, s.index_id AS indexId, s.name, w.from_ts AS "from",
        w.to_ts AS "to", w.settle_delay AS settleDelay, w.step, w.service_window AS "window"
      FROM targets w JOIN series s ON s.series = w.series WHERE w.is_snapshot = 0`,
    )
    .all() as TargetRow[];
}

/** Compares row by row and shows only the first difference: comparing all rows at once is slow. */
function expectEqualRows(label: string, stored: readonly OracleRow[], served: readonly OracleRow[]): void {
  const length = Math.max(stored.length, served.length);
  for (let at = 0; at < length; at++) {
    if (!isEqualRow(stored[at], served[at])) {
      assert.deepEqual({ what: label, at, row: stored[at] }, { what: label, at, row: served[at] });
    }
  }
  assert.deepEqual({ what: label, rows: stored.length }, { what: label, rows: served.length });
}

function isEqualRow(a: OracleRow | undefined, b: OracleRow | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  for (const name in a) if (a[name] !== b[name]) return false;
  return Object.keys(a).length === Object.keys(b).length;
}

/** Everything lost must have left the window. */
function checkLosses(settled: readonly SettledRange[], targetRow: TargetRow, now: Micros) {
  const lost = settled.filter(({ proof }) => proof === "lost");
  for (const range of lost) {
    assert.notEqual(targetRow.window, null);
    assert.ok(
      range.to <= now - (targetRow.window ?? 0),
      `lost although still served: ${JSON.stringify(range)}`,
    );
  }
  return normalise(lost);
}

const ohlcvColumns = ["open", "high", "low", "close", "volume", "volume_usd", "vwap", "twap"];

/**
 * A proven range starts one microsecond after the start of its oldest bar, so that bar is not in the range.
 */
const firstDayAfter = (ts: Micros) => formatDay(ts + MICROS_PER_DAY - 1);

type FigureColumns = "_exact" | "";

/** Reads the exact digits of each figure, or the REAL, which takes a quarter of the time. */
function readStoredRows(
  reader: Connection,
  targetRow: TargetRow,
  from: Micros,
  to: Micros,
  suffix: FigureColumns = "_exact",
): OracleRow[] {
  const isBars = targetRow.stream === "ohlcv";
  const figures = (names: readonly string[]) => names.map((name) => `${name}${suffix} AS ${name}`).join(", ");
  const columns = isBars
    ? `day, ${figures(ohlcvColumns)}, record_id`
    : `ts, ${figures(["price", "volume", "tick_volume"])}`;
  const [column, low, high] = isBars ? ["day", firstDayAfter(from), firstDayAfter(to)] : ["ts", from, to];
  return reader
    .statement(
      `SELECT ${columns} FROM ${targetRow.stream} WHERE index_type = ? AND index_id = ? AND ${column} >= ? AND ${column} < ?
      ORDER BY ${column}`,
    )
    .all([targetRow.indexType, targetRow.indexId, low, high]) as OracleRow[];
}

function readServedRows(
  { oracle }: Pick<Simulator, "oracle">,
  { stream, indexType, indexId }: TargetRow,
  from: Micros,
  to: Micros,
  nowMs: number,
  toFigure: (text: string) => string | number | undefined = toPlainNotation,
): OracleRow[] {
  const plain = (text: string | undefined) => (text === undefined ? null : (toFigure(text) ?? null));
  if (stream === "ohlcv") {
    return oracle.dailyBars(indexType, indexId, from / 1000, to / 1000, nowMs).map((bar) => ({
      day: bar.startTimestamp.slice(0, 10),
      open: plain(bar.open),
      high: plain(bar.high),
      low: plain(bar.low),
      close: plain(bar.close),
      volume: plain(bar.volume),
      volume_usd: plain(bar.volumeUsd),
      vwap: plain(bar.vwap),
      twap: plain(bar.twap),
      record_id: bar.id,
    }));
  }
  return oracle.indexTickFigures(indexType, indexId, from / 1000, to / 1000, nowMs).map((tick) => ({
    ts: tick.ts,
    price: plain(tick.price),
    volume: plain(tick.volume),
    tick_volume: plain(tick.tickVolume),
  }));
}
