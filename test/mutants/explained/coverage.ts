import type { ExplainedMutants } from "../check-survivors.ts";

const neverAsked =
  "Without a publication all its values are null: nothing is quiet, and null is not below null.";

export const explainedInCoverage: ExplainedMutants = {
  "src/warehouse/coverage/gaps.ts": [
    {
      line: 'settled: settledSql("AND series = @series"),',
      mutants: ['StringLiteral: ""'],
      why: "It saves reading the ranges of other series, which nobody looks at.",
    },
    {
      line: "publication: row.publishedTo === null ? undefined : row,",
      mutants: ["ConditionalExpression: false"],
      why: neverAsked,
    },
  ],
  "src/warehouse/coverage/history-gaps.ts": [
    {
      line: "liveSpans: liveSpans.get(series) ?? [],",
      mutants: ['ArrayDeclaration: ["Stryker was here"]'],
      why: "A text as a live span has no end, so it does not reach the end of the target.",
    },
    {
      line: "const gaps = (targets.get(series) ?? []).flatMap((target) => describeGaps(target, ledger, now));",
      mutants: ['ArrayDeclaration: ["Stryker was here"]'],
      why: "A text as a target has no range, so it has no gaps.",
    },
    {
      line: "const publication = publishedTo === null ? undefined : { publishedTo, askedAt, askedTo, quietMargin };",
      mutants: ["ConditionalExpression: false"],
      why: neverAsked,
    },
  ],
  "src/warehouse/coverage/ledger.ts": [
    {
      line: "if (hasHistory(key.stream)) transaction.highWaterMarks.raise(key.stream, key.series, range.to - 1);",
      mutants: ["ArithmeticOperator: range.to + 1"],
      why: "A mark that is too high costs the writer a lookup of the row, which finds none.",
    },
    {
      line: "return found.filter(({ to }) => to >= range.from);",
      mutants: ["MethodExpression: found", "ConditionalExpression: true"],
      why: "A range that ends before is not cut and not merged: it would be replaced by itself.",
    },
    {
      line: "if (from >= to || !hasHistory(stream)) return false;",
      mutants: ["ConditionalExpression: false", "EqualityOperator: from > to"],
      why: "The query finds no row in an empty range either.",
    },
  ],
  "src/warehouse/coverage/snapshot-gaps.ts": [
    {
      line: "const ownTargets = (targets.get(ledgerKeyText(key)) ?? []).map((row) => ({ ...row, isSnapshot: true }));",
      mutants: ['ArrayDeclaration: ["Stryker was here"]', "BooleanLiteral: false"],
      why: "A text as a target has no range. Whether a gap is `lost` or `open`, this pass shows it as lost.",
    },
    {
      line: "for (let gap = gaps[next]; gap && gap.from < end; gap = gaps[++next]) {",
      mutants: ["EqualityOperator: gap.from <= end"],
      why: "No gap begins where a settled range or the next part begins.",
    },
    {
      line: "const last = settled.length < RANGES_PER_READ ? undefined : settled.at(-1);",
      mutants: ["ConditionalExpression: false"],
      why: "It saves a last read, which finds nothing.",
    },
  ],
};
