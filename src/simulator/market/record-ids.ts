import { hashNumbers } from "./hash.ts";
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

export interface RecordPosition {
  readonly kind: RecordKind;
  /** Which series of its kind. */
  readonly ordinal: number;
  /** Which step of the series: a tick, a day, a ranking. */
  readonly step: number;
}

const ID_PATTERN = /^([0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-9[0-9a-f]{3}-)([0-9a-f]{6})([0-9a-f]{6})$/;
const THREE_HEX_DIGITS = Array.from({ length: 4096 }, (_, value) => value.toString(16).padStart(3, "0"));
const HALF_MASK = 0xffffff;

/**
 * Ids that encode the place of their record, so that a cursor among billions is answered without a search. They are
 * valid UUIDs; the step is scrambled, so that nobody mistakes the order of ids for the order of records.
 */
export class RecordIds {
  readonly #seed: number;
  readonly #mask: number;
  readonly #prefixes = new Map<number, string>();
  readonly #format: IdFormat;

  constructor(seed: number, style: Quirks["ids"]) {
    this.#seed = seed;
    this.#mask = hashNumbers(seed, 21) & 0xfffffff;
    this.#format = createIdFormat(style);
  }

  /** What all ids of one series begin with, and what they end with; between them stand twelve digits of the step. */
  affixes(kind: RecordKind, ordinal: number): { prefix: string; after: string } {
    return {
      prefix: this.#format.prefix + this.#prefix(recordKinds.indexOf(kind), ordinal),
      after: this.#format.suffix,
    };
  }

  encode(kind: RecordKind, ordinal: number, step: number): string {
    return this.#format.wrap(this.#prefix(recordKinds.indexOf(kind), ordinal) + scrambleStep(step));
  }

  decode(id: string): RecordPosition | undefined {
    const match = ID_PATTERN.exec(this.#format.unwrap(id) ?? "");
    if (!match) return undefined;
    const [, prefix = "", high = "", low = ""] = match;
    const kindNumber = Number.parseInt(prefix.slice(0, 1), 16);
    const ordinal = (Number.parseInt(prefix.slice(1, 8), 16) ^ this.#mask) >>> 0;
    const kind = recordKinds[kindNumber];
    if (!kind || this.#prefix(kindNumber, ordinal) !== prefix) return undefined;
    return { kind, ordinal, step: unscrambleStep(Number.parseInt(high, 16), Number.parseInt(low, 16)) };
  }

  #prefix(kind: number, ordinal: number): string {
    const key = kind * 2 ** 28 + ordinal;
    const kept = this.#prefixes.get(key);
    if (kept) return kept;
    const place = ((ordinal ^ this.#mask) >>> 0).toString(16).padStart(7, "0");
    const check = hashNumbers(this.#seed, kind, ordinal, 22).toString(16).padStart(8, "0");
    const more = hashNumbers(this.#seed, kind, ordinal, 23).toString(16).padStart(8, "0");
    const prefix = `${kind.toString(16)}${place}-${check.slice(0, 4)}-8${check.slice(4, 7)}-9${more.slice(0, 3)}-`;
    if (this.#prefixes.size > 50_000) this.#prefixes.clear();
    this.#prefixes.set(key, prefix);
    return prefix;
  }
}

/** The step as twelve scrambled hexadecimal digits: two rounds of a Feistel network over its halves. */
export function scrambleStep(step: number): string {
  let low = step & HALF_MASK;
  let high = Math.floor(step / 0x1000000) & HALF_MASK;
  high ^= feistelRound(low, 0x6a09e667);
  low ^= feistelRound(high, 0x3c6ef372);
  return (
    (THREE_HEX_DIGITS[high >>> 12] as string) +
    (THREE_HEX_DIGITS[high & 0xfff] as string) +
    (THREE_HEX_DIGITS[low >>> 12] as string) +
    (THREE_HEX_DIGITS[low & 0xfff] as string)
  );
}

function unscrambleStep(highDigits: number, lowDigits: number): number {
  const low = lowDigits ^ feistelRound(highDigits, 0x3c6ef372);
  const high = highDigits ^ feistelRound(low, 0x6a09e667);
  return high * 0x1000000 + low;
}

function feistelRound(half: number, key: number): number {
  return (Math.imul(half ^ key, 0x85ebca6b) >>> 7) & HALF_MASK;
}

/** How an id is worn in public. */
interface IdFormat {
  readonly prefix: string;
  readonly suffix: string;
  wrap(uuid: string): string;
  /** Undefined when the id was never one of ours. */
  unwrap(id: string): string | undefined;
}

const OPAQUE_PREFIX = "idé/";
const OPAQUE_SUFFIX = `%2F+${"long".repeat(40)}∆`;

export function createIdFormat(style: Quirks["ids"]): IdFormat {
  if (style === "uuid") return { prefix: "", suffix: "", wrap: (uuid) => uuid, unwrap: (id) => id };
  return {
    prefix: OPAQUE_PREFIX,
    suffix: OPAQUE_SUFFIX,
    wrap: (uuid) => OPAQUE_PREFIX + uuid + OPAQUE_SUFFIX,
    unwrap: (id) =>
      id.startsWith(OPAQUE_PREFIX) && id.endsWith(OPAQUE_SUFFIX)
        ? id.slice(OPAQUE_PREFIX.length, -OPAQUE_SUFFIX.length)
        : undefined,
  };
}

/** A random-looking UUID that belongs to one entity. */
export function createEntityUuid(seed: number, family: number, ordinal: number): string {
  const word = (part: number) => hashNumbers(seed, family, ordinal, part).toString(16).padStart(8, "0");
  const second = word(2);
  const third = word(3);
  return `${word(1)}-${second.slice(0, 4)}-4${second.slice(5)}-a${third.slice(1, 4)}-${third.slice(4)}${word(4)}`;
}
