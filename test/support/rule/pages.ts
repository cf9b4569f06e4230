import type { Micros } from "../../../src/model/time.ts";
import type { PageAnswer, SeriesRules } from "../../../src/rule/answer.ts";

/** The only page of a walk below the head, long after its records. */
export function page(timestamps: readonly Micros[], more: Partial<PageAnswer> = {}): PageAnswer {
  const gap = more.gap ?? { from: 1000, to: 2000 };
  return {
    gap,
    provenFrom: gap.to,
    timestamps,
    foreign: 0,
    isLast: false,
    isHead: false,
    isSilenceConfirmed: false,
    madeAt: undefined,
    asOf: 1e15,
    isStale: false,
    ...more,
  };
}

/** Records every 10; nothing is too young or too old. */
export const plainRules: SeriesRules = {
  period: 10,
  settleDelay: 0,
  lateness: 0,
  step: 1,
  isDaily: false,
  quietMargin: 0,
  windowStart: Number.MIN_SAFE_INTEGER,
  floor: Number.MIN_SAFE_INTEGER,
};
