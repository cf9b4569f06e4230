import { formatMoment, MICROS_PER_MS } from "../time.ts";

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
