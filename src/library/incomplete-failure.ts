import { Failure } from "../model/failure.ts";
import type { GapRow } from "../model/status/gap-state.ts";
import { gapState, SETTLING_REASON } from "../model/status/gap-state.ts";
import { NOT_PUBLISHED_REASON } from "../warehouse/coverage/publication.ts";

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
