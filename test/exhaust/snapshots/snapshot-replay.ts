import { Script } from "../choices.ts";
import { SnapshotCheck, type SnapshotStep, type SnapshotViolation } from "./snapshot-check.ts";
import type { SnapshotSpec } from "./snapshot-world.ts";

/**
 * Takes the steps in the world, and tells what is wrong after the last one; undefined: nothing. `hasExcluded`: as if the
 * assumptions did not hold.
 */
export function replaySnapshots(
  spec: SnapshotSpec,
  steps: readonly SnapshotStep[],
  hasExcluded = false,
): string | undefined {
  const budget = Number.POSITIVE_INFINITY;
  const check = new SnapshotCheck(spec, {
    depth: steps.length,
    faults: budget,
    crashes: budget,
    steps: [...new Set(steps.map(([name]) => name))],
    hasExcluded,
  });
  let state = check.start();
  for (const [name, ...choices] of steps) {
    const script = new Script(choices);
    state = check.step(state, name, script);
    if (script.left.length > 0)
      throw new Error(`the step ${name} does not come to: ${script.left.join(", ")}`);
  }
  return check.judge(state);
}

/** The violation as a test to paste. */
export function formatSnapshotTest({ spec, steps, what }: SnapshotViolation): string {
  return `  it(${JSON.stringify(what)}, () => {
    const world: SnapshotSpec = ${JSON.stringify(spec)};
    const steps: SnapshotStep[] = [
${steps.map((step) => `      ${JSON.stringify(step).replaceAll(",", ", ")},`).join("\n")}
    ];
    expect(replaySnapshots(world, steps)).toBeUndefined();
  });`;
}
