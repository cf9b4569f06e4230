import type { Micros } from "../../model/time.ts";
import type { CellRun } from "./heatmap-grid.ts";

/** One series, or one subscription of a latest-only stream, in the heat map. */
export interface CoverageRow {
  readonly index_id: string | null;
  readonly name: string | null;
  readonly runs: readonly CellRun[];
}

/** What one column of the heat map stands for. */
export type Step = "hour" | "day" | "month";

/** The lines of one stream and index family. */
export interface CoverageGroup {
  /** `index_ticks:GWA`; `market_caps:` without a family. */
  readonly key: string;
  readonly stream: string;
  readonly index_type: string | null;
  readonly step: Step;
  /** How many lines there are, and how many of them lack nothing. */
  readonly lines: number;
  readonly whole: number;
  /** All of them together. */
  readonly summary: readonly CellRun[];
  /** The best known first. */
  readonly rows: readonly CoverageRow[];
}

/** Rows of each group that are worth their bytes, unless somebody asks for more. */
export interface RowsShown {
  readonly usual: number;
  readonly byGroup: ReadonlyMap<string, number>;
}

/** What one line lacks for one reason. */
export interface MissingPart {
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
  /** When the first of it leaves the service's window. */
  readonly lost_at: string | null;
}

/** The heat map and what is missing, as they are served. */
export interface CoveragePicture {
  readonly generated_at: string;
  /** The labels of the columns, by step. */
  readonly columns: Readonly<Record<Step, readonly string[]>>;
  readonly groups: readonly CoverageGroup[];
}

/** Open before lost, the longest first. A head that only awaits its confirmation is left out. */
export interface MissingPicture {
  readonly generated_at: string;
  /** How many parts there are of each, however many are shown. */
  readonly open: number;
  readonly lost: number;
  readonly parts: readonly MissingPart[];
}

/** One index whose ticks are followed or stored. */
export interface SeriesFound {
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
}

/** One line of the ledger. */
export interface LineRow {
  readonly stream: string;
  readonly series: number;
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
  /** The first moment that the ledger knows of. */
  readonly first: Micros;
}

/** Only the last part is the service's own text, so that no two lines share a key. */
export function lineKey(line: {
  stream: string;
  index_type: string | null;
  index_id: string | null;
}): string {
  return `${line.stream}\n${line.index_type ?? ""}\n${line.index_id ?? ""}`;
}
