import { formatTimestamp } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { timestampText } from "../rest/record-text.ts";

/** A range of which ticks were not sent: `open` and `lost` as in the ledger, `filled` if they can be read by now. */
export interface Gap extends TimeRange {
  readonly state: "open" | "lost" | "filled";
  readonly reason: string;
}

interface GapSubject {
  readonly stream: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The message that announces it. */
export function gapText({ stream, labels }: GapSubject, { from, to, state, reason }: Gap): string {
  const [fromText, toText] = [formatTimestamp(from), formatTimestamp(to)];
  const range = { from: fromText, to: toText, state, reason, timestamp: timestampText(from) };
  return JSON.stringify({ event: "GAP", stream, ...labels, ...range });
}
