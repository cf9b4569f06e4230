import type { GapRow } from "../status/gap-state.ts";

/** The order of the parts in a `CellRun`. Time in none of these states was never selected. */
export const cellStates = ["covered", "unconfirmed", "open", "lost"] as const;
export type CellState = (typeof cellStates)[number];

/** A run of equal columns: their number, and the part of each state in whole percents, in the order of `cellStates`. */
export type CellRun = readonly [columns: number, ...parts: number[]];

/** One ledger key in the heat map. */
export interface HeatmapRow {
  readonly index_id: string | null;
  readonly name: string | null;
  /** What the addresses of pages call it; null: it has no bars. */
  readonly slug: string | null;
  readonly runs: readonly CellRun[];
}

/** The length of one column. */
export type HeatmapStep = "hour" | "day" | "month";

/** The ledger keys of one stream and index type. */
export interface HeatmapGroup {
  /** `index_ticks:GWA`; `market_caps:` without an index type. */
  readonly key: string;
  readonly stream: string;
  readonly index_type: string | null;
  readonly step: HeatmapStep;
  /** How many ledger keys there are, and how many of them have no gap. */
  readonly lines: number;
  readonly whole: number;
  /** The average of all keys. */
  readonly summary: readonly CellRun[];
  /** How many ledger keys the options select. */
  readonly matches: number;
  /** Those with gaps first, then by market cap rank. */
  readonly rows: readonly HeatmapRow[];
}

/** The heat map as the dashboard's API serves it. */
export interface HeatmapResult {
  readonly generated_at: string;
  /** The labels of the columns by step. */
  readonly columns: Readonly<Record<HeatmapStep, readonly string[]>>;
  readonly groups: readonly HeatmapGroup[];
}

/** A series by its key. */
export interface SeriesId {
  readonly index_type: string;
  readonly index_id: string;
}

/** One series of the ledger that has ticks or daily bars. */
export interface SeriesMatch extends SeriesId {
  readonly name: string;
  /** What the addresses of pages call it: `BTC`, `BTC-USD`; `GWA:<id>` if a better-known series has its name. */
  readonly slug: string;
  readonly has_ticks: boolean;
  /** `exact`: this is what was asked for; `part`: the name begins with it or contains it; `similar`: nothing has this name. */
  readonly match: "exact" | "part" | "similar";
}

/** All gaps of one ledger key with the same state and reason. `lost_at`: when the first of them leaves the service's window. */
export interface GapSummary extends Omit<GapRow, "from_ts" | "to_ts" | "state"> {
  readonly state: "open" | "lost";
  readonly ranges: number;
  readonly seconds: number;
}

/** Open gaps before lost ones, the longest first. What is `unconfirmed` is left out. */
export interface GapSummaryResult {
  readonly generated_at: string;
  /** How many summaries there are of each state in total, before the limit. */
  readonly open: number;
  readonly lost: number;
  readonly parts: readonly GapSummary[];
  /** How many ledger keys were looked at: without one, nothing is proven. */
  readonly lines: number;
}
