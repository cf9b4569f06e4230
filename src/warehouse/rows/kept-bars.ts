import {
  BarAggregate,
  type BarFigures,
  emptyDetails,
  toTickFigures,
} from "../../model/answers/bar-aggregate.ts";
import { barWidths, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SqlRunner } from "../sqlite/connection.ts";
import { parseRowDetails } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/*
 * Hourly bars of the index ticks, kept beside them: reading 120 ticks per bar would cost a hundred times as much. Every
 * hour with ticks has a row in `kept_bars`. Its bar is stale (`n_ticks` is null) from the transaction that changes a tick
 * of the hour until the writer has time to compute it; meanwhile the views compute it from the ticks. Triggers mark
 * hours whose ticks are deleted or updated. Inserts are too many for a trigger: the row writer marks their hours.
 */

const HOUR = barWidths["1h"];

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

/** A tick was written at `ts`: the bar of its hour is stale. Call it in the transaction that writes the tick. */
export function markStale(transaction: Transaction, series: number, ts: Micros): void {
  const { staleHours } = transaction.highWaterMarks;
  const hour = startOfHour(ts);
  // Thousands of live ticks arrive at once, each in the same hour as the one before.
  if (staleHours.get(series) === hour) return;
  transaction.run(markSql, [series, hour]);
  staleHours.set(series, hour);
}

const keepSql = `REPLACE INTO kept_bars (series, ts, open, high, low, close, volume_24h, n_ticks, n_doubtful, details,
    first_commit, last_commit)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** `firstCommit`: the first that wrote one of its ticks; `lastCommit`: the last that may have changed one. */
function keepBar(
  transaction: Transaction,
  series: number,
  hour: Micros,
  bar: BarFigures,
  firstCommit = transaction.commit,
  lastCommit = transaction.commit,
): void {
  const { open, high, low, close, volume, ticks, doubtful } = bar;
  const figures = [open, high, low, close, volume, ticks, doubtful, formatDigits(bar)];
  transaction.run(keepSql, [series, hour, ...figures, firstCommit, lastCommit]);
  transaction.highWaterMarks.staleHours.delete(series);
}

/** The digits of a bar as its row stores them, in the order of the columns. */
export function formatDigits({ digits }: BarFigures): string | null {
  const { open, high, low, close, volume_24h } = digits;
  const text = digits === emptyDetails ? "{}" : JSON.stringify({ open, high, low, close, volume_24h });
  return text === "{}" ? null : text;
}

/**
 * The bars of a page whose range had no ticks before: add its plain ticks in ascending order, then finish. Keeps the hours
 * that the page contains whole, and marks the first and the last. Mark the hours of other ticks after that.
 */
export class PageBars {
  readonly #transaction: Transaction;
  readonly #series: number;
  /** With their bars; without one: the page may lack ticks of the hour. */
  readonly #hours: [Micros, BarFigures | undefined][] = [];
  readonly #bar = new BarAggregate();
  #hour = Number.NaN;
  /** Nothing can be missing in the hour. */
  #isWhole = false;

  constructor(transaction: Transaction, series: number) {
    this.#transaction = transaction;
    this.#series = series;
  }

  /** Plain: the figures are exact doubles, and there is no remark. */
  add(ts: Micros, price: number, volume: number): void {
    if (!(ts < this.#hour + HOUR)) this.#beginHour(ts);
    this.#bar.addPlainTick(price, volume);
  }

  finish(): void {
    // Ticks after the page's last one may be stored already.
    this.#isWhole = false;
    this.#endHour();
    // Newest first, as the key is ordered: pages arrive in this order too, and fill the file's pages to the end.
    for (const [hour, bar] of this.#hours.reverse()) {
      if (bar === undefined) markStale(this.#transaction, this.#series, hour);
      else keepBar(this.#transaction, this.#series, hour, bar);
    }
  }

  #beginHour(ts: Micros): void {
    this.#endHour();
    this.#hour = startOfHour(ts);
    this.#isWhole = this.#hours.length > 0 || ts === this.#hour;
  }

  #endHour(): void {
    const bar = this.#bar.finish();
    if (bar) this.#hours.push([this.#hour, this.#isWhole ? bar : undefined]);
  }
}

/** Stale bars of hours that are over: another would be stale again with the next tick. */
const staleSql = "FROM kept_bars WHERE n_ticks IS NULL AND ts <= ?";

export function hasStaleBars(connection: SqlRunner, now: Micros): boolean {
  return connection.findRow(`SELECT 1 ${staleSql} LIMIT 1`, [now - HOUR]) !== undefined;
}

/** Computes stale bars, the newest first. Returns how many: fewer than `limit` if none is left. */
export function computeStaleBars(transaction: Transaction, limit: number): number {
  const stale = transaction.tuples<readonly [number, Micros]>(
    `SELECT series, ts ${staleSql} ORDER BY ts DESC LIMIT ?`,
    [transaction.now - HOUR, limit],
  );
  const remove = transaction.statement("DELETE FROM kept_bars WHERE series = ? AND ts = ?");
  const first = transaction.statement<number>(firstCommitSql).pluck();
  // Usually nothing else is in the transaction: then the ticks are those of the commit before.
  const last = transaction.commit - (transaction.journal.isEmpty ? 1 : 0);
  for (const [series, hour] of stale) {
    const bar = computeBar(transaction, series, hour);
    if (bar === undefined) {
      remove.run([series, hour]);
      transaction.highWaterMarks.staleHours.delete(series);
    } else keepBar(transaction, series, hour, bar, first.get([series, hour, hour + HOUR]), last);
  }
  return stale.length;
}

type TickRow = readonly [price: number, volume: number | null, details: string | null];

const pricedTicks = "FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? AND price IS NOT NULL";
const ticksSql = `SELECT price, volume, details ${pricedTicks} ORDER BY ts`;
const firstCommitSql = `SELECT min(ifnull(since, 0)) ${pricedTicks}`;

/** The bar of an hour from its ticks; undefined if none has a price. */
export function computeBar(connection: SqlRunner, series: number, hour: Micros): BarFigures | undefined {
  const bar = new BarAggregate();
  const rows = connection.tuples<TickRow>(ticksSql, [series, hour, hour + HOUR]);
  for (const [price, volume, details] of rows) {
    if (details === null) bar.addPlainTick(price, volume);
    else bar.add(toTickFigures(price, volume, parseRowDetails(details)));
  }
  return bar.finish();
}
