import { prove } from "./prove.ts";

// A worker process of `npm run proof`: receives seeds, sends outcomes. If it hangs, it exits and the seed is reported.
const PROOF_TIMEOUT_MS = 240_000;

process.on("message", async (seed: number) => {
  const hung = setTimeout(() => process.exit(1), PROOF_TIMEOUT_MS);
  try {
    process.send?.(await prove(seed));
  } catch (error) {
    const problems = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
    process.send?.({ seed, problems, struck: 0, requests: 0, rows: 0, ends: [] });
  }
  clearTimeout(hung);
});
