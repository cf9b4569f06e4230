/** Chooses at every point where a step may go on in several ways. */
export interface Chooser {
  /** Returns one of the options; the first is the usual one. */
  choose<T extends string>(options: readonly T[]): T;
}

/** Enumerates every sequence of choices of a deterministic function: replays it with the next sequence until none is left. */
export class Choices implements Chooser {
  #path: number[] = [];
  #limits: number[] = [];
  #at = 0;

  choose<T extends string>(options: readonly T[]): T {
    const at = this.#at++;
    if (at === this.#path.length) {
      this.#path.push(0);
      this.#limits.push(options.length);
    }
    return options[this.#path[at] ?? 0] as T;
  }

  /** Prepares the next replay; false: all sequences were tried. */
  advance(): boolean {
    this.#path.length = this.#at;
    this.#limits.length = this.#at;
    this.#at = 0;
    for (let last = this.#path.length - 1; last >= 0; last--) {
      const value = (this.#path[last] ?? 0) + 1;
      if (value < (this.#limits[last] ?? 0)) {
        this.#path[last] = value;
        this.#path.length = last + 1;
        this.#limits.length = last + 1;
        return true;
      }
    }
    return false;
  }
}

/** Chooses what a script says, in its order; the usual way where it says nothing. */
export class Script implements Chooser {
  readonly #left: string[];

  constructor(choices: readonly string[]) {
    this.#left = [...choices];
  }

  choose<T extends string>(options: readonly T[]): T {
    const chosen = options.find((option) => option === this.#left[0]);
    if (chosen !== undefined) this.#left.shift();
    return chosen ?? (options[0] as T);
  }

  /** What no choice has used. */
  get left(): readonly string[] {
    return this.#left;
  }
}
