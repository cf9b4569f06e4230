import { Choices } from "./choices.ts";
import { describeUnsettled, findFalseClaim } from "./judge.ts";
import { MemorySeries } from "./memory-series.ts";
import type { Fault } from "./service.ts";
import { checkEnd, compare, deliverLive, fill, type StepOptions } from "./steps.ts";
import { Walks } from "./walks.ts";
import { SETTLE_SLOTS, type World, type WorldSpec } from "./world.ts";

export interface Bound {
  /** The slot of the first step. */
  readonly firstSlot: number;
  /** How many steps. */
  readonly depth: number;
  /** Wrong answers and crashes in a sequence. */
  readonly faults: number;
  readonly crashes: number;
  /** The kinds of wrong answers to try. Default: those that the promise allows. */
  readonly kinds?: readonly Fault[];
}

/** One step, and what was chosen in it: answers of the service in their order, a live record, a crash. */
export type Step = readonly [StepName, ...string[]];

export interface Violation {
  readonly world: World;
  readonly firstSlot: number;
  readonly steps: readonly Step[];
  readonly what: string;
}

export interface CheckResult {
  readonly states: number;
  readonly sequences: number;
  readonly violation: Violation | undefined;
}

export interface State {
  readonly series: MemorySeries;
  readonly now: number;
  readonly faults: number;
  readonly crashes: number;
  readonly before: State | undefined;
  readonly step: Step | undefined;
}

const stepNames = ["fill", "wait", "live", "night", "compare"] as const;
export type StepName = (typeof stepNames)[number];

/** With an honest service everything is settled after these rounds: most as long as a confirmation takes, one of a day,
 * after which silence counts. In slots. */
const HONEST_ROUNDS = [3, 3, 3, 3000, 3, 3, 3, 3, 3, 3];

export function startState(
  { isLagging, records, stream }: WorldSpec,
  { firstSlot, faults, crashes }: Bound,
): State {
  const series = new MemorySeries(undefined, !isLagging, stream === "ticks");
  // Other series have shown bars of running days before the service began to lag.
  series.servesRunningDay = isLagging === true && records.some(({ finalAt }) => finalAt !== undefined);
  return { series, now: firstSlot, faults, crashes, before: undefined, step: undefined };
}

/** Tries every sequence of steps and answers in one world, breadth first, no state twice. */
export class WorldCheck {
  readonly #world: World;
  readonly #bound: Bound;
  readonly #walks: Walks;
  /** What an honest service leaves unsettled, by the round and the state before it. */
  readonly #unsettled = new Map<string, string | undefined>();

  /** `walks`: of an earlier check of the world with the same kinds of answers. */
  constructor(world: World, bound: Bound, walks = new Walks(world, bound.kinds)) {
    this.#world = world;
    this.#bound = bound;
    this.#walks = walks;
  }

  /** `maxDepth`: a violation of more steps is not looked for; read before each step. */
  async run(maxDepth: () => number = () => Number.POSITIVE_INFINITY): Promise<CheckResult> {
    const { depth, firstSlot } = this.#bound;
    const start = startState(this.#world, this.#bound);
    const seen = new Set([keyOf(start)]);
    let frontier = [start];
    let sequences = 0;
    for (let length = 1; length <= Math.min(depth, maxDepth()); length++) {
      const next: State[] = [];
      for (const state of frontier)
        for (const name of stepNames) {
          const choices = new Choices();
          do {
            sequences++;
            const after = await this.step(state, name, choices);
            const key = keyOf(after);
            if (seen.has(key)) continue;
            seen.add(key);
            const what = await this.judge(after);
            if (what !== undefined) {
              const violation = { world: this.#world, firstSlot, steps: stepsOf(after), what };
              return { states: seen.size, sequences, violation };
            }
            next.push(after);
          } while (choices.advance());
        }
      frontier = next;
    }
    return { states: seen.size, sequences, violation: undefined };
  }

  async step(state: State, name: StepName, chooser: StepOptions["chooser"]): Promise<State> {
    const series = new MemorySeries(state.series);
    const trace: string[] = [];
    const { faults, crashes } = state;
    const options = this.#optionsAt(state.now, chooser, { faults, crashes }, trace);
    let { now } = state;
    if (name === "fill") await fill(series, options);
    else if (name === "wait") now += wait(options);
    else if (name === "live") deliverLive(series, options);
    else if (name === "compare") await compare(series, options);
    else await checkEnd(series, options);
    while (trace.at(-1) === "honest") trace.pop();
    return { series, now, ...options.budget, before: state, step: [name, ...trace] };
  }

  /** What is wrong with a state; undefined: nothing. */
  async judge(state: State): Promise<string | undefined> {
    return findFalseClaim(state.series, this.#world, state.now) ?? (await this.#findUnsettled(state));
  }

  #optionsAt(
    now: number,
    chooser: StepOptions["chooser"],
    budget: StepOptions["budget"],
    trace: string[],
  ): StepOptions {
    return { world: this.#world, walks: this.#walks, now, chooser, budget, trace };
  }

  /** With an honest service from now on, everything is settled, and equals the service. */
  async #findUnsettled(state: State): Promise<string | undefined> {
    const series = new MemorySeries(state.series);
    let { now } = state;
    const passed: string[] = [];
    let found: string | undefined;
    for (const [round, slots] of HONEST_ROUNDS.entries()) {
      const key = `${round} ${now} ${series.key}`;
      if (this.#unsettled.has(key)) {
        found = this.#unsettled.get(key);
        break;
      }
      passed.push(key);
      now += slots;
      const options = this.#optionsAt(now, new Choices(), { faults: 0, crashes: 0 }, []);
      await askAll(series, options);
      if (round < HONEST_ROUNDS.length - 1) continue;
      found = describeUnsettled(series, this.#world, now);
      // A window of few slots moves on before an end is confirmed.
      if (found !== undefined || this.#world.window !== undefined) break;
      const settled = series.settledKey;
      await askAll(series, options);
      if (series.settledKey !== settled)
        found = `not stable with an honest service: ${settled}, then ${series.settledKey}`;
    }
    for (const key of passed) this.#unsettled.set(key, found);
    return found;
  }
}

/** As a night does. */
async function askAll(series: MemorySeries, options: StepOptions): Promise<void> {
  await checkEnd(series, options);
  await fill(series, options);
  await compare(series, options);
}

const waits = new Map([
  ["", 1],
  ["long", SETTLE_SLOTS + 1],
]);

/** How many slots pass. */
function wait({ chooser, trace }: StepOptions): number {
  const chosen = chooser.choose([...waits.keys()]);
  if (chosen) trace.push(chosen);
  return waits.get(chosen) ?? 1;
}

function keyOf({ series, now, faults, crashes }: State): string {
  return `${now} ${faults} ${crashes} ${series.key}`;
}

function stepsOf({ before, step }: State): readonly Step[] {
  return before && step ? [...stepsOf(before), step] : [];
}
