import type { ExplainedMutants } from "../check-survivors.ts";

/** For `npm run mutants:rule`. */
export const explainedInRule: ExplainedMutants = {};
