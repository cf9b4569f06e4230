import { historyStreams } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { KeyRanges } from "./ledger.ts";
import { type KeyGap, readStreamGaps } from "./series-gaps.ts";
import { readPresentTs } from "./targets.ts";

/** A range of a ledger key of a history stream. */
type HistoryRange =
  | KeyGap
  | (TimeRange & { readonly state: "covered"; readonly reason: null; readonly lostAt: null });

type CoveredTuple = readonly [series: number, from: Micros, to: Micros];

const coveredSql = `SELECT series, from_ts, to_ts FROM settled_ranges
  WHERE stream = ? AND proof <> 'lost' ORDER BY series, from_ts`;

/** Every key of the history streams with its ranges: what is covered, and the rows of the view `gaps`. */
export function* readHistoryRanges(connection: Connection): Generator<KeyRanges<HistoryRange>> {
  const now = readPresentTs(connection);
  for (const stream of historyStreams) {
    const covered = Map.groupBy(connection.tuples<CoveredTuple>(coveredSql, [stream]), ([series]) => series);
    const gaps = readStreamGaps(connection, stream, now);
    for (const series of new Set([...covered.keys(), ...gaps.keys()])) {
      const ranges = [...(covered.get(series) ?? []).map(toCovered), ...(gaps.get(series) ?? [])];
      yield { key: { stream, series }, ranges };
    }
  }
}

const toCovered = ([, from, to]: CoveredTuple): HistoryRange => ({
  ...{ from, to, state: "covered", reason: null, lostAt: null },
});
