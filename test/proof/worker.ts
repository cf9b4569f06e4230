import { timeLimit } from "../support/time-limit.ts";
import { type ProofOutcome, prove } from "./prove.ts";

// A worker process of `npm run proof`: receives seeds, sends outcomes. If a seed hangs, it exits, and run.ts reports it.

process.on("message", async (seed: number) => {
  const hung = setTimeout(() => process.exit(1), timeLimit(240_000));
  try {
    process.send?.(await prove(seed));
  } catch (error) {
    const problems = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
    const outcome: ProofOutcome = { seed, problems, struck: 0, requests: 0, rows: 0, exits: [] };
    process.send?.(outcome);
  }
  clearTimeout(hung);
});
