import { type GapRow, SETTLING_REASON } from "../../model/status/gap-state.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { NOT_PUBLISHED_REASON } from "../../warehouse/coverage/publication.ts";
import { namedKeyText } from "../../warehouse/coverage/series-queries.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import { readGapReport } from "../../warehouse/read/gap-report.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SourcedSeries } from "./series-names.ts";

/** A series in one of its streams. */
type StreamedSeries = Pick<SourcedSeries, "series" | "stream">;

/** The series, and those in whose price they are. */
export function withDivisors(all: readonly StreamedSeries[]): StreamedSeries[] {
  const divisors = new Set(all.flatMap(({ series: { over } }) => over ?? []));
  return [...all, ...[...divisors].map((series) => ({ series, stream: series.stream }))];
}

/** Reasons of a head that time alone completes. */
const waitingReasons: ReadonlySet<string> = new Set([SETTLING_REASON, NOT_PUBLISHED_REASON]);

/**
 * The end of the part that can be complete by now: where the first head begins that only waits for the service. The present,
 * if there is no such head.
 */
export function findSettledEnd(connection: Connection, all: readonly StreamedSeries[], from: Micros): Micros {
  const now = readPresentTs(connection);
  const gaps = findMissing(connection, all, { from: Math.min(from, now), to: now });
  const starts = [...Map.groupBy(gaps, namedKeyText).values()].map((own) =>
    own.reduceRight(
      (start, { from_ts, to_ts, reason }) => (to_ts >= start && waitingReasons.has(reason) ? from_ts : start),
      now,
    ),
  );
  return Math.min(now, ...starts);
}

/** Everything that the series lack of the range, including what the ledger does not mention. */
export function findMissing(
  connection: Connection,
  all: readonly StreamedSeries[],
  range: TimeRange,
): GapRow[] {
  if (range.from >= range.to) return [];
  return [...Map.groupBy(withDivisors(all), ({ stream }) => stream)].flatMap(([stream, members]) => {
    const series = members.map(({ series: { named } }) => named);
    return readGapReport(connection, { streams: [stream], series }, range).gaps;
  });
}
