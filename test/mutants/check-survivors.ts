/** By file. */
export type ExplainedMutants = Readonly<Record<string, readonly MutantExplanation[]>>;

export interface MutantExplanation {
  /** The text of the source line on which the mutant begins. */
  readonly line: string;
  /** `Mutator: replacement`, all on this line and for the same reason. */
  readonly mutants: readonly string[];
  readonly why: string;
}

export interface TriedMutant {
  readonly file: string;
  readonly line: string;
  readonly lineNumber: number;
  readonly mutant: string;
}

interface SurvivorCheckResult {
  readonly explained: readonly TriedMutant[];
  readonly unexplained: readonly TriedMutant[];
  /** Explained, but killed: a test or, on a slow machine, a timeout noticed it. */
  readonly killed: readonly ListedMutant[];
  /** Explained, but there is no such mutant: the line has changed. */
  readonly stale: readonly ListedMutant[];
}

type ListedMutant = Omit<TriedMutant, "lineNumber">;

/** Replacements as one line of at most this length. */
const MAX_REPLACEMENT_LENGTH = 100;

export function describeMutant(mutator: string, replacement: string): string {
  const text = replacement.replaceAll(/\s+/g, " ").trim();
  return `${mutator}: ${text.length > MAX_REPLACEMENT_LENGTH ? `${text.slice(0, MAX_REPLACEMENT_LENGTH)}…` : text}`;
}

/** Compares the survivors with the list, for the files of which a mutant was tried. */
export function checkSurvivors(
  tried: readonly TriedMutant[],
  survivors: readonly TriedMutant[],
  list: ExplainedMutants,
): SurvivorCheckResult {
  const key = ({ file, line, mutant }: ListedMutant) => JSON.stringify([file, line, mutant]);
  const listed = Object.entries(list).flatMap(([file, explanations]) =>
    explanations.flatMap(({ line, mutants }) => mutants.map((mutant) => ({ file, line, mutant }))),
  );
  const [listedKeys, triedKeys, survivorKeys] = [listed, tried, survivors].map(
    (mutants) => new Set(mutants.map(key)),
  ) as [Set<string>, Set<string>, Set<string>];
  const triedFiles = new Set(tried.map(({ file }) => file));
  const { explained = [], unexplained = [] } = Object.groupBy(survivors, (survivor) =>
    listedKeys.has(key(survivor)) ? "explained" : "unexplained",
  );
  return {
    explained,
    unexplained,
    killed: listed.filter((each) => triedKeys.has(key(each)) && !survivorKeys.has(key(each))),
    stale: listed.filter((each) => triedFiles.has(each.file) && !triedKeys.has(key(each))),
  };
}
