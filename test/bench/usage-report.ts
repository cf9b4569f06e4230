import { writeFileSync } from "node:fs";

/** What a process took in all. */
export interface Usage {
  /** The largest resident set. */
  readonly peakBytes: number;
  readonly cpuSeconds: number;
}

// Imported before a program that is measured: leaves behind what it took.
process.on("exit", () => {
  const file = process.env.BENCH_USAGE;
  if (file === undefined) return;
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  const usage: Usage = { peakBytes: maxRSS * 1024, cpuSeconds: (userCPUTime + systemCPUTime) / 1e6 };
  writeFileSync(file, JSON.stringify(usage));
});
