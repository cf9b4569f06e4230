import { writeFileSync } from "node:fs";

// Imported before a program that is measured: leaves its largest resident set behind, in bytes.
process.on("exit", () => {
  const file = process.env.MDS_BENCH_MEMORY;
  if (file !== undefined) writeFileSync(file, String(process.resourceUsage().maxRSS * 1024));
});
