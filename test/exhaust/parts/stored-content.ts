import type { Micros } from "../../../src/model/time.ts";
import type { PendingClaim, Proof, SettledRange, StoredSeries } from "../../../src/rule/answer.ts";
import { storedSeries } from "../../support/rule/stored-series.ts";
import { isIn, type Ledger } from "../memory-ledger.ts";

/** A small warehouse: its rows, its ledger, and since when the series is selected. */
export interface StoredContent {
  readonly served: readonly Micros[];
  readonly previews: readonly Micros[];
  readonly ledger: Ledger;
  readonly targetStart?: Micros | undefined;
}

/** As the rule reads it. REST has published everything, so that no bound but the page's own counts. */
export function toStoredSeries({ served, ...content }: StoredContent): StoredSeries {
  const published = { publication: { publishedTo: Infinity }, othersTo: Infinity };
  const stored = storedSeries({ rows: served, ...content, ...published });
  return {
    ...stored,
    newestLive: () => undefined,
    rowsBeside: (range, timestamps) => {
      if (!timestamps.every(Number.isInteger)) throw new Error("the warehouse looks for whole numbers");
      return stored.rowsBeside(range, timestamps);
    },
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
