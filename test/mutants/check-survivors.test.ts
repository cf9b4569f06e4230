import { describe, expect, it } from "vitest";
import { checkSurvivors, describeMutant, type ExplainedMutants } from "./check-survivors.ts";

const file = "src/model/a.ts";
const survivor = { file, line: "if (a < b) return;", lineNumber: 7, mutant: "EqualityOperator: a <= b" };
const list: ExplainedMutants = {
  [file]: [{ line: survivor.line, mutants: [survivor.mutant], why: "a never equals b" }],
};

describe("the list of explained mutants", () => {
  it("explains a survivor by its file, its line's text and its mutation", () => {
    const other = { ...survivor, mutant: "ConditionalExpression: true" };
    expect(checkSurvivors([survivor, other], list, () => true)).toEqual({
      explained: [survivor],
      unexplained: [other],
      stale: [],
    });
  });

  it("is stale where the mutant was killed or the line changed, in files that were tried whole", () => {
    const changed = { ...survivor, line: "if (a < c) return;" };
    const { lineNumber, ...stale } = survivor;
    expect(checkSurvivors([changed], list, () => true)).toMatchObject({
      unexplained: [changed],
      stale: [stale],
    });
    expect(checkSurvivors([], list, () => false).stale).toEqual([]);
  });

  it("names a mutant by its mutator and one short line of its replacement", () => {
    expect(describeMutant("BlockStatement", "{\n  a;\n}")).toBe("BlockStatement: { a; }");
    expect(describeMutant("StringLiteral", "x".repeat(200))).toHaveLength("StringLiteral: ".length + 101);
  });
});
