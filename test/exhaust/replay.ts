import { type Bound, type State, type Step, startState, type Violation, WorldCheck } from "./check.ts";
import { Script } from "./choices.ts";
import { excludedFaults, faults } from "./service.ts";
import { createWorld, type WorldSpec } from "./world.ts";

interface Replay {
  readonly world: WorldSpec;
  readonly firstSlot: number;
  readonly steps: readonly Step[];
}

/** Takes the steps in the world, and tells what is wrong after the last one; undefined: nothing. */
export async function replay(given: Replay): Promise<string | undefined> {
  let found: string | undefined;
  for await (const { what } of replaySteps(given)) found = what;
  return found;
}

/** The state after each step, and what is wrong with it. */
export async function* replaySteps({
  world,
  firstSlot,
  steps,
}: Replay): AsyncGenerator<{ readonly state: State; readonly what: string | undefined }> {
  const bound: Bound = {
    firstSlot,
    depth: steps.length,
    faults: Number.POSITIVE_INFINITY,
    crashes: Number.POSITIVE_INFINITY,
    // Of two kinds with the same answer only the first is offered.
    kinds: [...faults, ...excludedFaults].filter((kind) =>
      steps.some((step) => step.some((each) => each === kind || each === `always ${kind}`)),
    ),
  };
  const check = new WorldCheck(createWorld(world), bound);
  let state = startState(world, bound);
  for (const [name, ...choices] of steps) {
    const script = new Script(choices);
    state = await check.step(state, name, script);
    if (script.left.length > 0)
      throw new Error(`the step ${name} does not come to: ${script.left.join(", ")}`);
    yield { state, what: await check.judge(state) };
  }
}

/** The violation as a test to paste. */
export function formatTest({ world, firstSlot, steps, what }: Violation): string {
  const { listed: _, period: __, ...spec } = world;
  return `  it(${JSON.stringify(what)}, async () => {
    const world: WorldSpec = ${formatValue(spec)};
    const steps: Step[] = [
${steps.map((step) => `      ${JSON.stringify(step).replaceAll(",", ", ")},`).join("\n")}
    ];
    expect(await replay({ world, firstSlot: ${firstSlot}, steps })).toBeUndefined();
  });`;
}

function formatValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formatValue).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).map(([name, each]) => `${name}: ${formatValue(each)}`);
  return entries.length > 0 ? `{ ${entries.join(", ")} }` : "{}";
}
