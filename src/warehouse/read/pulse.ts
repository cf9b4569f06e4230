import type { PulseResult, PulseTick } from "../../model/answers/ticks.ts";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import { readStreamStates } from "../rows/stream-stats.ts";
import type { Connection } from "../sqlite/connection.ts";

/** Reads what has been committed since it was last asked. */
export class PulseReader {
  readonly #newestTs = new Map<string, Micros>();
  #version: number | undefined;
  #rows = "";

  /** Undefined if no other connection has committed. The first one has no ticks: pages have just read their state. */
  read(reader: Connection, now: Micros): PulseResult | undefined {
    const version = Number(reader.database.pragma("data_version", { simple: true }));
    if (version === this.#version) return undefined;
    const isFirst = this.#version === undefined;
    this.#version = version;
    const rows = Object.fromEntries(readStreamStates(reader).map((state) => [state.stream, state.rows]));
    // The ledger is written more often than rows are.
    const previous = this.#rows;
    this.#rows = JSON.stringify(rows);
    const hasRows = this.#rows !== previous;
    return { time: formatTimestamp(now), rows, ticks: hasRows ? this.#readMoved(reader, isFirst) : [] };
  }

  #readMoved(reader: Connection, isFirst: boolean): PulseTick[] {
    const ticks = reader
      .statement<PulseTick>(
        "SELECT index_type, index_id, ts, price FROM latest_index_ticks WHERE price IS NOT NULL",
      )
      .raw()
      .all();
    return ticks.filter(([indexType, indexId, ts]) => {
      const key = `${indexType} ${indexId}`;
      const hasMoved = ts > (this.#newestTs.get(key) ?? 0);
      if (hasMoved) this.#newestTs.set(key, ts);
      return hasMoved && !isFirst;
    });
  }
}
