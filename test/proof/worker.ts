import { prove } from "./prove.ts";

// One process of `npm run proof`: a seed in, its outcome out. One that hangs ends itself, and the seed is named.
const LONGEST_MS = 240_000;

process.on("message", async (seed: number) => {
  const hung = setTimeout(() => process.exit(1), LONGEST_MS);
  try {
    process.send?.(await prove(seed));
  } catch (error) {
    const problems = [error instanceof Error ? (error.stack ?? error.message) : String(error)];
    process.send?.({ seed, problems, struck: 0, requests: 0, rows: 0, ends: [] });
  }
  clearTimeout(hung);
});
