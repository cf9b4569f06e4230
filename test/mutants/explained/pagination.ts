import type { ExplainedMutants } from "../check-survivors.ts";

const undefinedIsNotLess = "A comparison with undefined is false. The check is for the compiler.";
const notShown = "The sentence is for a walk that cannot restart; this line is reached only if it can.";

export const explainedInPagination: ExplainedMutants = {
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
    {
      line: "if (this.#oldestTs === undefined || !this.canRestart) throw paginationCycleFailure(endpoint, why);",
      mutants: ["ConditionalExpression: false"],
      why: "Without an oldest row `canRestart` is false. The check is for the compiler.",
    },
  ],
};
