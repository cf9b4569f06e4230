import { hasHistory, type RowStream, type Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import { newestRow } from "./row-parts.ts";

/**
 * Caches the newest stored or settled timestamp per key. A live tick above it is certainly new and needs no lookup:
 * thousands of ticks arrive at once, every 30 seconds.
 */
export class HighWaterMarks {
  /** The last hour of each series whose kept bar is known to be stale: see kept-bars.ts. */
  readonly staleHours = new Map<number, Micros>();
  readonly #connection: Connection;
  readonly #marks = new Map<Stream, Map<number, Micros>>();
  /** The newest row from REST of each series of ticks, or a later time. */
  readonly #restMarks = new Map<number, Micros>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Whether nothing is stored or settled at `ts` or later. */
  isAbove(stream: RowStream, key: number, ts: Micros): boolean {
    let marks = this.#marks.get(stream);
    if (!marks) {
      marks = new Map();
      this.#marks.set(stream, marks);
    }
    let mark = marks.get(key);
    if (mark === undefined) {
      mark = this.#readMark(stream, key);
      marks.set(key, mark);
    }
    return ts > mark;
  }

  /** Call after something was stored or settled at `ts`. */
  raise(stream: Stream, key: number, ts: Micros): void {
    const marks = this.#marks.get(stream);
    const mark = marks?.get(key);
    if (mark !== undefined && mark < ts) marks?.set(key, ts);
  }

  /** Whether REST has stored no tick at `ts` or later. */
  isAboveRest(series: number, ts: Micros): boolean {
    let mark = this.#restMarks.get(series);
    if (mark === undefined) {
      const sql = "SELECT ts FROM index_tick_rows WHERE series = ? AND source = 0 ORDER BY ts DESC LIMIT 1";
      mark = this.#connection.findValue<Micros>(sql, [series]) ?? Number.NEGATIVE_INFINITY;
      this.#restMarks.set(series, mark);
    }
    return ts > mark;
  }

  /** Call after REST has stored a tick at `ts`. */
  raiseRest(key: number, ts: Micros): void {
    const mark = this.#restMarks.get(key);
    if (mark !== undefined && mark < ts) this.#restMarks.set(key, ts);
  }

  clear(): void {
    this.#marks.clear();
    this.#restMarks.clear();
    this.staleHours.clear();
  }

  #readMark(stream: RowStream, key: number): Micros {
    const newest = this.#connection.value<Micros | null>(`SELECT ${newestRow(stream, "?", "true")}`, [key]);
    const settled = hasHistory(stream)
      ? this.#connection.findValue<Micros>(
          "SELECT to_ts - 1 FROM settled_ranges WHERE stream = ? AND series = ? ORDER BY from_ts DESC LIMIT 1",
          [stream, key],
        )
      : undefined;
    return Math.max(newest ?? Number.NEGATIVE_INFINITY, settled ?? Number.NEGATIVE_INFINITY);
  }
}
