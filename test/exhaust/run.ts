import { availableParallelism } from "node:os";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { HistoryCheck } from "./check.ts";
import { partChecks } from "./parts/all.ts";
import { plans, worldsOf } from "./plans.ts";
import { formatCase, type SearchResult, search } from "./search.ts";
import { SnapshotCheck } from "./snapshots/snapshot-check.ts";
import { snapshotPlans, snapshotWorldsOf } from "./snapshots/snapshot-plans.ts";

// npm run exhaust: every small world, on all cores, and every single answer. npm run exhaust -- small: the bound of `npm test`.
// npm run exhaust -- mutants histories: only their worlds, or those of snapshots, up to the first violation.

/** What the threads share: the next function or world to try, and how many steps the shortest violation so far has. */
const NEXT = 0;
const SHORTEST = 1;

type Worlds = "histories" | "snapshots";

interface ThreadData {
  readonly plan: keyof typeof plans;
  readonly only: Worlds | undefined;
  readonly shared: Int32Array;
}

if (parentPort) {
  parentPort.postMessage(await tryOwn(workerData as ThreadData));
} else process.exitCode = await main(process.argv[2] ?? "full", process.argv[3] as Worlds | undefined);

type Totals = SearchResult & {
  readonly worlds: number;
  /** Cases of single functions, and in which of them one differs from its specification. */
  readonly cases: number;
  readonly differences: readonly string[];
};

/** Tries the functions and worlds that no other thread has taken. */
async function tryOwn({ plan, only, shared }: ThreadData): Promise<Totals> {
  const none = { worlds: 0, states: 0, sequences: 0, violation: undefined, cases: 0, differences: [] };
  let totals: Totals = none;
  let index = 0;
  let own = Atomics.add(shared, NEXT, 1);
  const [parts, worlds] = [[...partsOf(plan)], [...checksOf(plan, only)]];
  // The quicker ones first: snapshots have few worlds.
  for (const check of only === "snapshots" ? [...worlds, ...parts] : [...parts, ...worlds]) {
    if (index++ !== own) continue;
    if (Atomics.load(shared, SHORTEST) === 0) break;
    own = Atomics.add(shared, NEXT, 1);
    const result = await check(() => Atomics.load(shared, SHORTEST) - 1);
    const found = result.violation?.steps.length ?? Number.POSITIVE_INFINITY;
    if (only && (result.violation || result.differences?.length)) Atomics.store(shared, SHORTEST, 0);
    else if (found < Atomics.load(shared, SHORTEST)) Atomics.store(shared, SHORTEST, found);
    totals = add(totals, { ...none, ...result });
  }
  return totals;
}

/** Tries one function or world, up to so many steps. */
type Check = (maxDepth: () => number) => Promise<Partial<Totals>>;

function* partsOf(plan: keyof typeof plans): Generator<Check> {
  for (const { name, run } of partChecks)
    yield async () => {
      const { cases, violation } = run(plan);
      return { cases, differences: violation ? [`${name}: ${violation}`] : [] };
    };
}

function* checksOf(plan: keyof typeof plans, only: Worlds | undefined): Generator<Check> {
  if (only !== "histories")
    for (const { spec, bound } of snapshotWorldsOf(snapshotPlans[plan]))
      yield async (maxDepth) => ({ ...(await search(new SnapshotCheck(spec, bound), maxDepth)), worlds: 1 });
  if (only !== "snapshots")
    for (const { world, bound } of worldsOf(plans[plan]))
      yield async (maxDepth) => ({ ...(await search(new HistoryCheck(world, bound), maxDepth)), worlds: 1 });
}

function add(a: Totals, b: Totals): Totals {
  const lengthOf = ({ violation }: Totals) => violation?.steps.length ?? Number.POSITIVE_INFINITY;
  return {
    worlds: a.worlds + b.worlds,
    states: a.states + b.states,
    sequences: a.sequences + b.sequences,
    cases: a.cases + b.cases,
    differences: [...a.differences, ...b.differences],
    violation: lengthOf(b) < lengthOf(a) ? b.violation : a.violation,
  };
}

async function main(plan: string, only: Worlds | undefined): Promise<number> {
  const started = performance.now();
  const shared = new Int32Array(new SharedArrayBuffer(8));
  shared[SHORTEST] = 1000;
  const results = await Promise.all(
    Array.from({ length: availableParallelism() }, () => {
      const worker = new Worker(new URL(import.meta.url), { workerData: { plan, only, shared } });
      return new Promise<Totals>((resolve, reject) => worker.once("message", resolve).once("error", reject));
    }),
  );
  const { worlds, states, sequences, violation, cases, differences } = results.reduce(add);
  for (const difference of differences) process.stdout.write(`differs: ${difference}\n`);
  if (violation) process.stdout.write(`${formatCase(violation)}\n`);
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  const count = (n: number) => n.toLocaleString("en");
  const isViolated = violation !== undefined || differences.length > 0;
  process.stdout.write(
    `${count(cases)} cases of single functions, ${count(worlds)} worlds, ${count(states)} states, ${count(sequences)} sequences, ${seconds} s: ${isViolated ? "violated" : "no violation"}\n`,
  );
  return isViolated ? 1 : 0;
}
