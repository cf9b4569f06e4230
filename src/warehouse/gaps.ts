import type { Micros } from "../model/instant.ts";
import type { Stream } from "../model/series.ts";
import type { Connection } from "./connection.ts";

/** A row of the view `gaps`. */
export interface Gap {
  readonly stream: Stream;
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly name: string | null;
  readonly from_ts: Micros;
  readonly to_ts: Micros;
  readonly from_time: string;
  readonly to_time: string;
  readonly state: "open" | "lost";
  readonly reason: string;
  readonly lost_at: string | null;
}

export interface GapFilter {
  readonly streams?: readonly Stream[];
  /** Ids or names. */
  readonly series?: readonly string[];
  /** Only gaps that reach into `[from, to)`. */
  readonly from?: Micros;
  readonly to?: Micros;
}

/** Every missing range, the oldest first. */
export function readGaps(connection: Connection, filter: GapFilter = {}): Gap[] {
  const list = (values: readonly string[] | undefined) => (values ? JSON.stringify(values) : null);
  return connection
    .statement(
      `SELECT * FROM gaps WHERE (@streams IS NULL OR stream IN (SELECT value FROM json_each(@streams)))
        AND (@series IS NULL OR index_id IN (SELECT value FROM json_each(@series))
          OR name IN (SELECT value FROM json_each(@series)))
        AND (@from IS NULL OR to_ts > @from) AND (@to IS NULL OR from_ts < @to)
      ORDER BY from_ts, stream, index_type, index_id`,
    )
    .all({
      streams: list(filter.streams),
      series: list(filter.series),
      from: filter.from ?? null,
      to: filter.to ?? null,
    }) as Gap[];
}
