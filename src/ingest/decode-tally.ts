import type { UnknownField } from "../model/records.ts";

/** A page that invents a new name for every record must not fill the memory with names. */
const MOST_NAMES = 500;
const LONGEST_NAME = 200;
const LONGEST_SAMPLE = 500;

/** Counts what this version does not know, with the first sample of each name. */
export class UnknownTally {
  readonly #seen = new Map<string, { count: number; sample: string }>();

  count(name: string, sample: string): void {
    const known = this.#seen.get(name);
    if (known) {
      known.count++;
      return;
    }
    const short = name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name;
    const key = this.#seen.has(short) || this.#seen.size < MOST_NAMES ? short : "(other names)";
    const entry = this.#seen.get(key);
    if (entry) entry.count++;
    else this.#seen.set(key, { count: 1, sample: sample.slice(0, LONGEST_SAMPLE) });
  }

  fields(): UnknownField[] {
    return [...this.#seen].map(([name, { count, sample }]) => ({ name, count, sample }));
  }
}
