import { once } from "node:events";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { Instrumenter } from "@stryker-mutator/instrumenter";
import { strykerPlugins } from "../mutants/ignored-code.ts";
import { survivorLine } from "../mutants/survivor-line.ts";
import { copySources } from "./source-copy.ts";

// npm run mutants:rule: the mutants of the rule, with the exhaustive check as their only test. Stryker makes the mutants; the
// walks of a world do not depend on the rule, so that threads which keep them try a mutant in a second.

const files = ["decide", "interpret", "confirm", "provable-until", "apply", "live-period", "snapshot"].map(
  (name) => `src/rule/${name}.ts`,
);
const MIN_PERCENT = 95;

export interface MutantTask {
  readonly id: string;
}

export interface MutantVerdict {
  readonly id: string;
  /** What the check said; undefined: the mutant survived. */
  readonly found: string | undefined;
}

/** What the first thread says when it has tried the plan without a mutant. */
export interface Reached {
  /** Mutants that run while the modules are loaded. */
  readonly atLoad: readonly string[];
  /** The mutants that each case passes. */
  readonly byCase: Readonly<Record<string, readonly string[]>>;
}

export interface ThreadData {
  /** The mutant to load the modules with. */
  readonly id: string | undefined;
  readonly reached: Reached | undefined;
}

type Mutant = Awaited<ReturnType<Instrumenter["instrument"]>>["mutants"][number];

const print = (text: string) => process.stdout.write(`${text}\n`);
const silent = () => {};
const logger = { debug: silent, info: silent, isDebugEnabled: () => false };

/** Counting every expression takes longer than the rule: only the first thread does. */
function withoutCounters(content: string): string {
  return `const mutation = globalThis.__stryker__ ?? {};
const isActive = (id: string) => mutation.activeMutant === id && mutation.hit();
${content
  .replaceAll(/stryMutAct_\w+\(("\d+")\)/g, "isActive($1)")
  .replaceAll(/stryCov_\w+\(("\d+"(, )?)+\)/g, "true")}`;
}

const instrumented = await new Instrumenter(logger as never).instrument(
  files.map((name) => ({ name, mutate: true, content: readFileSync(name, "utf8") })),
  { ignorers: strykerPlugins.map(({ value }) => value), excludedMutations: [], plugins: null } as never,
);
using counting = copySources(instrumented.files);
using folder = copySources(
  instrumented.files.map(({ name, content }) => ({ name, content: withoutCounters(content) })),
);
// A part of a file's name and line, and a number: only each so many mutants, as a sample.
const [only = "", each = "1"] = process.argv.slice(2);
const mutants = instrumented.mutants.filter(
  ({ fileName, location }, index) =>
    index % Number(each) === 0 && `${fileName}:${location.start.line + 1}:`.includes(only),
);
process.exitCode = report(mutants, await tryAll(mutants));

function startThread(folder: string, workerData: ThreadData): Worker {
  return new Worker(join(folder, "test/exhaust/mutant-thread.ts"), { workerData });
}

async function nextMessage<T>(thread: Worker): Promise<T> {
  const [message] = (await once(thread, "message")) as [T];
  return message;
}

/** Tries the mutants on all cores. Returns what found each; undefined: nothing. */
async function tryAll(mutants: readonly Mutant[]): Promise<Found> {
  const first = startThread(counting.path, { id: undefined, reached: undefined });
  const reached = await nextMessage<Reached>(first);
  await first.terminate();
  const inCases = new Set(Object.values(reached.byCase).flat());
  const found = new Map<string, string | undefined>();
  const left = [...mutants];
  const ask = async (thread: Worker, id: string) => {
    thread.postMessage({ id } satisfies MutantTask);
    return (await nextMessage<MutantVerdict>(thread)).found;
  };
  const askFresh = async (id: string) => {
    const fresh = startThread(folder.path, { id, reached: undefined });
    const verdict = await ask(fresh, id);
    await fresh.terminate();
    return verdict;
  };
  const run = async () => {
    const thread = startThread(folder.path, { id: undefined, reached });
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      const { id, fileName } = mutant;
      if (reached.atLoad.includes(id)) found.set(id, await askFresh(id));
      else found.set(id, inCases.has(id) ? await ask(thread, id) : undefined);
      if (found.get(id) === undefined) printSurvivor(mutant);
      const ofFile = mutants.filter((each) => each.fileName === fileName);
      if (ofFile.every((each) => found.has(each.id))) printFile(fileName, ofFile, found);
    }
    await thread.terminate();
  };
  await Promise.all(Array.from({ length: availableParallelism() }, run));
  return found;
}

type Found = ReadonlyMap<string, string | undefined>;

function printFile(fileName: string, mutants: readonly Mutant[], found: Found): void {
  const count = mutants.filter(({ id }) => found.get(id) !== undefined).length;
  const seconds = (performance.now() / 1000).toFixed(0);
  print(`${fileName}: ${count} of ${mutants.length} mutants found, after ${seconds} s`);
}

function printSurvivor({ fileName, location, mutatorName, replacement }: Mutant): void {
  print(survivorLine(fileName, location.start.line + 1, mutatorName, replacement));
}

function report(mutants: readonly Mutant[], found: Found): number {
  const count = mutants.filter(({ id }) => found.get(id) !== undefined).length;
  const percent = (100 * count) / mutants.length;
  print(`${percent.toFixed(1)} % of ${mutants.length} mutants noticed, at least ${MIN_PERCENT} %`);
  return percent >= MIN_PERCENT ? 0 : 1;
}
