/** A 429; a 5xx or a broken connection; no answer in time. */
export type BadSign = "rejected" | "failure" | "timeout";
/** How a request ended, as far as it says something about the speed that the service bears. */
export type LoadSign = "success" | BadSign;
/** So many answers say something: bad ones that are an excess, or accepted ones that are a rate. */
export const SAMPLE = 8;
/** So many say it well: older ones are forgotten, a recovery takes as many, an experiment never more. */
export const MANY = 64;
/** A rate is measured over at least a second: the shortest window of a limit. */
export const MEASURED_MS = 1_000;

export type AnswerCounts = Readonly<Record<LoadSign, number>>;
export const NO_ANSWERS: AnswerCounts = { success: 0, rejected: 0, failure: 0, timeout: 0 };

/** A timeout blocks a slot for a minute: it counts as a sample. */
export function weightOf(sign: LoadSign): number {
  return sign === "timeout" ? SAMPLE : 1;
}

export function addAnswer(counts: AnswerCounts, sign: LoadSign): AnswerCounts {
  const kept = totalOf(counts) >= MANY ? 0.5 : 1;
  const countOf = (each: LoadSign) => kept * counts[each] + (each === sign ? weightOf(sign) : 0);
  return {
    success: countOf("success"),
    rejected: countOf("rejected"),
    failure: countOf("failure"),
    timeout: countOf("timeout"),
  };
}

export function totalOf({ success, rejected, failure, timeout }: AnswerCounts): number {
  return success + rejected + failure + timeout;
}

/** Counted since a time, with those of the period before. */
export interface CountedRequests {
  readonly since: number;
  readonly count: number;
  readonly before: { readonly ms: number; readonly count: number };
}

export const NO_REQUESTS: CountedRequests = { since: 0, count: 0, before: { ms: 0, count: 0 } };
/** One more. A sample that took at least a second is a measurement, and the next begins. */
export function countAccepted(accepted: CountedRequests, now: number): CountedRequests {
  const { since, count } = accepted;
  if (count >= SAMPLE && now - since >= MEASURED_MS) return startPeriod(accepted, now, 1);
  return { ...accepted, since: count === 0 ? now : since, count: count + 1 };
}

export function startPeriod({ since, count }: CountedRequests, now: number, first: number): CountedRequests {
  return { since: now, count: first, before: { ms: now - since, count } };
}

export function acceptedPerSecond({ since, count, before }: CountedRequests, now: number): number {
  const ms = now - since;
  if (count >= SAMPLE && ms >= MEASURED_MS) return (count * 1000) / ms;
  return ((before.count + count) * 1000) / Math.max(MEASURED_MS, before.ms + ms);
}
