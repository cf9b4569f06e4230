import type { ExplainedMutants } from "./check-survivors.ts";

/**
 * Every mutant that survives and may: no test could tell it from the code. By file, then by the text of the
 * source line. `mutants`: mutator and replacement. `npm run mutants` fails on an entry that no longer applies.
 */
export const explainedMutants: ExplainedMutants = {};
