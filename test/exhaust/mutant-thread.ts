import { parentPort, workerData } from "node:worker_threads";
import type { MutantTask, MutantVerdict, Reached, ThreadData } from "./mutants.ts";

// Runs in a copy of the sources that Stryker has instrumented: tries the plan with one mutant after the other.

/** What the instrumented code reads and writes. */
interface Instrumentation {
  activeMutant?: string | undefined;
  /** The case that runs. */
  currentTestId?: string;
  /** The mutants that were passed, while the modules were loaded and in each case. */
  mutantCoverage?: { readonly static: object; readonly perTest: Readonly<Record<string, object>> };
  hit(): boolean;
}

interface Case {
  readonly name: string;
  /** Returns what is wrong; undefined: nothing. */
  find(): Promise<string | undefined>;
}

/** A mutant that is passed so often loops for ever. */
const MAX_HITS = 20_000_000;

const { id: loadedId, reached } = workerData as ThreadData;
let hits = 0;
const stryker: Instrumentation = {
  activeMutant: loadedId,
  hit: () => {
    if (++hits > MAX_HITS) throw new Error("the mutant loops for ever");
    return true;
  },
};
Object.assign(globalThis, { __stryker__: stryker });
// Loaded after the mutant is chosen.
const { HistoryCheck } = await import("./check.ts");
const { plans, worldsOf } = await import("./plans.ts");
const { Walks } = await import("./walks.ts");
const { partChecks } = await import("./parts/all.ts");
const { search } = await import("./search.ts");
const { SnapshotCheck } = await import("./snapshots/snapshot-check.ts");
const { snapshotPlans, snapshotWorldsOf } = await import("./snapshots/snapshot-plans.ts");
const parts = partChecks.map(({ name, run }): Case => ({ name, find: async () => run("mutants").violation }));
const worlds = [...worldsOf(plans.mutants)].map(({ world, bound }, index): Case => {
  const walks = new Walks(world);
  return {
    name: String(index),
    find: async () => (await search(new HistoryCheck(world, bound, walks))).violation?.what,
  };
});
const snapshots = [...snapshotWorldsOf(snapshotPlans.mutants)].map(
  ({ spec, bound }, index): Case => ({
    name: `snapshots ${index}`,
    find: async () => (await search(new SnapshotCheck(spec, bound))).violation?.what,
  }),
);
/** The cases that found a mutant lately come first: they find others too. */
let order = [...parts, ...worlds, ...snapshots];

async function findViolation(reaches: (name: string) => boolean): Promise<string | undefined> {
  for (const each of order) {
    if (!reaches(each.name)) continue;
    stryker.currentTestId = each.name;
    const found = await tryCase(each);
    if (found === undefined) continue;
    order = [each, ...order.filter((other) => other !== each)];
    return found;
  }
  return undefined;
}

async function tryCase({ find }: Case): Promise<string | undefined> {
  try {
    return await find();
  } catch (error) {
    return String(error);
  }
}

if (reached === undefined && loadedId === undefined) {
  const violation = await findViolation(() => true);
  if (violation !== undefined) throw new Error(`violated without a mutant: ${violation}`);
  const { static: atLoad = {}, perTest = {} } = stryker.mutantCoverage ?? {};
  const byCase = Object.fromEntries(Object.entries(perTest).map(([name, ids]) => [name, Object.keys(ids)]));
  parentPort?.postMessage({ atLoad: Object.keys(atLoad), byCase } satisfies Reached);
}

parentPort?.on("message", async ({ id }: MutantTask) => {
  stryker.activeMutant = id;
  hits = 0;
  const found = await findViolation((name) => reached?.byCase[name]?.includes(id) ?? true);
  parentPort?.postMessage({ id, found } satisfies MutantVerdict);
});
