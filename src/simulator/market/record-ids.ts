import { parseRecordId, type RecordPosition, RowIds } from "../../api-server/record-ids.ts";
import { hashNumbers } from "./hash.ts";

/** What the service shows before and after the UUID of an id. */
export type IdFormat = Readonly<Record<"prefix" | "suffix", string>>;

/** Ids that encode the position of their record: which series of its kind, and which step of the series. */
export class RecordIds {
  readonly #seed: number;
  readonly #format: IdFormat;

  constructor(seed: number, format: IdFormat) {
    this.#seed = seed;
    this.#format = format;
  }

  encode(kind: string, key: number, number: number): string {
    const { prefix, suffix } = this.#format;
    return prefix + new RowIds(key, kind, this.#seed).at(number) + suffix;
  }

  /** Undefined if the id is not of this kind. */
  decode(kind: string, id: string): RecordPosition | undefined {
    return parseRecordId(id, ({ key, number }) => this.encode(kind, key, number));
  }
}

/** A random-looking UUID that is always the same for one entity; `kind` is 1 asset, 2 market, 3 exchange, 4 liquid index, 5 contract address. */
export function createEntityUuid(seed: number, kind: number, ordinal: number): string {
  const word = (part: number) => hashNumbers(seed, kind, ordinal, part).toString(16).padStart(8, "0");
  const second = word(2);
  const third = word(3);
  return `${word(1)}-${second.slice(0, 4)}-4${second.slice(5)}-a${third.slice(1, 4)}-${third.slice(4)}${word(4)}`;
}
