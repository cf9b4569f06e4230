import { formatTimestamp, MICROS_PER_SECOND } from "../../model/time.ts";
import type { GapRow } from "../coverage/gap-row.ts";
import { namedKeyText } from "../coverage/ledger-keys.ts";

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
}

/** The columns of a gap that a summary needs. The others cost time: SQLite formats their timestamps. */
export type UnformattedGap = Omit<GapRow, "from_time" | "to_time">;

/** Selects rows of type `UnformattedGap`. */
export const unformattedGapsSql =
  "SELECT stream, index_type, index_id, name, from_ts, to_ts, state, reason, lost_at FROM gaps";

/** One summary per key, state and reason. Heads that are still `settling` are left out. */
export function summarizeByReason(gaps: readonly UnformattedGap[]): GapSummary[] {
  const real = gaps.filter(({ reason }) => reason !== "settling");
  const groups = Map.groupBy(real, (gap) => `${gap.state} ${gap.reason}\n${namedKeyText(gap)}`);
  return [...groups.values()].map((list): GapSummary => {
    const [{ stream, index_type, index_id, name, state, reason }] = list as [UnformattedGap];
    const from = list.reduce((min, gap) => Math.min(min, gap.from_ts), Number.POSITIVE_INFINITY);
    const to = list.reduce((max, gap) => Math.max(max, gap.to_ts), 0);
    const micros = list.reduce((sum, gap) => sum + gap.to_ts - gap.from_ts, 0);
    const ends = list.flatMap(({ lost_at }) => lost_at ?? []).sort();
    return {
      ...{ stream, index_type, index_id, name, state, reason },
      ranges: list.length,
      seconds: Math.round(micros / MICROS_PER_SECOND),
      from_time: formatTimestamp(from),
      to_time: formatTimestamp(to),
      lost_at: ends[0] ?? null,
    };
  });
}
