import { hashOf } from "./hash.ts";
import type { Quirks } from "./quirks.ts";

/** What a record id names. The order is part of the ids: append only. */
export const recordKinds = [
  "GWA tick",
  "MWA tick",
  "LX tick",
  "GWA bar",
  "MWA bar",
  "LX bar",
  "exchange tick",
  "market cap",
  "contract",
  "derivative tick",
] as const;
export type RecordKind = (typeof recordKinds)[number];

export interface RecordPlace {
  readonly kind: RecordKind;
  /** Which series of its kind. */
  readonly ordinal: number;
  /** Which step of the series: a tick, a day, a ranking. */
  readonly step: number;
}

const shape = /^([0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-9[0-9a-f]{3}-)([0-9a-f]{6})([0-9a-f]{6})$/;
const threeHex = Array.from({ length: 4096 }, (_, value) => value.toString(16).padStart(3, "0"));
const HALF = 0xffffff;

/**
 * Ids that encode the place of their record, so that a cursor among billions is answered without a search. They are
 * valid UUIDs; the step is scrambled, so that nobody mistakes the order of ids for the order of records.
 */
export class RecordIds {
  readonly #seed: number;
  readonly #mask: number;
  readonly #prefixes = new Map<number, string>();
  readonly #dress: IdDress;

  constructor(seed: number, style: Quirks["ids"]) {
    this.#seed = seed;
    this.#mask = hashOf(seed, 21) & 0xfffffff;
    this.#dress = idDress(style);
  }

  /** What all ids of one series begin with, and what they end with; between them stand twelve digits of the step. */
  frame(kind: RecordKind, ordinal: number): { before: string; after: string } {
    return {
      before: this.#dress.before + this.#prefix(recordKinds.indexOf(kind), ordinal),
      after: this.#dress.after,
    };
  }

  id(kind: RecordKind, ordinal: number, step: number): string {
    return this.#dress.put(this.#prefix(recordKinds.indexOf(kind), ordinal) + stepDigits(step));
  }

  place(id: string): RecordPlace | undefined {
    const match = shape.exec(this.#dress.take(id) ?? "");
    if (!match) return undefined;
    const [, prefix = "", high = "", low = ""] = match;
    const kindNumber = Number.parseInt(prefix.slice(0, 1), 16);
    const ordinal = (Number.parseInt(prefix.slice(1, 8), 16) ^ this.#mask) >>> 0;
    const kind = recordKinds[kindNumber];
    if (!kind || this.#prefix(kindNumber, ordinal) !== prefix) return undefined;
    return { kind, ordinal, step: stepOf(Number.parseInt(high, 16), Number.parseInt(low, 16)) };
  }

  #prefix(kind: number, ordinal: number): string {
    const key = kind * 2 ** 28 + ordinal;
    const kept = this.#prefixes.get(key);
    if (kept) return kept;
    const place = ((ordinal ^ this.#mask) >>> 0).toString(16).padStart(7, "0");
    const check = hashOf(this.#seed, kind, ordinal, 22).toString(16).padStart(8, "0");
    const more = hashOf(this.#seed, kind, ordinal, 23).toString(16).padStart(8, "0");
    const prefix = `${kind.toString(16)}${place}-${check.slice(0, 4)}-8${check.slice(4, 7)}-9${more.slice(0, 3)}-`;
    if (this.#prefixes.size > 50_000) this.#prefixes.clear();
    this.#prefixes.set(key, prefix);
    return prefix;
  }
}

/** The step as twelve scrambled hexadecimal digits: two rounds of a Feistel network over its halves. */
export function stepDigits(step: number): string {
  let low = step & HALF;
  let high = Math.floor(step / 0x1000000) & HALF;
  high ^= round(low, 0x6a09e667);
  low ^= round(high, 0x3c6ef372);
  return (
    (threeHex[high >>> 12] as string) +
    (threeHex[high & 0xfff] as string) +
    (threeHex[low >>> 12] as string) +
    (threeHex[low & 0xfff] as string)
  );
}

function stepOf(highDigits: number, lowDigits: number): number {
  const low = lowDigits ^ round(highDigits, 0x3c6ef372);
  const high = highDigits ^ round(low, 0x6a09e667);
  return high * 0x1000000 + low;
}

function round(half: number, key: number): number {
  return (Math.imul(half ^ key, 0x85ebca6b) >>> 7) & HALF;
}

/** How an id is worn in public. */
interface IdDress {
  readonly before: string;
  readonly after: string;
  put(uuid: string): string;
  /** Undefined when the id was never one of ours. */
  take(id: string): string | undefined;
}

const OPAQUE_BEFORE = "idé/";
const OPAQUE_AFTER = `%2F+${"long".repeat(40)}∆`;

export function idDress(style: Quirks["ids"]): IdDress {
  if (style === "uuid") return { before: "", after: "", put: (uuid) => uuid, take: (id) => id };
  return {
    before: OPAQUE_BEFORE,
    after: OPAQUE_AFTER,
    put: (uuid) => OPAQUE_BEFORE + uuid + OPAQUE_AFTER,
    take: (id) =>
      id.startsWith(OPAQUE_BEFORE) && id.endsWith(OPAQUE_AFTER)
        ? id.slice(OPAQUE_BEFORE.length, -OPAQUE_AFTER.length)
        : undefined,
  };
}

/** A random-looking UUID that belongs to one entity. */
export function entityUuid(seed: number, family: number, ordinal: number): string {
  const word = (part: number) => hashOf(seed, family, ordinal, part).toString(16).padStart(8, "0");
  const second = word(2);
  const third = word(3);
  return `${word(1)}-${second.slice(0, 4)}-4${second.slice(5)}-a${third.slice(1, 4)}-${third.slice(4)}${word(4)}`;
}
