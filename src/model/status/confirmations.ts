import { formatMoment, MICROS_PER_MS } from "../time.ts";
/** What the service has said once and must say again, beside heads: until then it is `unconfirmed`. */
export interface Confirmations {
  /** Histories of which it must repeat that nothing is older. */
  readonly starts: number;
  /** Indices of which it must repeat that they do not exist. */
  readonly not_found: number;
  /** When it is asked about the last of them; null: there are none, or the settings are unknown. */
  readonly due_at: string | null;
}

/**
 * `33 starts of histories will be confirmed at 06:07 UTC`; undefined if there are none. Without a daemon (`isRunning`) the next
 * run asks.
 */
export function describeConfirmations(
  { starts, not_found, due_at }: Confirmations,
  now: string,
  isRunning = true,
): string | undefined {
  if (starts + not_found === 0) return undefined;
  const what = [
    ...(starts > 0 ? [countOf(starts, "start of a history", "starts of histories")] : []),
    ...(not_found > 0 ? [countOf(not_found, "index that was not found", "indices that were not found")] : []),
  ].join(" and ");
  if (due_at !== null && due_at > now && isRunning)
    return `${what} will be confirmed at ${minuteText(due_at, now)}`;
  const from = due_at !== null && due_at > now ? ` after ${minuteText(due_at, now)}` : "";
  const who = isRunning ? "the service is asked again" : `the next run${from} asks the service again`;
  return `${what} await${starts + not_found === 1 ? "s" : ""} confirmation: ${who}`;
}

function countOf(count: number, one: string, many: string): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** The minute by which it has come; with its day unless that is today. */
function minuteText(time: string, now: string): string {
  const text = formatMoment(Math.ceil(Date.parse(time) / 60_000) * 60_000 * MICROS_PER_MS, "minute");
  return `${text.startsWith(now.slice(0, 10)) ? text.slice(11) : text} UTC`;
}
