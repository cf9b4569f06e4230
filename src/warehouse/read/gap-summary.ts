import { formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { KnownLedgerKey } from "../coverage/ledger-keys.ts";

/** All gaps of one ledger key with the same state and reason. */
export interface GapSummary {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly name: string | null;
  readonly state: "open" | "lost";
  readonly reason: string;
  readonly ranges: number;
  readonly seconds: number;
  readonly from_time: string;
  readonly to_time: string;
  /** When the first of them leaves the service's window. */
  readonly lost_at: string | null;
}

/** Open gaps before lost ones, the longest first. Heads that are still `settling` are left out. */
export interface GapSummaryResult {
  readonly generated_at: string;
  /** How many summaries there are of each state in total, before the limit. */
  readonly open: number;
  readonly lost: number;
  readonly parts: readonly GapSummary[];
  /** How many ledger keys were looked at: without one, nothing is proven. */
  readonly lines: number;
}

interface GapSum extends TimeRange {
  readonly key: KnownLedgerKey;
  readonly state: GapSummary["state"];
  readonly reason: string;
  readonly ranges: number;
  readonly micros: number;
  readonly lostAt: Micros | null;
}

/** Sums gaps by key, state and reason. Heads that are still `settling` are not for it. */
export class GapSums {
  readonly #byKey = new Map<KnownLedgerKey, GapSum[]>();

  add(gap: Omit<GapSum, "ranges" | "micros">): void {
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
