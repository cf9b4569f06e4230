import { hasHistory, type RowStream } from "../../model/streams.ts";
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
  /** By stream; `rest`: the newest row from REST of each series of ticks, or a later time. */
  readonly #marks = new Map<RowStream | "rest", Map<number, Micros>>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Whether nothing is stored or settled at `ts` or later. */
  isAbove(stream: RowStream, key: number, ts: Micros): boolean {
    return ts > this.#find(stream, key, () => this.#readMark(stream, key));
  }

  /** Whether REST has stored no tick at `ts` or later. */
  isAboveRest(series: number, ts: Micros): boolean {
    const sql = "SELECT ts FROM index_tick_rows WHERE series = ? AND source = 0 ORDER BY ts DESC LIMIT 1";
    return ts > this.#find("rest", series, () => this.#connection.findValue<Micros>(sql, [series]));
  }

  /** Call after something was stored or settled at `ts`; `rest`: after REST has stored a tick there. */
  raise(stream: RowStream | "rest", key: number, ts: Micros): void {
    const marks = this.#marks.get(stream);
    const mark = marks?.get(key);
    if (mark !== undefined && mark < ts) marks?.set(key, ts);
  }

  clear(): void {
    this.#marks.clear();
    this.staleHours.clear();
  }

  #find(stream: RowStream | "rest", key: number, read: () => Micros | undefined): Micros {
    const known = this.#marks.get(stream)?.get(key);
    if (known !== undefined) return known;
    const mark = read() ?? Number.NEGATIVE_INFINITY;
    const marks = this.#marks.get(stream) ?? new Map<number, Micros>();
    this.#marks.set(stream, marks.set(key, mark));
    return mark;
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
