import { hashNumbers } from "./hash.ts";
import type { Quirks } from "./quirks.ts";

/** The kind of a record. The position in this list is part of the ids: append only. */
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

interface RecordPosition {
  readonly kind: RecordKind;
  /** Which series of its kind. */
  readonly ordinal: number;
  /** Which step of the series: a tick, a day, a ranking. */
  readonly step: number;
}

const ID_PATTERN = /^([0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-9[0-9a-f]{3}-)([0-9a-f]{6})([0-9a-f]{6})$/;
const HALF_MASK = 0xffffff;

/**
 * Ids that encode the position of their record, so that a cursor is resolved without a search. They are valid UUIDs.
 * The step is scrambled, so that the order of ids differs from the order of records.
 */
export class RecordIds {
  readonly #seed: number;
  readonly #mask: number;
  readonly #prefixes = new Map<number, string>();
  readonly #format: ReturnType<typeof createIdFormat>;

  constructor(seed: number, style: Quirks["ids"]) {
    this.#seed = seed;
    this.#mask = hashNumbers(seed, 21) & 0xfffffff;
    this.#format = createIdFormat(style);
  }

  encode(kind: RecordKind, ordinal: number, step: number): string {
    const { prefix, suffix } = this.#format;
    return prefix + this.#prefix(recordKinds.indexOf(kind), ordinal) + scrambleStep(step) + suffix;
  }

  decode(id: string): RecordPosition | undefined {
    const { prefix: start, suffix: end } = this.#format;
    const isOwn = id.startsWith(start) && id.endsWith(end);
    const match = isOwn && ID_PATTERN.exec(id.slice(start.length, id.length - end.length));
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
    const cached = this.#prefixes.get(key);
    if (cached) return cached;
    const maskedOrdinal = ((ordinal ^ this.#mask) >>> 0).toString(16).padStart(7, "0");
    const check = hashNumbers(this.#seed, kind, ordinal, 22).toString(16).padStart(8, "0");
    const more = hashNumbers(this.#seed, kind, ordinal, 23).toString(16).padStart(8, "0");
    const prefix = `${kind.toString(16)}${maskedOrdinal}-${check.slice(0, 4)}-8${check.slice(4, 7)}-9${more.slice(0, 3)}-`;
    if (this.#prefixes.size > 50_000) this.#prefixes.clear();
    this.#prefixes.set(key, prefix);
    return prefix;
  }
}

/** The step as twelve scrambled hexadecimal digits: two rounds of a Feistel network over its halves. */
function scrambleStep(step: number): string {
  let low = step & HALF_MASK;
  let high = Math.floor(step / 0x1000000) & HALF_MASK;
  high ^= feistelRound(low, 0x6a09e667);
  low ^= feistelRound(high, 0x3c6ef372);
  return [high, low].map((half) => half.toString(16).padStart(6, "0")).join("");
}

function unscrambleStep(highDigits: number, lowDigits: number): number {
  const low = lowDigits ^ feistelRound(highDigits, 0x3c6ef372);
  const high = highDigits ^ feistelRound(low, 0x6a09e667);
  return high * 0x1000000 + low;
}

function feistelRound(half: number, key: number): number {
  return (Math.imul(half ^ key, 0x85ebca6b) >>> 7) & HALF_MASK;
}

/** What the service shows before and after the UUID of an id. */
export function createIdFormat(style: Quirks["ids"]): { prefix: string; suffix: string } {
  if (style === "uuid") return { prefix: "", suffix: "" };
  return { prefix: "idé/", suffix: `%2F+${"long".repeat(40)}∆` };
}

/** A random-looking UUID that is always the same for one entity; `kind` is 1 asset, 2 market, 3 exchange, 4 liquid index. */
export function createEntityUuid(seed: number, kind: number, ordinal: number): string {
  const word = (part: number) => hashNumbers(seed, kind, ordinal, part).toString(16).padStart(8, "0");
  const second = word(2);
  const third = word(3);
  return `${word(1)}-${second.slice(0, 4)}-4${second.slice(5)}-a${third.slice(1, 4)}-${third.slice(4)}${word(4)}`;
}
