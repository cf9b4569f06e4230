import { parseHttpDate } from "./http-date.ts";

/** However long the service asks us to stay away: after this we look whether it meant it. */
export const LONGEST_PAUSE_MS = 15 * 60_000;

/**
 * The wait that a `Retry-After` header asks for, as a floor under our own backoff; 0 where it says nothing useful.
 * A date is compared with `answeredAt`, the moment at which the same server says that it wrote the
 * answer, so that a wrong clock on either side does no harm.
 */
export function retryAfterMs(header: string | undefined, answeredAt: number): number {
  if (header === undefined) return 0;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, LONGEST_PAUSE_MS);
  const date = parseHttpDate(text, answeredAt);
  if (date === undefined) return 0;
  return Math.min(Math.max(0, date - answeredAt), LONGEST_PAUSE_MS);
}
