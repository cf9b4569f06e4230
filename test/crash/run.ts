import { availableParallelism } from "node:os";
import { crashAt, findCrashPoints, hasStrace, tasks } from "./sweep.ts";

// npm run sweep: crashes at every write of each task. Takes minutes, so it is not part of the suite.
if (!hasStrace()) {
  process.stderr.write("the sweep needs strace: install it with your package manager\n");
  process.exit(1);
}
// One more than there are cores, because this process checks a file while the others run.
const concurrency = availableParallelism() + 1;
let failed = 0;
for (const task of tasks) {
  const startedAt = performance.now();
  const points = await findCrashPoints(task);
  const left = points.values();
  let killed = 0;
  const crashNext = async () => {
    for (const point of left) {
      const result = await crashAt(point);
      if (result.isKilled) killed++;
      if (result.problems.length === 0) continue;
      failed++;
      process.stdout.write(`${JSON.stringify(point)}: ${result.problems.join("; ")}\n`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, crashNext));
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  process.stdout.write(
    `${task}: killed at ${killed} of ${points.length} crash points in ${seconds} s, ${failed} problems so far\n`,
  );
}
process.exitCode = failed === 0 ? 0 : 1;
