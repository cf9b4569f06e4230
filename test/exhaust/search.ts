import { Choices, type Chooser, Script } from "./choices.ts";

/** One step, and what was chosen in it: answers of the service in their order, a live record, a crash. */
export type Step<Name extends string = string> = readonly [Name, ...string[]];

/** How a state was reached; both undefined: it is the first. */
export interface Reached<State> {
  readonly before: State | undefined;
  readonly step: Step | undefined;
}

/** A small service and the program beside it: what may happen, and what must hold after every step. */
export interface SmallWorld<State extends Reached<State>, Name extends string> {
  readonly start: State;
  readonly stepNames: readonly Name[];
  /** How many steps to try. */
  readonly depth: number;
  step(state: State, name: Name, chooser: Chooser): State | Promise<State>;
  /** Equal states have equal keys. */
  keyOf(state: State): string;
  /** What is wrong with a state; undefined: nothing. */
  judge(state: State): string | undefined | Promise<string | undefined>;
  /** What a replay needs besides the steps. */
  readonly spec: object;
}

export interface Violation {
  readonly steps: readonly Step[];
  readonly what: string;
  readonly spec: object;
}

export interface SearchResult {
  readonly states: number;
  readonly sequences: number;
  readonly violation: Violation | undefined;
}

/**
 * Tries every sequence of steps and choices in one world, breadth first, no state twice. `maxDepth`: a violation of more steps is not
 * looked for; read before each step.
 */
export async function search<State extends Reached<State>, Name extends string>(
  world: SmallWorld<State, Name>,
  maxDepth: () => number = () => Number.POSITIVE_INFINITY,
): Promise<SearchResult> {
  const seen = new Set([world.keyOf(world.start)]);
  let frontier = [world.start];
  let sequences = 0;
  for (let length = 1; length <= Math.min(world.depth, maxDepth()); length++) {
    const next: State[] = [];
    for (const state of frontier)
      for (const name of world.stepNames) {
        const choices = new Choices();
        do {
          sequences++;
          const after = await world.step(state, name, choices);
          const key = world.keyOf(after);
          if (seen.has(key)) continue;
          seen.add(key);
          const what = await world.judge(after);
          if (what !== undefined) {
            const violation = { steps: stepsTo(after), what, spec: world.spec };
            return { states: seen.size, sequences, violation };
          }
          next.push(after);
        } while (choices.advance());
      }
    frontier = next;
  }
  return { states: seen.size, sequences, violation: undefined };
}

function stepsTo<State extends Reached<State>>({ before, step }: State): readonly Step[] {
  return before && step ? [...stepsTo(before), step] : [];
}

/** Takes the steps in the world, and tells what is wrong after the last one; undefined: nothing. */
export async function replaySteps<State extends Reached<State>, Name extends string>(
  world: SmallWorld<State, Name>,
  steps: readonly Step<Name>[],
): Promise<string | undefined> {
  let state = world.start;
  for (const [name, ...choices] of steps) {
    const script = new Script(choices);
    state = await world.step(state, name, script);
    if (script.left.length > 0)
      throw new Error(`the step ${name} does not come to: ${script.left.join(", ")}`);
  }
  return world.judge(state);
}

/** The violation as a case for the table in exhaust.test.ts. */
export function formatCase({ steps, what, spec }: Violation): string {
  return `  ${JSON.stringify(what)}: {
${Object.entries(spec)
  .map(([name, value]) => `    ${name}: ${formatValue(value)},`)
  .join("\n")}
    steps: [
${steps.map((step) => `      ${formatValue(step)},`).join("\n")}
    ],
  },`;
}

function formatValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formatValue).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).map(([name, each]) => `${name}: ${formatValue(each)}`);
  return entries.length > 0 ? `{ ${entries.join(", ")} }` : "{}";
}
