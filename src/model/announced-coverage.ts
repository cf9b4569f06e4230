import type { GapState } from "./status/gap-state.ts";
import { formatTimestamp, type Micros, parseTimestamp } from "./time.ts";
import type { TimeRange } from "./time-range.ts";

/*
 * What `mds-sync serve` says about a page beyond its records, in headers: the service itself sends none of them. A mirror, which is
 * a warehouse that syncs from a `serve`, copies the ledger with the rows.
 */

/** `mds-sync/VERSION`: only then are the other headers believed. */
export const SERVE_PRODUCT = "mds-sync/";
export const COVERAGE_HEADER = "x-mds-coverage";
/** Where the oldest intraday history begins. */
export const WINDOW_HEADER = "x-mds-window";

/** A range of which the page proves no records. Everything else that it spans is covered. */
export interface AnnouncedRange extends TimeRange {
  /** Those of the view `gaps`; `empty`: there are no records. */
  readonly state: GapState | "empty";
  readonly reason: string | null;
}

/** Whether the sender proves nothing about a range of this state: it may get records. */
export const isUnproven = ({ state }: { readonly state: AnnouncedRange["state"] | "covered" }) =>
  state === "open" || state === "unconfirmed";

/** What the headers of a response of `mds-sync serve` say. */
export interface AnnouncedCoverage {
  /** Undefined: there is no intraday history yet. */
  readonly windowStart: Micros | undefined;
  readonly ranges: readonly AnnouncedRange[];
}

/** `open from=… to=…, lost from=… to=… reason="aged out"`; undefined without a range. */
export function formatAnnouncedRanges(ranges: readonly AnnouncedRange[]): string | undefined {
  const notes = ranges.map(({ from, to, state, reason }) => {
    const range = `${state} from=${formatTimestamp(from)} to=${formatTimestamp(to)}`;
    return reason === null ? range : `${range} reason="${reason.replaceAll(/[^ -~]|"/g, "_")}"`;
  });
  return notes.length === 0 ? undefined : notes.join(", ");
}

const rangePattern = /^(open|unconfirmed|lost|empty) from=(\S+) to=([^\s,]+)(?: reason="([^"]*)")?(?:, |$)/;
/** What cannot be read proves nothing: then everything is open. */
const everything: AnnouncedRange = { from: 0, to: Number.MAX_SAFE_INTEGER, state: "open", reason: null };

function parseAnnouncedRanges(header: string): readonly AnnouncedRange[] {
  const ranges: AnnouncedRange[] = [];
  for (let rest = header; rest !== ""; ) {
    const [text = "", state, fromText = "", toText = "", reason = null] = rangePattern.exec(rest) ?? [];
    const [from, to] = [parseTimestamp(fromText), parseTimestamp(toText)];
    if (from === undefined || to === undefined || from >= to) return [everything];
    ranges.push({ from, to, state: state as AnnouncedRange["state"], reason });
    rest = rest.slice(text.length);
  }
  return ranges;
}

/** Undefined: the response is not from `mds-sync serve`. */
export function parseAnnouncedCoverage(
  header: (name: string) => string | undefined,
): AnnouncedCoverage | undefined {
  if (!header("server")?.startsWith(SERVE_PRODUCT)) return undefined;
  return {
    windowStart: parseTimestamp(header(WINDOW_HEADER) ?? ""),
    ranges: parseAnnouncedRanges(header(COVERAGE_HEADER) ?? ""),
  };
}
