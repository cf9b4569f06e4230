import { crashAt, findCrashPoints, hasStrace, tasks } from "./sweep.ts";

// npm run sweep: crashes at every write of each task. Takes minutes, so it is not part of the suite.
if (!hasStrace()) {
  process.stderr.write("the sweep needs strace: install it with your package manager\n");
  process.exit(1);
}
let failed = 0;
for (const task of tasks) {
  const points = findCrashPoints(task);
  let killed = 0;
  for (const point of points) {
    const result = crashAt(point);
    if (result.isKilled) killed++;
    if (result.problems.length === 0) continue;
    failed++;
    process.stdout.write(`${JSON.stringify(point)}: ${result.problems.join("; ")}\n`);
  }
  process.stdout.write(
    `${task}: killed at ${killed} of ${points.length} crash points, ${failed} problems so far\n`,
  );
}
process.exitCode = failed === 0 ? 0 : 1;
