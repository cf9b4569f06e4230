/** How many cases a function of the rule was tried with, and the first one in which it differs from its specification. */
export interface PartResult {
  readonly cases: number;
  readonly violation: string | undefined;
}

/** As the plans of worlds: for `npm test`, for the mutants, for `npm run exhaust`. */
export type PartSize = "small" | "mutants" | "full";

/** One function of the rule alone, in every small case. */
export interface PartCheck {
  readonly name: string;
  run(size: PartSize): PartResult;
}

/** Of many cases `npm test` tries each so many: a prime, so that all values of all dimensions are among them. */
export function* sample<T>(cases: Iterable<T>, size: PartSize, stride: number): Generator<T> {
  let at = 0;
  for (const each of cases) if (size !== "small" || at++ % stride === 0) yield each;
}

/** `judge` tells what is wrong with a case; undefined: nothing. Stops at the first that is wrong. */
export function tryCases<T>(cases: Iterable<T>, judge: (each: T) => string | undefined): PartResult {
  let count = 0;
  for (const each of cases) {
    count++;
    const what = judge(each);
    if (what !== undefined) return { cases: count, violation: `${JSON.stringify(each)}\n  ${what}` };
  }
  return { cases: count, violation: undefined };
}

/** The same where each case says what is there, and what should be. */
export function tryAll<T>(
  cases: Iterable<T>,
  compare: (each: T) => readonly [actual: unknown, wanted: unknown],
): PartResult {
  return tryCases(cases, (each) => {
    const [actual, wanted] = compare(each).map((side) => JSON.stringify(side));
    return actual === wanted ? undefined : `is ${actual}\nwanted ${wanted}`;
  });
}

/** Several runs, one after another, up to the first violation. */
export function inTurn<T>(runs: Iterable<T>, run: (each: T) => PartResult): PartResult {
  let cases = 0;
  for (const each of runs) {
    const result = run(each);
    cases += result.cases;
    if (result.violation !== undefined) return { cases, violation: result.violation };
  }
  return { cases, violation: undefined };
}

/** Every choice of one value for each name, as objects. */
export function* combinations<T extends object>(
  values: {
    readonly [K in keyof T]: readonly T[K][];
  },
): Generator<T> {
  const names = Object.keys(values) as (keyof T)[];
  function* choose(index: number, chosen: Partial<T>): Generator<T> {
    const name = names[index];
    if (name === undefined) yield { ...chosen } as T;
    else for (const value of values[name]) yield* choose(index + 1, { ...chosen, [name]: value });
  }
  yield* choose(0, {});
}

/** Every subset, each in the order of the list. */
export function subsets<T>(list: readonly T[]): readonly (readonly T[])[] {
  return Array.from({ length: 2 ** list.length }, (_, set) => list.filter((_, i) => set & (1 << i)));
}
