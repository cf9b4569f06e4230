import assert from "node:assert/strict";
import { plainNotation } from "../../../src/model/decimal.ts";
import type { HistoryStream } from "../../../src/model/streams.ts";
import { dayOf, formatInstant, MICROS_PER_DAY, type Micros } from "../../../src/model/time.ts";
import { extent, intersect, normalise, subtract } from "../../../src/model/time-range.ts";
import type { IndexType } from "../../../src/simulator/market/indexes.ts";
import type { Simulator } from "../../../src/simulator/simulator.ts";
import { type SettledRange, settledRanges } from "../../../src/warehouse/coverage/ledger.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";

interface WantedLine {
  readonly stream: HistoryStream;
  readonly series: number;
  readonly indexType: IndexType;
  readonly indexId: string;
  readonly name: string;
  readonly from: Micros;
  readonly to: Micros | null;
  readonly settleDelay: Micros;
  readonly step: Micros;
  readonly keptFor: Micros | null;
}

interface ObservedLine {
  readonly stream: "exchange_ticks" | "market_caps" | "derivative_ticks";
  readonly series: number;
  /** Empty: all of them. */
  readonly exchangeId: string;
  readonly name: string;
  readonly cadence: Micros;
}

export interface Agreement {
  readonly lines: number;
  readonly rows: number;
  /** Microseconds of all lines together. */
  readonly covered: number;
  readonly lost: number;
}

const WINDOW = 200 * 86_400_000_000;
/** The window moves on while the rows of a run are compared. */
const MARGIN = 3_600_000_000;

/**
 * The judge of every test of the engine. At `now` (milliseconds, the service's clock): each wanted series holds exactly what
 * the service serves, both ways; its ledger covers all of the claim (as of the run, if time has gone by since) but for what
 * was out of reach; the file is sound.
 */
export function expectTruth(
  reader: Connection,
  simulator: Pick<Simulator, "truth">,
  nowMs: number,
  asOf: Micros = Math.floor(nowMs * 1000),
): Agreement {
  assert.equal(reader.database.pragma("integrity_check", { simple: true }), "ok");
  expectObserved(reader);
  const now = Math.floor(nowMs * 1000);
  const lines = wantedLines(reader);
  const sum = { lines: 0, rows: 0, covered: 0, lost: 0 };
  for (const line of lines) {
    const claim = Math.floor((asOf - line.settleDelay) / line.step) * line.step;
    const wanted = normalise([{ from: line.from, to: Math.min(line.to ?? claim, claim) }]);
    const settled = settledRanges(reader, line);
    const what = `${line.stream} ${line.indexType} ${line.name}`;
    assert.deepEqual({ what, open: subtract(wanted, normalise(settled)) }, { what, open: [] });
    const lost = lossesOf(settled, line, now);
    sum.lost += extent(lost);
    sum.covered += extent(subtract(intersect(wanted, normalise(settled)), lost));
    // Rows that have left the service's window stay here and have nothing to be compared with.
    const from = Math.max(line.from, line.keptFor === null ? line.from : now - WINDOW);
    const to = wanted.at(-1)?.to ?? from;
    const stored = storedRows(reader, line, from, to);
    const served = servedRows(simulator, line, from, to, nowMs);
    expectSame(what, stored, served);
    sum.lines++;
    sum.rows += stored.length;
  }
  return sum;
}

/**
 * What holds at any moment, also in the middle of a storm: the file is sound, and wherever the ledger says `rows` or
 * `empty`, what is stored is exactly what the service has there; of a latest-only stream, that something is.
 */
export function expectHonest(
  reader: Connection,
  simulator: Simulator,
  nowMs: number,
  proofs: readonly SettledRange["proof"][] = ["rows", "empty"],
): void {
  assert.equal(reader.database.pragma("quick_check", { simple: true }), "ok");
  if (proofs.includes("rows")) expectObserved(reader);
  const now = Math.floor(nowMs * 1000);
  for (const line of wantedLines(reader)) {
    const served = line.keptFor === null ? Number.NEGATIVE_INFINITY : now - WINDOW + MARGIN;
    for (const { proof, ...range } of settledRanges(reader, line)) {
      const from = Math.max(range.from, served);
      if (!proofs.includes(proof) || from >= range.to) continue;
      const what = `${proof} ${line.stream} ${line.indexType} ${line.name}`;
      const stored = storedRows(reader, line, from, range.to);
      expectSame(what, stored, servedRows(simulator, line, from, range.to, nowMs));
    }
  }
}

