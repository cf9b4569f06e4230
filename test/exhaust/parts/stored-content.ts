import type { Micros } from "../../../src/model/time.ts";
import {
  NO_LONGER_SERVED,
  NOTHING_OLDER,
  type PendingClaim,
  type Proof,
  type SettledRange,
  type StoredSeries,
} from "../../../src/rule/answer.ts";
import { isIn, type Ledger, touchedBy } from "../memory-ledger.ts";

/** A small warehouse: its rows, its ledger, and since when the series is selected. */
export interface StoredContent {
  readonly served: readonly Micros[];
  readonly previews: readonly Micros[];
  readonly ledger: Ledger;
  readonly targetStart?: Micros | undefined;
}

/** What a record at `ts` disproves: each end above it; all that is no longer served, if a part of it is above. */
export function endsAbove(ledger: Ledger, ts: Micros): Ledger {
  const hasReturned = ledger.some(({ reason, to }) => reason === NO_LONGER_SERVED && to > ts);
  return ledger.filter(
    ({ reason, to }) => (reason === NOTHING_OLDER && to > ts) || (reason === NO_LONGER_SERVED && hasReturned),
  );
}

/** As the rule reads it. REST has published everything, so that no bound but the page's own counts. */
export function toStoredSeries({ served, previews, ledger, targetStart }: StoredContent): StoredSeries {
  const rows = [
    ...served.map((ts) => ({ ts, isPreview: false })),
    ...previews.map((ts) => ({ ts, isPreview: true })),
  ].sort((a, b) => a.ts - b.ts);
  return {
    settledRanges: (range) => touchedBy(ledger, range),
    rowsBeside: (range, timestamps) => {
      if (!timestamps.every(Number.isInteger)) throw new Error("the warehouse looks for whole numbers");
      return rows.filter(({ ts }) => isIn(range, ts) && !timestamps.includes(ts));
    },
    newestRow: (before) => rows.findLast(({ ts }) => ts < before)?.ts,
    newestServed: (range) => rows.findLast(({ ts, isPreview }) => !isPreview && isIn(range, ts))?.ts,
    newestLive: () => undefined,
    endsAbove: (ts) => endsAbove(ledger, ts),
    targetStart,
    publication: { publishedTo: Number.POSITIVE_INFINITY, askedAt: 0, askedTo: 0, quietMargin: 0 },
    hasOtherPublished: () => true,
    servesRunningDay: false,
  };
}

export function settled(
  from: Micros,
  to: Micros,
  reason: string | null = null,
  proof: Proof = "empty",
): SettledRange {
  return { from, to, proof, reason };
}

export function hole(from: Micros, to: Micros): PendingClaim {
  const counts = { answers: 1, firstAt: 0, lastAt: 0, acceptedAt: null };
  return { kind: "withdrawn", range: { from, to }, subject: [], ...counts };
}

/** How each moment of a short time is settled; undefined: it is open. */
export type Moments = readonly (string | undefined)[];

export function settledAs(proof: Proof, reason: string | null): string {
  return reason === null ? proof : `${proof} ${reason}`;
}

export function toLedger(moments: Moments): Ledger {
  const ledger: SettledRange[] = [];
  for (const [ts, state] of moments.entries()) {
    if (state === undefined) continue;
    const proof = state.split(" ", 1)[0] as Proof;
    const reason = proof === "rows" ? null : state.slice(proof.length + 1);
    const last = ledger.at(-1);
    if (last?.to === ts && moments[ts - 1] === state) ledger.splice(-1, 1, { ...last, to: ts + 1 });
    else ledger.push({ from: ts, to: ts + 1, proof, reason });
  }
  return ledger;
}

export function toMoments(ledger: Ledger, length: number): Moments {
  return Array.from({ length }, (_, ts) => {
    const settled = ledger.find((range) => isIn(range, ts));
    return settled && settledAs(settled.proof, settled.reason);
  });
}
