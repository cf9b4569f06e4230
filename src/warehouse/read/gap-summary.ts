import type { GapSummary, GapSummaryResult } from "../../model/answers/heatmap.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { KnownLedgerKey } from "../coverage/ledger-keys.ts";
import type { KeyRange } from "../coverage/series-gaps.ts";

interface GapSum extends TimeRange {
  readonly key: KnownLedgerKey;
  readonly state: GapSummary["state"];
  readonly reason: string;
  readonly ranges: number;
  readonly micros: number;
  readonly lostAt: Micros | null;
}

/** Sums gaps by key, state and reason. What is `unconfirmed` is not for it. */
export class GapSums {
  readonly #byKey = new Map<KnownLedgerKey, GapSum[]>();

  addAll(key: KnownLedgerKey, ranges: readonly KeyRange[]): void {
    for (const { state, reason, ...range } of ranges)
      if (state === "open" || state === "lost")
        this.#add({ key, state, reason: reason ?? "unknown", ...range });
  }

  #add(gap: Omit<GapSum, "ranges" | "micros">): void {
    const { key, state, reason, from, to, lostAt } = gap;
    const own = this.#byKey.get(key);
    const at = own?.findIndex((sum) => sum.state === state && sum.reason === reason) ?? -1;
    const sum = own?.[at];
    const merged = {
      ...gap,
      ranges: (sum?.ranges ?? 0) + 1,
      micros: (sum?.micros ?? 0) + to - from,
      from: Math.min(from, sum?.from ?? from),
      to: Math.max(to, sum?.to ?? to),
      lostAt: lostAt === null ? (sum?.lostAt ?? null) : Math.min(lostAt, sum?.lostAt ?? lostAt),
    };
    if (!own) this.#byKey.set(key, [merged]);
    else if (!sum) own.push(merged);
    else own[at] = merged;
  }

  has(key: KnownLedgerKey): boolean {
    return this.#byKey.has(key);
  }

  /** The first `limit` summaries, and how many there are. */
  summarize(limit: number, now: Micros): Omit<GapSummaryResult, "lines"> {
    const sums = [...this.#byKey.values()].flat();
    const totals = { open: 0, lost: 0 };
    for (const { state } of sums) totals[state]++;
    sums.sort((a, b) => (a.state === b.state ? b.micros - a.micros : a.state === "open" ? -1 : 1));
    return { generated_at: formatTimestamp(now), ...totals, parts: sums.slice(0, limit).map(toSummary) };
  }
}

function toSummary({ key, state, reason, ranges, micros, from, to, lostAt }: GapSum): GapSummary {
  const { stream, index_type, index_id, name } = key;
  return {
    ...{ stream, index_type, index_id, name, state, reason, ranges },
    seconds: Math.round(micros / MICROS_PER_SECOND),
    from_time: formatTimestamp(from),
    to_time: formatTimestamp(to),
    lost_at: lostAt === null ? null : formatTimestamp(lostAt),
  };
}
