import { formatMoment, MICROS_PER_MS, type Micros } from "../time.ts";

/**
 * `open`: it will be fetched; `unconfirmed`: the service must only repeat that nothing else is there; `lost`: the service no
 * longer has it.
 */
export const gapStates = ["open", "unconfirmed", "lost"] as const;
export type GapState = (typeof gapStates)[number];

/** A row of the view `gaps`. */
export interface GapRow {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly name: string | null;
  readonly from_ts: Micros;
  readonly to_ts: Micros;
  readonly from_time: string;
  readonly to_time: string;
  readonly state: GapState;
  readonly reason: string;
  /** When an open range leaves the service's window; null: never. */
  readonly lost_at: string | null;
}

/** Reason of a head that only awaits its confirmation. */
export const SETTLING_REASON = "settling";
/** Reason of what precedes a history, until the service has repeated that nothing is older. */
export const END_REASON = "end unconfirmed";
/** Reason of an index that was not found, until the service has repeated it. */
export const NOT_FOUND_REASON = "not found, unconfirmed";

/** All that the service has shown of gaps with these reasons is stored. Every other gap that is not lost is `open`. */
const unconfirmedReasons = [SETTLING_REASON, END_REASON, NOT_FOUND_REASON];

/** The state of a gap that is not lost. */
export function gapState(reason: string): "open" | "unconfirmed" {
  return unconfirmedReasons.includes(reason) ? "unconfirmed" : "open";
}

/** `gapState` in SQL. */
export const gapStateSql = (reason: string) =>
  `CASE WHEN ${reason} IN (${unconfirmedReasons.map((text) => `'${text}'`).join(", ")}) THEN 'unconfirmed' ELSE 'open' END`;

/** What the service must repeat, apart from heads: until then it is `unconfirmed`. */
export interface Confirmations {
  /** Histories of which it must repeat that nothing is older. */
  readonly starts: number;
  /** Indices of which it must repeat that they do not exist. */
  readonly not_found: number;
  /** When the last of them is asked about; null: there are none, or the settings are unknown. */
  readonly due_at: string | null;
}

/**
 * `33 series: start of history not confirmed yet; asked again at 06:07 UTC`; undefined if there are none. Without a daemon
 * (`isRunning`) the next run asks.
 */
export function describeConfirmations(
  { starts, not_found, due_at }: Confirmations,
  now: string,
  isRunning = true,
): string | undefined {
  if (starts + not_found === 0) return undefined;
  const what = [
    ...(starts > 0 ? [`${starts.toLocaleString("en")} series: start of history not confirmed yet`] : []),
    ...(not_found > 0 ? [`${not_found.toLocaleString("en")} series: not found, not confirmed yet`] : []),
  ].join(", ");
  const due = due_at !== null && due_at > now ? minuteText(due_at, now) : undefined;
  if (isRunning) return `${what}; asked again ${due === undefined ? "now" : `at ${due}`}`;
  return `${what}; the next run${due === undefined ? "" : ` after ${due}`} asks again`;
}

/** The minute by which it has come; with its day unless that is today. */
function minuteText(time: string, now: string): string {
  const text = formatMoment(Math.ceil(Date.parse(time) / 60_000) * 60_000 * MICROS_PER_MS, "minute");
  return `${text.startsWith(now.slice(0, 10)) ? text.slice(11) : text} UTC`;
}
