import { type Decimal, decimalOfDigits, readDecimal } from "../../model/decimal.ts";
import { MICROS_PER_SECOND, type Micros, parseInstant } from "../../model/time.ts";

const QUOTE = 34;
const MINUS = 45;
const POINT = 46;
const ZERO = 48;
const COLON = 58;
const LETTER_T = 84;
const LETTER_Z = 90;
const BACKSLASH = 92;

const MOST_SHORT_DIGITS = 15;
const LENGTH_OF_DATE = 10;
const BYTES_A_WORD = 8;
/** What two bytes that are no digits count for: more than any hour, minute or second. */
const NO_DIGITS = 100;

/** A fixed text that is expected again and again: compared eight bytes at a time, which is seven times as fast. */
export class ExpectedText {
  readonly length: number;
  readonly words: BigInt64Array;
  /** What is too short for a word. */
  readonly remainder: Uint8Array;

  /** `text`: ASCII. */
  constructor(text: string) {
    const bytes = Buffer.from(text, "latin1");
    this.length = bytes.length;
    this.words = new BigInt64Array(Math.floor(bytes.length / BYTES_A_WORD));
    for (let i = 0; i < this.words.length; i++) this.words[i] = bytes.readBigInt64LE(i * BYTES_A_WORD);
    this.remainder = bytes.subarray(this.words.length * BYTES_A_WORD);
  }
}

/**
 * Reads JSON text byte by byte, in its plainest form only. Each reading begins at `at` and leaves it behind what was
 * read. What is unusual is not read at all: the caller gives the whole page to the tolerant decoder.
 */
export class ByteReader {
  at: number;
  readonly #bytes: Buffer;
  readonly #view: DataView;
  /** Where the last date stands, and its midnight: thousands of moments in a row are of the same day. */
  #dateAt = -1;
  #midnight: Micros = Number.NaN;

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = at;
  }

  /** Takes exactly this text. */
  take({ length, words, remainder }: ExpectedText): boolean {
    const bytes = this.#bytes;
    const view = this.#view;
    let { at } = this;
    if (at + length > bytes.length) return false;
    for (let i = 0; i < words.length; i++, at += BYTES_A_WORD)
      if (view.getBigInt64(at, true) !== words[i]) return false;
    for (let i = 0; i < remainder.length; i++, at++) if (bytes[at] !== remainder[i]) return false;
    this.at = at;
    return true;
  }

  /** Passes over ASCII without escapes or control characters, up to its closing quote. */
  skipText(): boolean {
    const bytes = this.#bytes;
    const view = this.#view;
    let { at } = this;
    while (at + 4 <= bytes.length && isAllPlain(view.getInt32(at, true))) at += 4;
    for (; ; at++) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) break;
      if (!(byte >= 32 && byte < 128) || byte === BACKSLASH) return false;
    }
    this.at = at;
    return true;
  }

  /** A decimal without sign, up to its closing quote; undefined for any other text. */
  decimal(): Decimal | undefined {
    const bytes = this.#bytes;
    const start = this.at;
    let at = start;
    let digits = 0;
    let point = -1;
    for (; ; at++) {
      const digit = (bytes[at] as number) - ZERO;
      if (digit >= 0 && digit <= 9) digits = digits * 10 + digit;
      else if (digit === POINT - ZERO && point < 0) point = at;
      else break;
    }
    const places = point < 0 ? 0 : at - point - 1;
    const count = point < 0 ? at - start : at - start - 1;
    const isPlain = count > places && (point < 0 || places > 0) && bytes[at] === QUOTE;
    const short = isPlain && count <= MOST_SHORT_DIGITS ? decimalOfDigits(digits, places) : undefined;
    if (short === undefined) return this.#unusualDecimal();
    this.at = at;
    return short;
  }

  #unusualDecimal(): Decimal | undefined {
    const start = this.at;
    if (this.#bytes[start] === MINUS || !this.skipText()) return undefined;
    return readDecimal(this.#bytes.toString("latin1", start, this.at));
  }

  /** `YYYY-MM-DDTHH:MM:SS[.f…]Z`, as `parseInstant` reads it; NaN for anything else, leap seconds and 24:00 included. */
  moment(): Micros {
    const bytes = this.#bytes;
    const start = this.at;
    const hour = twoDigits(bytes, start + 11);
    const minute = twoDigits(bytes, start + 14);
    const second = twoDigits(bytes, start + 17);
    if (hour > 23 || minute > 59 || second > 59) return Number.NaN;
    if (bytes[start + 10] !== LETTER_T || bytes[start + 13] !== COLON || bytes[start + 16] !== COLON)
      return Number.NaN;
    let at = start + 19;
    let fraction = 0;
    if (bytes[at] === POINT) {
      const firstPlace = ++at;
      for (let scale = 100_000; ; at++) {
        const digit = (bytes[at] as number) - ZERO;
        if (!(digit >= 0 && digit <= 9)) break;
        fraction += digit * scale;
        scale = scale > 1 ? scale / 10 : 0;
      }
      if (at === firstPlace) return Number.NaN;
    }
    if (bytes[at] !== LETTER_Z) return Number.NaN;
    this.at = at + 1;
    return this.#midnightOf(start) + ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction;
  }

  #midnightOf(dateAt: number): Micros {
    const view = this.#view;
    const known = this.#dateAt;
    const isKnown =
      known >= 0 &&
      view.getBigInt64(dateAt, true) === view.getBigInt64(known, true) &&
      view.getInt16(dateAt + BYTES_A_WORD) === view.getInt16(known + BYTES_A_WORD);
    if (!isKnown) {
      const date = this.#bytes.toString("latin1", dateAt, dateAt + LENGTH_OF_DATE);
      this.#midnight = parseInstant(`${date}T00:00:00Z`) ?? Number.NaN;
      this.#dateAt = dateAt;
    }
    return this.#midnight;
  }

  /** All that is left. */
  rest(): string {
    return this.#bytes.toString("latin1", this.at);
  }
}

function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] as number) - ZERO;
  const ones = (bytes[at + 1] as number) - ZERO;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : NO_DIGITS;
}

/**
 * Whether none of four bytes is a quote, a backslash, a control character or beyond ASCII. Each subtraction borrows into
 * a byte's highest bit where that byte is what is looked for.
 */
function isAllPlain(four: number): boolean {
  const quotes = (four ^ 0x22222222) - 0x01010101;
  const backslashes = (four ^ 0x5c5c5c5c) - 0x01010101;
  const controls = four - 0x20202020;
  return ((four | quotes | backslashes | controls) & 0x80808080) === 0;
}
