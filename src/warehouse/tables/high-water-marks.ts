import type { Stream } from "../../model/streams.ts";
import { hasHistory } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";

/** Where the rows of a stream stand, whatever they are. */
interface RowPlace {
  readonly table: string;
  readonly keyColumn: string;
  readonly timeColumn: string;
  tsOfStored(moment: number | string): Micros;
}

/**
 * Up to where each series is stored or settled, remembered by the one writer. A live tick beyond it is new for
 * certain and costs no lookup: thousands of them arrive at once, every 30 seconds.
 */
export class Frontier {
  readonly #connection: Connection;
  readonly #reached = new Map<Stream, Map<number, Micros>>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Whether nothing is stored or settled at `ts` or later. */
  isBeyond(stream: Stream, table: RowPlace, key: number, ts: Micros): boolean {
    let reached = this.#reached.get(stream);
    if (!reached) {
      reached = new Map();
      this.#reached.set(stream, reached);
    }
    let frontier = reached.get(key);
    if (frontier === undefined) {
      frontier = this.#read(stream, table, key);
      reached.set(key, frontier);
    }
    return ts > frontier;
  }

  /** Something is stored or settled at `ts`. */
  raise(stream: Stream, key: number, ts: Micros): void {
    const reached = this.#reached.get(stream);
    const frontier = reached?.get(key);
    if (frontier !== undefined && frontier < ts) reached?.set(key, ts);
  }

  forget(): void {
    this.#reached.clear();
  }

  #read(stream: Stream, { table, keyColumn, timeColumn, tsOfStored }: RowPlace, key: number): Micros {
    const newest = this.#connection
      .statement(`SELECT max(${timeColumn}) FROM ${table} WHERE ${keyColumn} = ?`)
      .pluck()
      .get([key]) as number | string | null;
    const settled = hasHistory(stream)
      ? (this.#connection
          .statement(
            "SELECT to_ts - 1 FROM settled_ranges WHERE stream = ? AND series = ? ORDER BY from_ts DESC LIMIT 1",
          )
          .pluck()
          .get([stream, key]) as Micros | undefined)
      : undefined;
    return Math.max(
      newest === null ? Number.NEGATIVE_INFINITY : tsOfStored(newest),
      settled ?? Number.NEGATIVE_INFINITY,
    );
  }
}
