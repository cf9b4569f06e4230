import { dieAt, hasStrace, placesOf, tasks } from "./sweep.ts";

// Every place at which a migration, a walk's commits and a checkpoint touch the disk: minutes, so not part of the suite.
if (!hasStrace()) {
  process.stderr.write("the sweep needs strace: install it from your distribution\n");
  process.exit(1);
}
let failed = 0;
for (const task of tasks) {
  const places = placesOf(task);
  let killed = 0;
  for (const place of places) {
    const result = dieAt(place);
    if (result.killed) killed++;
    if (result.problems.length === 0) continue;
    failed++;
    process.stdout.write(`${JSON.stringify(place)}: ${result.problems.join("; ")}\n`);
  }
  process.stdout.write(
    `${task}: killed at ${killed} of ${places.length} places, ${failed} problems so far\n`,
  );
}
process.exitCode = failed === 0 ? 0 : 1;
