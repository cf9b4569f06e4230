import type { ExplainedMutants } from "../check-survivors.ts";
import { explainedInCommit } from "./commit.ts";
import { explainedInCoverage } from "./coverage.ts";
import { explainedInModel } from "./model.ts";
import { explainedInPagination } from "./pagination.ts";

/**
 * Every mutant that survives and may: no test could tell it from the code. By file, then by the text of the
 * source line. `mutants`: mutator and replacement. `npm run mutants` fails on an entry whose line has changed.
 */
export const explainedMutants: ExplainedMutants = {
  ...explainedInModel,
  ...explainedInCommit,
  ...explainedInCoverage,
  ...explainedInPagination,
};
