import type { ExplainedMutants } from "../check-survivors.ts";

const undefinedIsNotLess = "A comparison with undefined is false. The check is for the compiler.";
const notShown = "The sentence is for a walk that cannot restart; this line is reached only if it can.";

export const explainedInPagination: ExplainedMutants = {
  "src/service/pagination/cross-checks.ts": [
    {
      line: "return window !== null && now !== undefined && ts < now - window + WINDOW_MARGIN_MICROS;",
      mutants: ["ConditionalExpression: true"],
      why: undefinedIsNotLess,
    },
    {
      line: "newest === undefined || !isDescending ? undefined : probeTimestamp(newest, progress);",
      mutants: ["ConditionalExpression: false"],
      why: "Every comparison that decides about a probe is false for undefined. The check is for the compiler.",
    },
    {
      line: "if (newest === undefined || !probed.isDescending || probed.newest !== newest) return true;",
      mutants: ["ConditionalExpression: false"],
      why: "Without a newest row there is no probe, and the function has returned. The check is for the compiler.",
    },
  ],
  "src/service/pagination/walk-state.ts": [
    {
      line: "return this.#oldestTs !== undefined && anchorForRow(endpoint, this.#oldestTs) < this.#anchor;",
      mutants: ["ConditionalExpression: true"],
      why: undefinedIsNotLess,
    },
    {
      line: "newest !== undefined &&",
      mutants: ["ConditionalExpression: true"],
      why: undefinedIsNotLess,
    },
    {
      line: "this.#oldestTs !== undefined &&",
      mutants: ["ConditionalExpression: true"],
      why: undefinedIsNotLess,
    },
    {
      line: 'if (this.canRestart) this.#restart("dead_cursor", "the service rejects its cursor");',
      mutants: ['StringLiteral: ""'],
      why: notShown,
    },
    {
      line: 'this.#restart(rows === 0 ? "dead_cursor" : "contradiction", "a page without nextId is not the last");',
      mutants: ['StringLiteral: ""'],
      why: notShown,
    },
    {
      line: "if (this.#cursor !== undefined) this.#cursors.forget(this.#cursor);",
      mutants: ["ConditionalExpression: true"],
      why: "Deleting undefined from a set of texts does nothing. The check is for the compiler.",
    },
  ],
};
