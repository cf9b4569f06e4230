import type { Micros } from "../model/instant.ts";
import type { WalkedStream } from "../model/series.ts";
import type { Connection } from "./connection.ts";
import type { LedgerLine } from "./ledger.ts";
import { UNSERVED } from "./unserved.ts";

/** How far a line that follows the present is settled. */
export interface FollowedHead {
  readonly line: LedgerLine & { readonly stream: WalkedStream };
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** Nothing is settled from here on. */
  readonly from: Micros;
  /** Nothing has ever been settled of it. */
  readonly isNew: boolean;
  /** The service's last word was that it has no such index. */
  readonly isUnserved: boolean;
}

interface Row {
  readonly series: number;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  readonly wantedFrom: Micros;
  readonly settledTo: Micros | null;
  readonly reason: string | null;
}

const headsSql = (
  narrowed: string,
) => `SELECT w.series, s.index_type AS indexType, s.index_id AS indexId, s.name,
    w.from_ts AS wantedFrom, g.to_ts AS settledTo, g.reason
  FROM wanted_ranges w CROSS JOIN series s ON s.series = w.series
    LEFT JOIN settled_ranges g ON g.stream = w.stream AND g.series = w.series AND g.from_ts =
      (SELECT max(l.from_ts) FROM settled_ranges l WHERE l.stream = w.stream AND l.series = w.series)
  WHERE w.stream = ? ${narrowed} AND w.to_ts IS NULL AND w.observed = 0 ORDER BY w.series`;
const allSql = headsSql("");
const oneSql = headsSql("AND w.series = ?");

/** The heads of all lines of a stream that follow the present, or of one: a seek each. */
export function followedHeads(connection: Connection, stream: WalkedStream, series?: number): FollowedHead[] {
  const rows = (
    series === undefined
      ? connection.statement(allSql).all([stream])
      : connection.statement(oneSql).all([stream, series])
  ) as Row[];
  return rows.map(({ series, indexType, indexId, name, wantedFrom, settledTo, reason }) => ({
    line: { stream, series },
    indexType,
    indexId,
    name,
    from: Math.max(wantedFrom, settledTo ?? wantedFrom),
    isNew: settledTo === null,
    isUnserved: reason === UNSERVED,
  }));
}
