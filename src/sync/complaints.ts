import type { Problem } from "./trouble.ts";

/**
 * What stands in the way of many lines, told in few words: one problem of each kind, and again only when the kinds
 * change.
 */
export class Complaints {
  readonly #tell: (problems: readonly Problem[]) => void;
  readonly #kinds = new Map<string, Map<string, Problem>>();
  readonly #kindOf = new Map<string, string>();

  constructor(tell: (problems: readonly Problem[]) => void) {
    this.#tell = tell;
  }

  raise(line: string, problem: Problem): void {
    const kind = `${problem.stream} ${problem.code}`;
    if (this.#kindOf.get(line) !== kind) this.settle(line);
    this.#kindOf.set(line, kind);
    const known = this.#kinds.get(kind);
    if (known) known.set(line, problem);
    else {
      this.#kinds.set(kind, new Map([[line, problem]]));
      this.#say();
    }
  }

  /** The line is well. */
  settle(line: string): void {
    const kind = this.#kindOf.get(line);
    if (kind === undefined) return;
    this.#kindOf.delete(line);
    const lines = this.#kinds.get(kind);
    lines?.delete(line);
    if (lines?.size !== 0) return;
    this.#kinds.delete(kind);
    this.#say();
  }

  /** Nobody asks for the other lines any more. */
  keepOnly(lines: readonly string[]): void {
    const kept = new Set(lines);
    for (const line of [...this.#kindOf.keys()]) if (!kept.has(line)) this.settle(line);
  }

  #say(): void {
    this.#tell([...this.#kinds.values()].flatMap((lines) => [...lines.values()].slice(0, 1)));
  }
}
