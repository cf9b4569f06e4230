import type { ExplainedMutants } from "../check-survivors.ts";

/** For `npm run mutants:rule`. */
export const explainedInRule: ExplainedMutants = {
  "src/rule/apply.ts": [
    {
      line: "const rows = stored.rowsBeside(part, []);",
      mutants: ['ArrayDeclaration: ["Stryker was here"]'],
      why: "The list names the timestamps to leave out. No row has a text as its timestamp.",
    },
  ],
};
