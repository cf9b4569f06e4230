// Imported before the measured program: writes its resource usage to a file at exit. Plain JavaScript: loading TypeScript
// would take tens of megabytes in every thread.
import { readFileSync, writeFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

if (isMainThread && process.env.BENCH_USAGE) {
  process.on("exit", () => {
    const { userCPUTime, systemCPUTime } = process.resourceUsage();
    // Not resourceUsage().maxRSS: it includes the parent's resident set at the time of the fork.
    const [, kibibytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    const usage = { peakBytes: Number(kibibytes) * 1024, cpuSeconds: (userCPUTime + systemCPUTime) / 1e6 };
    writeFileSync(process.env.BENCH_USAGE, JSON.stringify(usage));
  });
}
