import type { Micros } from "../../model/time.ts";

/*
 * The warehouse stores no ids of ticks: they would double its size. `serve` makes its own, UUIDs of version 8 that contain the
 * key and the timestamp of the row. An id is a position too, so a page can begin at it without a search.
 */

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");

/** The ids of one series: `kkkkkkkk-tttt-8ttt-8ttt-ttttcccccccc`. */
export class RowIds {
  readonly #prefix: string;
  readonly #suffix: string;

  /** `names`: the service's own ids. Another warehouse gives another key to them. */
  constructor(stream: string, key: number, ...names: readonly string[]) {
    this.#prefix = `${hex(key, 8)}-`;
    this.#suffix = checkOf(stream, ...names);
  }

  at(ts: Micros): string {
    const digits = hex(ts, 14);
    return `${this.#prefix}${digits.slice(0, 4)}-8${digits.slice(4, 7)}-8${digits.slice(7, 10)}-${digits.slice(10)}${this.#suffix}`;
  }
}

/** The key and the timestamp in an id of `RowIds`; undefined for ids of another form. Whose id it is, `RowIds.at` tells. */
export function parseRecordId(id: string): { readonly key: number; readonly ts: Micros } | undefined {
  const match = /^([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f]{3})-8([0-9a-f]{3})-([0-9a-f]{4})[0-9a-f]{8}$/i.exec(
    id,
  );
  if (!match) return undefined;
  const [, key = "", ...digits] = match;
  return { key: Number.parseInt(key, 16), ts: Number.parseInt(digits.join(""), 16) };
}

/** FNV-1a over the names: tells ids of another stream or warehouse apart. */
function checkOf(...names: readonly string[]): string {
  let hash = 0x811c9dc5;
  for (const letter of names.join("\n")) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 0x01000193);
  return hex(hash >>> 0, 8);
}
