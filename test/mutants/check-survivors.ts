/** By file. */
export type ExplainedMutants = Readonly<Record<string, readonly MutantExplanation[]>>;

export interface MutantExplanation {
  /** The text of the source line on which the mutant begins. */
  readonly line: string;
  /** `Mutator: replacement`, all on this line and for the same reason. */
  readonly mutants: readonly string[];
  readonly why: string;
}

/** A mutant that no test killed. */
export interface Survivor {
  readonly file: string;
  readonly line: string;
  readonly lineNumber: number;
  readonly mutant: string;
}

interface SurvivorCheckResult {
  readonly explained: readonly Survivor[];
  readonly unexplained: readonly Survivor[];
  /** Explained mutants that did not survive: killed by now, or the line has changed. */
  readonly stale: readonly Omit<Survivor, "lineNumber">[];
}

/** Replacements as one line of at most this length. */
const MAX_REPLACEMENT_LENGTH = 100;

export function describeMutant(mutator: string, replacement: string): string {
  const text = replacement.replaceAll(/\s+/g, " ").trim();
  return `${mutator}: ${text.length > MAX_REPLACEMENT_LENGTH ? `${text.slice(0, MAX_REPLACEMENT_LENGTH)}…` : text}`;
}

/** Compares the survivors with the list. `isChecked`: whether every mutant of a file was tried. */
export function checkSurvivors(
  survivors: readonly Survivor[],
  list: ExplainedMutants,
  isChecked: (file: string) => boolean,
): SurvivorCheckResult {
  const key = ({ file, line, mutant }: Omit<Survivor, "lineNumber">) => JSON.stringify([file, line, mutant]);
  const listed = Object.entries(list).flatMap(([file, explanations]) =>
    explanations.flatMap(({ line, mutants }) => mutants.map((mutant) => ({ file, line, mutant }))),
  );
  const [listedKeys, survivorKeys] = [new Set(listed.map(key)), new Set(survivors.map(key))];
  const { explained = [], unexplained = [] } = Object.groupBy(survivors, (survivor) =>
    listedKeys.has(key(survivor)) ? "explained" : "unexplained",
  );
  const stale = listed.filter((each) => isChecked(each.file) && !survivorKeys.has(key(each)));
  return { explained, unexplained, stale };
}
