import { Failure } from "../../model/failure.ts";
import { gapState, SETTLING_REASON } from "../../model/status/gap-state.ts";
import type { HistoryStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { GapRow } from "../../warehouse/coverage/gap-row.ts";
import { namedKeyText } from "../../warehouse/coverage/ledger-keys.ts";
import { NOT_PUBLISHED_REASON } from "../../warehouse/coverage/publication.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import type { NamedSeries } from "../../warehouse/lookups/resolve-names.ts";
import { readGapReportInRange } from "../../warehouse/read/gap-report.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SeriesInfo } from "../rows.ts";

/** A series in one of its two streams. */
export interface StreamedSeries {
  readonly series: SeriesInfo;
  readonly stream: HistoryStream;
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
  return [...Map.groupBy(all, ({ stream }) => stream)].flatMap(([stream, members]) => {
    const series = members.map(
      ({ series: { index_id, index_type, name } }): NamedSeries => ({
        id: index_id,
        indexType: index_type,
        name,
      }),
    );
    return readGapReportInRange(connection, { streams: [stream], series }, range).gaps;
  });
}

/** The range is not whole; `gaps` lists what is missing. */
export class IncompleteFailure extends Failure {
  readonly gaps: readonly GapRow[];

  constructor(gaps: readonly GapRow[], names: readonly string[]) {
    const missing = gaps.length === 1 ? "1 range is missing" : `${gaps.length} ranges are missing`;
    super(`not complete: ${names.join(", ")}: ${gaps.length === 0 ? "the ledger has nothing" : missing}`, {
      code: "not_whole",
      remedy: remedyFor(new Set(gaps.map(({ reason }) => reason))),
    });
    this.name = "IncompleteFailure";
    this.gaps = gaps;
  }
}

/** What an incomplete range needs, by the reasons of its gaps. */
export function remedyFor(reasons: ReadonlySet<string>): string {
  if (reasons.has("pending")) return "`mds-sync backfill` fetches what is open";
  if (reasons.has("not selected"))
    return "select the series, or more days of it (sync.intraday.days), then `mds-sync backfill`";
  if (reasons.has(NOT_PUBLISHED_REASON))
    return "the service has not published its newest records yet; run `mds-sync backfill` later";
  if (reasons.has(SETTLING_REASON))
    return "its head awaits confirmation; try again later, or with an earlier --to";
  if ([...reasons].some((reason) => gapState(reason) === "unconfirmed"))
    return "the service must repeat that it has nothing there: the daemon or the next `mds-sync backfill` asks again";
  return "see the reason of each gap; a shorter range may be complete";
}

/** Throws if something is missing. */
export function assertNothingMissing(gaps: readonly GapRow[]): void {
  if (gaps.length === 0) return;
  const names = new Set(gaps.map(({ name, index_id }) => name ?? index_id ?? ""));
  throw new IncompleteFailure(gaps, [...names]);
}
