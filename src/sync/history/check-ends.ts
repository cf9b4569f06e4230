import { failureCode } from "../../model/failure.ts";
import { cadenceOf, historyStreams, isDaily, WINDOW_EDGE_MARGIN_MICROS } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { computeWindowStart } from "../../warehouse/coverage/gaps.ts";
import { ledgerKeyText } from "../../warehouse/coverage/ledger.ts";
import { readHistoryEnds } from "../../warehouse/coverage/series-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SyncContext } from "../context/context.ts";
import { classifyError } from "../context/error-policy.ts";
import { runConcurrently } from "../context/retry.ts";
import { type SliceWalk, type WalkProgress, walkSlice } from "./walk-slice.ts";

/** What the service said when it was asked again whether nothing is older. */
export interface EndChecks {
  readonly asked: number;
  /** Histories with an older record: what their end had settled is open again. */
  readonly reopened: number;
  readonly unanswered: number;
}

/** The settled end of every history at `now`. An end that was found just now is a pending claim instead. */
export function planEndChecks(reader: Connection, refreshSeconds: number, now: Micros): SliceWalk[] {
  return historyStreams.flatMap((stream) =>
    readHistoryEnds(reader, stream).flatMap(({ range, ...series }): SliceWalk[] => {
      const windowStart = computeWindowStart(series.serviceWindow, now) + WINDOW_EDGE_MARGIN_MICROS;
      const from = Math.max(range.from, windowStart);
      const cadence = cadenceOf(stream, refreshSeconds);
      const urgency = isDaily(stream) ? "bars" : "history";
      const timing = { period: cadence, cadence, quietMargin: 0, isHead: false, blockedReason: null };
      return from < range.to ? [{ ...series, ...timing, range: { from, to: range.to }, urgency }] : [];
    }),
  );
}

/**
 * Asks once more below each end, with one small request. A walk stores what it finds, and one older record takes back what the
 * end had settled; the gap filler fetches the rest. A request that fails is made again the next night.
 */
export async function checkEnds(
  context: SyncContext,
  { reader, concurrency }: { readonly reader: Connection; readonly concurrency: number },
  ends: readonly SliceWalk[],
): Promise<EndChecks> {
  const { stats, log } = context;
  const failures: string[] = [];
  await runConcurrently(ends, concurrency, async (end) => {
    try {
      await walkSlice(context, end, { progress: new FirstPageOnly(end.range.from) });
    } catch (error) {
      const errorClass = classifyError(error, stats.successCount);
      if (errorClass === "stop") throw error;
      // An index that does not exist has nothing older.
      if (errorClass !== "not_found") failures.push(failureCode(error));
    }
  });
  const unanswered = failures.length;
  if (unanswered > 0)
    log.warn({ unanswered, codes: [...new Set(failures)] }, "ends of histories not checked");
  return { asked: ends.length, reopened: countReopened(reader, ends), unanswered };
}

/** By the ledger: a page of another walk may have shown the older record first. */
function countReopened(reader: Connection, ends: readonly SliceWalk[]): number {
  const settled = historyStreams.flatMap((stream) => readHistoryEnds(reader, stream));
  const settledTo = new Map(settled.map(({ key, range }) => [ledgerKeyText(key), range.to]));
  return ends.filter(({ key, range }) => (settledTo.get(ledgerKeyText(key)) ?? 0) < range.to).length;
}

/** Ends a walk after its first page, and before it if the service has nothing there. */
class FirstPageOnly implements WalkProgress {
  from: Micros;
  readonly isExploring = true;
  readonly pageSize = 1;

  constructor(from: Micros) {
    this.from = from;
  }

  extend(): void {}

  onPage(): void {
    this.from = Number.POSITIVE_INFINITY;
  }
}
