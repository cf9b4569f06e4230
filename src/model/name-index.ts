import { findClosestWord } from "./did-you-mean.ts";
import { type IndexType, indexTypes } from "./stream-columns.ts";

/** An entity that people name: an asset, a market, an index, an exchange. */
export interface Named {
  readonly id: string;
  /** Its names; its own symbol, pair or name first. */
  readonly labels: readonly string[];
  /** Absent or null: it has no type. */
  readonly indexType?: string | null;
}

/** `GWA:BTC` is the BTC of one type. */
export function splitType(given: string): { readonly type: IndexType | undefined; readonly rest: string } {
  const [, prefix = "", rest = given] = /^([a-z]+):(.*)$/i.exec(given) ?? [];
  const type = indexTypes.find((known) => known === prefix.toUpperCase());
  return type === undefined ? { type, rest: given } : { type, rest };
}

/**
 * The one parser of names. A name is an id, a symbol, a pair or a name; with its type (`GWA:BTC`), or with the beginning of the
 * first day (`LUNA@2022`), where several share it.
 */
export class NameIndex<T extends Named> {
  readonly #known: readonly T[];
  /** The strongest kind of match first. */
  readonly #matches: readonly ReadonlyMap<string, readonly T[]>[];
  readonly #firstDayOf: (named: T) => string | undefined;

  constructor(known: Iterable<T>, firstDayOf: (named: T) => string | undefined = () => undefined) {
    this.#known = [...known];
    this.#firstDayOf = firstDayOf;
    const by = (keysOf: (named: T) => readonly string[]) => {
      const map = new Map<string, T[]>();
      for (const named of this.#known) {
        for (const key of new Set(keysOf(named))) {
          const found = map.get(key);
          if (found) found.push(named);
          else map.set(key, [named]);
        }
      }
      return map;
    };
    this.#matches = [
      by(({ id }) => [id]),
      by(({ labels }) => labels.slice(0, 1)),
      by(({ labels }) => labels),
      by(({ labels }) => labels.map((label) => label.toLowerCase())),
    ];
  }

  get isEmpty(): boolean {
    return this.#known.length === 0;
  }

  /** Everything that the name may mean, of one type if one is given. */
  find(given: string, ofType?: IndexType): readonly T[] {
    const { type, rest } = splitType(given);
    if (rest === "") return [];
    const found = this.#findPlain(rest, type ?? ofType);
    if (found.length > 0) return found;
    const [, name = "", since = ""] = /^(.+)@(\d{4}(?:-\d\d){0,2})$/.exec(rest) ?? [];
    if (since === "") return [];
    return this.#findPlain(name, type ?? ofType).filter((named) =>
      this.#firstDayOf(named)?.startsWith(since),
    );
  }

  /** Suggestions for an unknown name. */
  suggest(given: string, ofType?: IndexType): string | undefined {
    const { type = ofType, rest } = splitType(given);
    const [other] = type === undefined ? [] : this.#findPlain(rest, undefined);
    if (other?.indexType) return `${other.indexType}:${rest}`;
    const known = this.#known.filter(({ indexType }) => type === undefined || indexType === type);
    return findClosestWord(
      rest,
      known.flatMap(({ labels }) => labels),
    );
  }

  /** A name of which the given one is the part after the colon, as a pair is without its exchange. */
  suggestWhole(given: string): string | undefined {
    const end = `:${given.toLowerCase()}`;
    return this.#known.flatMap(({ labels }) => labels).find((label) => label.toLowerCase().endsWith(end));
  }

  /** The shortest name that means only this one of all that share a name. */
  distinguish(named: T, all: readonly T[]): string {
    const [name = named.id] = named.labels;
    const isOnly = (has: (other: T) => boolean) => all.every((other) => other === named || !has(other));
    if (named.indexType && isOnly(({ indexType }) => indexType === named.indexType))
      return `${named.indexType}:${name}`;
    const day = this.#firstDayOf(named);
    for (const length of day === undefined ? [] : [4, 7, 10]) {
      const since = day?.slice(0, length) ?? "";
      if (isOnly((other) => this.#firstDayOf(other)?.startsWith(since) ?? false)) return `${name}@${since}`;
    }
    return named.indexType ? `${named.indexType}:${named.id}` : named.id;
  }

  #findPlain(name: string, type: IndexType | undefined): readonly T[] {
    for (const [kind, matches] of this.#matches.entries()) {
      const isFolded = kind === this.#matches.length - 1;
      const all = matches.get(isFolded ? name.toLowerCase() : name) ?? [];
      const found = all.filter(({ indexType }) => type === undefined || indexType === type);
      if (found.length > 0) return found;
    }
    return [];
  }
}
