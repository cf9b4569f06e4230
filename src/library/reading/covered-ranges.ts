import type { RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { intersect, normalise, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { KeyedSeries } from "./series-names.ts";

const coveredSql = `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges
  WHERE stream = ? AND series IN (?, ?) AND proof <> 'lost' AND from_ts < ? AND to_ts > ? ORDER BY from_ts`;

/**
 * What the ledger covers of a range. Ask with ascending timestamps: it reads the list once, while the views seek in the ledger
 * for every row.
 */
export class CoveredRanges {
  readonly #ranges: TimeRanges;
  #next = 0;

  constructor(
    connection: Connection,
    stream: RowStream,
    { ledgerKeys, over }: Pick<KeyedSeries, "ledgerKeys" | "over">,
    { from, to }: TimeRange,
  ) {
    const read = (stream: RowStream, keys: KeyedSeries["ledgerKeys"]) =>
      normalise(connection.rows<TimeRange>(coveredSql, [stream, ...keys, to, from]));
    const own = read(stream, ledgerKeys);
    this.#ranges = over ? intersect(own, read(over.stream, over.ledgerKeys)) : own;
  }

  contains(ts: Micros): boolean {
    const range = this.#seek(ts);
    return range !== undefined && range.from <= ts;
  }

  /** The covered microseconds of [from, to). */
  measure(from: Micros, to: Micros): Micros {
    let covered = 0;
    this.#seek(from);
    for (let at = this.#next; at < this.#ranges.length; at++) {
      const range = this.#ranges[at] as TimeRange;
      if (range.from >= to) break;
      covered += Math.min(range.to, to) - Math.max(range.from, from);
    }
    return covered;
  }

  /** The first range that ends after `ts`. */
  #seek(ts: Micros): TimeRange | undefined {
    while ((this.#ranges[this.#next]?.to ?? Number.POSITIVE_INFINITY) <= ts) this.#next++;
    return this.#ranges[this.#next];
  }
}
