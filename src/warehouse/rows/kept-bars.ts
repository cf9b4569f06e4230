import { barWidths, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";

/*
 * Hourly bars of the index ticks, kept beside them: reading 120 ticks per bar would cost a hundred times as much. Every
 * hour with ticks has a row in `kept_bars`. Its bar is stale (`n_ticks` is null) from the transaction that changes a tick
 * of the hour until the writer has time to compute it; meanwhile the views compute it from the ticks. Triggers mark
 * hours whose ticks are deleted or updated. Inserts are too many for a trigger: the row writer marks their hours.
 */

const HOUR = barWidths["1h"];

/** Exact digits of a bar, by column: as in `aside` of a row. */
interface BarAside {
  open?: string;
  high?: string;
  low?: string;
  close?: string;
  volume_24h?: string;
}

/** The columns of `kept_bars` after the key. */
export interface KeptBar {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
  /** Of the last tick. */
  readonly volume: number | null;
  readonly ticks: number;
  /** The ticks among them that have a `quality`. */
  readonly doubtful: number;
  readonly aside: string | null;
}

function startOfHour(ts: Micros): Micros {
  return Math.floor(ts / HOUR) * HOUR;
}

/** The hours that a range touches. */
export function hoursOf({ from, to }: TimeRange): Micros[] {
  const hours: Micros[] = [];
  for (let hour = startOfHour(from); hour < to; hour += HOUR) hours.push(hour);
  return hours;
}

const markSql = `INSERT INTO kept_bars (series, ts) VALUES (?, ?)
  ON CONFLICT DO UPDATE SET n_ticks = NULL WHERE n_ticks IS NOT NULL`;

/** Ticks were written in these hours: their bars are stale. Call it in the transaction that writes the ticks. */
export function markStale(transaction: Transaction, series: number, hours: Iterable<Micros>): void {
  const { staleHours } = transaction.highWaterMarks;
  for (const hour of hours) {
    // Thousands of live ticks arrive at once, each in the same hour as the one before.
    if (staleHours.get(series) === hour) continue;
    transaction.statement(markSql).run([series, hour]);
    staleHours.set(series, hour);
  }
}

/** `markStale` for whoever inserts ticks of a range without the row writer: one seek per hour that has any. */
export function markRangeStale(transaction: Transaction, series: number, { from, to }: TimeRange): void {
  const next = transaction
    .statement<Micros>(
      "SELECT ts FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? ORDER BY ts LIMIT 1",
    )
    .pluck();
  for (let ts = next.get([series, from, to]); ts !== undefined; ) {
    const hour = startOfHour(ts);
    markStale(transaction, series, [hour]);
    ts = next.get([series, hour + HOUR, to]);
  }
}

/** Collects the hours of written ticks. Cheap if successive ticks are in the same hour. */
export class TouchedHours {
  #hour = Number.NaN;
  readonly #hours = new Set<Micros>();

  add(ts: Micros): void {
    if (ts >= this.#hour && ts < this.#hour + HOUR) return;
    this.#hour = startOfHour(ts);
    this.#hours.add(this.#hour);
  }

  /** Marks what was collected, and starts again. */
  mark(transaction: Transaction, series: number): void {
    if (this.#hours.size > 0) markStale(transaction, series, this.#hours);
    this.#hour = Number.NaN;
    this.#hours.clear();
  }
}

const keepSql = `REPLACE INTO kept_bars (series, ts, open, high, low, close, volume_24h, n_ticks, n_doubtful, aside)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

function keepBar(transaction: Transaction, series: number, hour: Micros, bar: KeptBar): void {
  const { open, high, low, close, volume, ticks, doubtful, aside } = bar;
  const values = [series, hour, open, high, low, close, volume, ticks, doubtful, aside];
  transaction.statement(keepSql).run(values);
  transaction.highWaterMarks.staleHours.delete(series);
}

/**
 * The bars of a page whose range had no ticks before: add its plain ticks in ascending order, then finish. Keeps the hours
 * that the page contains whole, and marks the first and the last. Mark the hours of other ticks after that.
 */
export class PageBars {
  readonly #transaction: Transaction;
  readonly #series: number;
  /** With their bars; without one: the page may lack ticks of the hour. */
  readonly #hours: [Micros, KeptBar | undefined][] = [];
  #hour = Number.NaN;
  /** Nothing can be missing in the hour. */
  #isWhole = false;
  #open = 0;
  #high = 0;
  #low = 0;
  #close = 0;
  #volume = 0;
  #ticks = 0;

  constructor(transaction: Transaction, series: number) {
    this.#transaction = transaction;
    this.#series = series;
  }

  /** Plain: the figures are exact doubles, and there is no remark. */
  add(ts: Micros, price: number, volume: number): void {
    if (!(ts < this.#hour + HOUR)) this.#beginHour(ts);
    if (this.#ticks === 0) {
      this.#open = price;
      this.#high = price;
      this.#low = price;
    } else if (price > this.#high) this.#high = price;
    else if (price < this.#low) this.#low = price;
    this.#close = price;
    this.#volume = volume;
    this.#ticks++;
  }

  finish(): void {
    // Ticks after the page's last one may be stored already.
    this.#isWhole = false;
    this.#endHour();
    // Newest first, as the key is ordered: pages arrive in this order too, and fill the file's pages to the end.
    for (const [hour, bar] of this.#hours.reverse()) {
      if (bar === undefined) markStale(this.#transaction, this.#series, [hour]);
      else keepBar(this.#transaction, this.#series, hour, bar);
    }
  }

  #beginHour(ts: Micros): void {
    this.#endHour();
    this.#hour = startOfHour(ts);
    this.#isWhole = this.#hours.length > 0 || ts === this.#hour;
    this.#ticks = 0;
  }

  #endHour(): void {
    if (Number.isNaN(this.#hour)) return;
    const bar: KeptBar = {
      open: this.#open,
      high: this.#high,
      low: this.#low,
      close: this.#close,
      volume: this.#volume,
      ticks: this.#ticks,
      doubtful: 0,
      aside: null,
    };
    this.#hours.push([this.#hour, this.#isWhole ? bar : undefined]);
  }
}

/** Deletes the ticks of whole hours by `remove`, and keeps their bars. */
export function keepBarsWithoutTicks(
  transaction: Transaction,
  series: number,
  range: TimeRange,
  remove: () => void,
): void {
  const bars = hoursOf(range).map((hour) => [hour, computeBar(transaction, series, hour)] as const);
  remove();
  for (const [hour, bar] of bars) if (bar) keepBar(transaction, series, hour, bar);
}

/** Stale bars of hours that are over: another would be stale again with the next tick. */
const staleSql = "FROM kept_bars WHERE n_ticks IS NULL AND ts <= ?";

export function hasStaleBars(connection: Pick<Connection, "statement">, now: Micros): boolean {
  return connection.statement(`SELECT 1 ${staleSql} LIMIT 1`).get([now - HOUR]) !== undefined;
}

/** Computes stale bars, the newest first. Returns how many: fewer than `limit` if none is left. */
export function computeStaleBars(transaction: Transaction, limit: number): number {
  const stale = transaction
    .statement<readonly [number, Micros]>(`SELECT series, ts ${staleSql} ORDER BY ts DESC LIMIT ?`)
    .raw()
    .all([transaction.now - HOUR, limit]);
  const remove = transaction.statement("DELETE FROM kept_bars WHERE series = ? AND ts = ?");
  for (const [series, hour] of stale) {
    const bar = computeBar(transaction, series, hour);
    if (bar === undefined) {
      remove.run([series, hour]);
      transaction.highWaterMarks.staleHours.delete(series);
    } else keepBar(transaction, series, hour, bar);
  }
  return stale.length;
}

const inHour = "FROM index_tick_rows WHERE series = @series AND ts >= @from AND ts < @to";
const priced = `${inHour} AND price IS NOT NULL`;
const summarySql = `SELECT count(price), count(aside), (SELECT price ${priced} ORDER BY ts LIMIT 1), max(price), min(price),
  (SELECT price ${priced} ORDER BY ts DESC LIMIT 1), (SELECT volume ${priced} ORDER BY ts DESC LIMIT 1) ${inHour}`;

interface HourBounds extends TimeRange {
  readonly series: number;
}

type BarSummary = readonly [
  ticks: number,
  asides: number,
  open: number,
  high: number,
  low: number,
  close: number,
  volume: number | null,
];

/** The bar of an hour from its ticks; undefined if none has a price. */
export function computeBar(
  connection: Pick<Connection, "statement">,
  series: number,
  hour: Micros,
): KeptBar | undefined {
  const bounds: HourBounds = { series, from: hour, to: hour + HOUR };
  const summary = connection.statement<BarSummary>(summarySql).raw().get(bounds) as BarSummary;
  const [ticks, asides, open, high, low, close, volume] = summary;
  if (ticks === 0) return undefined;
  if (asides > 0) return computeFromRows(connection, bounds);
  return { open, high, low, close, volume, ticks, doubtful: 0, aside: null };
}

type TickRow = readonly [price: number, volume: number | null, aside: string | null];

/** An hour with rare values: exact digits that a double cannot hold, or remarks. */
function computeFromRows(connection: Pick<Connection, "statement">, bounds: HourBounds): KeptBar {
  const rows = connection
    .statement<TickRow>(`SELECT price, volume, aside ${priced} ORDER BY ts`)
    .raw()
    .all(bounds)
    .map(([price, volume, aside]) => ({ price, volume, aside: parseAside(aside) }));
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) throw new Error("an hour without ticks has no bar");
  const highest = rows.reduce((best, row) => (row.price > best.price ? row : best));
  const lowest = rows.reduce((best, row) => (row.price < best.price ? row : best));
  const digits: BarAside = {
    ...(first.aside.price !== undefined && { open: first.aside.price }),
    ...(highest.aside.price !== undefined && { high: highest.aside.price }),
    ...(lowest.aside.price !== undefined && { low: lowest.aside.price }),
    ...(last.aside.price !== undefined && { close: last.aside.price }),
    ...(last.aside.volume !== undefined && { volume_24h: last.aside.volume }),
  };
  return {
    open: first.price,
    high: highest.price,
    low: lowest.price,
    close: last.price,
    volume: last.volume,
    ticks: rows.length,
    doubtful: rows.filter(({ aside }) => aside.quality !== undefined).length,
    aside: Object.keys(digits).length > 0 ? JSON.stringify(digits) : null,
  };
}

function parseAside(aside: string | null): { price?: string; volume?: string; quality?: string } {
  return aside === null ? {} : (JSON.parse(aside) as { price?: string; volume?: string; quality?: string });
}
