import { formatTimestamp, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";

export interface PulseOptions {
  /** From the last pulse; 0 for the first. */
  readonly version: number;
  /** Only ticks that are newer: `ts` of the last pulse. */
  readonly since: Micros;
}

/** What pages need to know about commits: which streams grew, and the newest price of each series that moved. */
export interface PulseResult {
  /** Changes whenever another connection has committed. */
  readonly version: number;
  /** The newest tick among all series. */
  readonly newest: Micros;
  readonly time: string;
  /** Rows by stream: a page asks again if the number of its stream has changed. */
  readonly rows: Readonly<Record<string, number>>;
  readonly ticks: readonly (readonly [indexType: string, indexId: string, ts: Micros, price: number])[];
}

/** A first pulse has only the newest moment: pages have just read their state. */
const ticksSql = `SELECT index_type, index_id, ts, price FROM latest_index_ticks
  WHERE ts > ? AND price IS NOT NULL`;

/** Undefined if nothing has been committed since `version`. */
export function readPulse(
  reader: Connection,
  { version, since }: PulseOptions,
  now: Micros,
): PulseResult | undefined {
  const current = Number(reader.database.pragma("data_version", { simple: true }));
  if (current === version) return undefined;
  return reader.database.transaction(() => {
    const states = reader
      .statement<{ stream: string; rows: number; newest_ts: Micros | null }>(
        "SELECT stream, rows, newest_ts FROM stream_states",
      )
      .all();
    const newest = states.find(({ stream }) => stream === "index_ticks")?.newest_ts ?? 0;
    const hasMoved = since > 0 && newest > since;
    return {
      version: current,
      newest,
      time: formatTimestamp(now),
      rows: Object.fromEntries(states.map(({ stream, rows }) => [stream, rows])),
      ticks: hasMoved ? reader.statement<PulseResult["ticks"][number]>(ticksSql).raw().all([since]) : [],
    };
  })();
}