/** What a latest-only stream says that it has observed has a row in every period: a claim without rows is a lie. */
export function expectObserved(reader: Connection): void {
  const lines = reader
    .statement(
      `SELECT DISTINCT w.stream, w.series, s.index_id AS exchangeId, s.name, w.settle_delay / 2 AS cadence
      FROM wanted_ranges w JOIN series s ON s.series = w.series WHERE w.observed = 1`,
    )
    .all() as ObservedLine[];
  for (const line of lines) {
    const periods = new Set(
      reader.database
        .prepare(
          `SELECT DISTINCT ts / ${line.cadence} FROM ${line.stream}
          ${line.exchangeId === "" ? "" : "WHERE exchange_id = @exchangeId"}`,
        )
        .pluck()
        .all(line.exchangeId === "" ? {} : { exchangeId: line.exchangeId }) as number[],
    );
    for (const { proof, from, to } of settledRanges(reader, line)) {
      if (proof !== "rows") continue;
      for (let at = Math.ceil(from / line.cadence); at * line.cadence < to; at++)
        assert.ok(
          periods.has(at),
          `${line.stream} ${line.name}: nothing at ${formatInstant(at * line.cadence)}`,
        );
    }
  }
}

function wantedLines(reader: Connection): WantedLine[] {
  return reader
    .statement(
      `SELECT w.stream, w.series, s.index_type AS indexType, s.index_id AS indexId, s.name, w.from_ts AS "from",
        w.to_ts AS "to", w.settle_delay AS settleDelay, w.step, w.kept_for AS keptFor
      FROM wanted_ranges w JOIN series s ON s.series = w.series WHERE w.observed = 0`,
    )
    .all() as WantedLine[];
}

/** Row by row, but fast: only the first difference is shown. */
function expectSame(what: string, stored: readonly unknown[], served: readonly unknown[]): void {
  const length = Math.max(stored.length, served.length);
  for (let at = 0; at < length; at++) {
    if (JSON.stringify(stored[at]) !== JSON.stringify(served[at])) {
      assert.deepEqual({ what, at, row: stored[at] }, { what, at, row: served[at] });
    }
  }
  assert.deepEqual({ what, rows: stored.length }, { what, rows: served.length });
}

/** What is lost was really out of reach: before the window's beginning as of now. */
function lossesOf(settled: readonly SettledRange[], line: WantedLine, now: Micros) {
  const lost = settled.filter(({ proof }) => proof === "lost");
  for (const range of lost) {
    assert.notEqual(line.keptFor, null);
    assert.ok(range.to <= now - (line.keptFor ?? 0), `lost within reach: ${JSON.stringify(range)}`);
  }
  return normalise(lost);
}

const figures = ["open", "high", "low", "close", "volume", "volume_usd", "vwap", "twap"];

/** A page proves what lies above its oldest bar, a microsecond after the bar's start: that bar is not in the range. */
const firstDayFrom = (moment: Micros) => dayOf(moment + MICROS_PER_DAY - 1);

function storedRows(reader: Connection, line: WantedLine, from: Micros, to: Micros): unknown[] {
  const isBars = line.stream === "ohlcv";
  const columns = isBars
    ? `day, ${figures.map((figure) => `${figure}_exact AS ${figure}`).join(", ")}, record_id`
    : "ts, price_exact AS price, volume_exact AS volume, tick_volume_exact AS tick_volume";
  const [moment, low, high] = isBars ? ["day", firstDayFrom(from), firstDayFrom(to)] : ["ts", from, to];
  return reader.database
    .prepare(
      `SELECT ${columns} FROM ${line.stream} WHERE index_type = ? AND index_id = ? AND ${moment} >= ? AND ${moment} < ?
      ORDER BY ${moment}`,
    )
    .all(line.indexType, line.indexId, low, high);
}

function servedRows(
  { truth }: Pick<Simulator, "truth">,
  { stream, indexType, indexId }: WantedLine,
  from: Micros,
  to: Micros,
  nowMs: number,
): unknown[] {
  const plain = (text: string | undefined) => (text === undefined ? null : plainNotation(text));
  if (stream === "ohlcv") {
    return truth.dailyBars(indexType, indexId, from / 1000, to / 1000, nowMs).map((bar) => ({
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
  return truth.indexTicks(indexType, indexId, from / 1000, to / 1000, nowMs).map((tick) => ({
    ts: Date.parse(tick.timestamp) * 1000,
    price: plain(tick.price),
    volume: plain(tick.volume),
    tick_volume: plain(tick.tickVolume),
  }));
}
