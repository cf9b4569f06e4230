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
    const both = [survivor, other];
    expect(checkSurvivors(both, both, list)).toEqual({
      explained: [survivor],
      unexplained: [other],
      killed: [],
      stale: [],
    });
  });

  it("is stale where the line changed, and says where a mutant was killed after all", () => {
    const changed = { ...survivor, line: "if (a < c) return;" };
    const { lineNumber, ...listed } = survivor;
    expect(checkSurvivors([changed], [changed], list)).toMatchObject({
      unexplained: [changed],
      killed: [],
      stale: [listed],
    });
    expect(checkSurvivors([survivor], [], list)).toMatchObject({ killed: [listed], stale: [] });
    // Of other files it says nothing.
    const elsewhere = [{ ...survivor, file: "src/model/b.ts" }];
    expect(checkSurvivors(elsewhere, [], list)).toMatchObject({ killed: [], stale: [] });
  });

  it("names a mutant by its mutator and one short line of its replacement", () => {
    expect(describeMutant("BlockStatement", "{\n  a;\n}")).toBe("BlockStatement: { a; }");
    expect(describeMutant("StringLiteral", "x".repeat(200))).toHaveLength("StringLiteral: ".length + 101);
  });
});
