import { applyClaim, applyPending, type LedgerChange } from "../../../src/rule/apply.ts";
import { provableUntil } from "../../../src/rule/provable-until.ts";
import { boundCases } from "./bound-cases.ts";
import { type BoundCase, judgeBound, toStoredSeries } from "./bound-oracle.ts";
import { type ChangeCase, changeCases, expectLine, toLine, toSeries } from "./change-oracle.ts";

/** Judges every case of one kind of answer by itself. */
export interface AnswerCheck {
  readonly name: string;
  /** `each`: only each so many cases. Stops at the first that is judged wrongly. */
  run(each?: number): AnswerCheckResult;
}

interface AnswerCheckResult {
  readonly cases: number;
  /** What is wrong, and with which case. */
  readonly violation: string | undefined;
}

function createCheck<T>(
  name: string,
  cases: () => Iterable<T>,
  judge: (each: T) => string | undefined,
): AnswerCheck {
  return {
    name,
    run(stride = 1) {
      let count = 0;
      for (const each of cases()) {
        if (count++ % stride > 0) continue;
        const what = judge(each);
        if (what !== undefined)
          return { cases: count, violation: `${name}: ${what}\n${JSON.stringify(each, undefined, 2)}` };
      }
      return { cases: Math.ceil(count / stride), violation: undefined };
    },
  };
}

function judgeProvable(each: BoundCase): string | undefined {
  const { page, lower, stored, rules } = each;
  return judgeBound(each, provableUntil(page, lower, toStoredSeries(stored), rules));
}

function judgeChange(each: ChangeCase): string | undefined {
  const { line, claim, isPending } = each;
  const series = toSeries(line);
  const counts = { answers: 1, firstAt: 0, lastAt: 0, acceptedAt: null };
  const changes = isPending ? applyPending({ ...claim, ...counts }) : applyClaim(claim, series);
  for (const change of changes) {
    if (!isSensible(change)) return `makes the change ${JSON.stringify(change)}`;
    series.change(change);
  }
  const [expected, actual] = [expectLine(each), toLine(series)].map((line) => JSON.stringify(line));
  return actual === expected ? undefined : `changed to ${actual} instead of ${expected}`;
}

/** Whether the change is of a kind that the writer knows, and not about nothing. */
function isSensible(change: LedgerChange): boolean {
  if (change.kind === "withdraw") return change.timestamps.length > 0;
  return (change.kind === "settle" || change.kind === "retract") && change.range.from < change.range.to;
}

/** The cheapest first. */
export const answerChecks: readonly AnswerCheck[] = [
  ...boundCases.map(({ name, cases }) => createCheck(`upper bound, ${name}`, cases, judgeProvable)),
  createCheck("changes of a claim", changeCases, judgeChange),
];
