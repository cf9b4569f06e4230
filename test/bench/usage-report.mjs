// Imported before a program that is measured: leaves behind what it took. Plain JavaScript, since reading TypeScript would
// itself take tens of megabytes in every thread.
import { readFileSync, writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

if (isMainThread && process.env.BENCH_USAGE) {
  process.on("exit", () => {
    const { userCPUTime, systemCPUTime } = process.resourceUsage();
    // Not resourceUsage().maxRSS: that begins with what the parent had when it started us.
    const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    const usage = { peakBytes: Number(kibibytes) * 1024, cpuSeconds: (userCPUTime + systemCPUTime) / 1e6 };
    writeFileSync(process.env.BENCH_USAGE, JSON.stringify(usage));
  });
}
