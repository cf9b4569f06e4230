import { Choices } from "./choices.ts";
import { describeUnsettled, findFalseClaim } from "./judge.ts";
import { MemorySeries } from "./memory-series.ts";
import { type Reached, replaySteps, type SmallWorld, type Step } from "./search.ts";
import { excludedFaults, type Fault, faults } from "./service.ts";
import { checkEnd, compare, deliverLive, fill, type StepOptions } from "./steps.ts";
import { Walks } from "./walks.ts";
import { createWorld, SETTLE_SLOTS, type World, type WorldSpec } from "./world.ts";

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

interface State extends Reached<State> {
  readonly series: MemorySeries;
  readonly now: number;
  readonly faults: number;
  readonly crashes: number;
}

const stepNames = ["fill", "wait", "live", "night", "compare"] as const;
export type StepName = (typeof stepNames)[number];

/** With an honest service everything is settled after these rounds: most as long as a confirmation takes, one of a day,
 * after which silence counts. In slots. */
const HONEST_ROUNDS = [3, 3, 3, 3000, 3, 3, 3, 3, 3, 3];

function startState({ isLagging, records, stream }: WorldSpec, { firstSlot, faults, crashes }: Bound): State {
  const series = new MemorySeries(undefined, !isLagging, stream === "ticks");
  // Other series have shown bars of running days before the service began to lag.
  series.servesRunningDay = isLagging === true && records.some(({ finalAt }) => finalAt !== undefined);
  return { series, now: firstSlot, faults, crashes, before: undefined, step: undefined };
}

/** One history, and the program that syncs it. */
export class HistoryCheck implements SmallWorld<State, StepName> {
  readonly start: State;
  readonly stepNames = stepNames;
  readonly depth: number;
  readonly spec: Omit<HistoryCase, "steps">;
  readonly #world: World;
  readonly #walks: Walks;
  /** What an honest service leaves unsettled, by the round and the state before it. */
  readonly #unsettled = new Map<string, string | undefined>();

  /** `walks`: of an earlier check of the world with the same kinds of answers. */
  constructor(world: World, bound: Bound, walks = new Walks(world, bound.kinds)) {
    this.#world = world;
    this.#walks = walks;
    this.start = startState(world, bound);
    this.depth = bound.depth;
    const { listed: _, period: __, ...spec } = world;
    this.spec = { world: spec, firstSlot: bound.firstSlot };
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

  keyOf({ series, now, faults, crashes }: State): string {
    return `${now} ${faults} ${crashes} ${series.key}`;
  }

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

export interface HistoryCase {
  readonly world: WorldSpec;
  readonly firstSlot: number;
  readonly steps: readonly Step<StepName>[];
}

/** Takes the steps in the world, and tells what is wrong after the last one; undefined: nothing. */
export function replay({ world, firstSlot, steps }: HistoryCase): Promise<string | undefined> {
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
  return replaySteps(new HistoryCheck(createWorld(world), bound), steps);
}
