import { parseDecimal, realFromDigits } from "../../model/decimal.ts";
import { MICROS_PER_SECOND, type Micros, parseTimestamp } from "../../model/time.ts";

const QUOTE = 34;
const MINUS = 45;
const POINT = 46;
const ZERO = 48;
const COLON = 58;
const LETTER_T = 84;
const LETTER_Z = 90;
const BACKSLASH = 92;

const MAX_SHORT_DIGITS = 15;
const DATE_LENGTH = 10;
const WORD_BYTES = 8;
/** The value of two bytes that are not digits: larger than any hour, minute or second. */
const NOT_DIGITS = 100;

/** A constant text, compared eight bytes at a time: seven times as fast as byte by byte. */
export class ExpectedText {
  readonly length: number;
  readonly words: BigInt64Array;
  /** The bytes after the last whole word. */
  readonly remainder: Uint8Array;

  /** `text` must be ASCII. */
  constructor(text: string) {
    const bytes = Buffer.from(text, "latin1");
    this.length = bytes.length;
    this.words = new BigInt64Array(Math.floor(bytes.length / WORD_BYTES));
    for (let i = 0; i < this.words.length; i++) this.words[i] = bytes.readBigInt64LE(i * WORD_BYTES);
    this.remainder = bytes.subarray(this.words.length * WORD_BYTES);
  }
}

const zeroOffset = new ExpectedText("+00:00");

/**
 * Reads the plainest form of JSON from bytes. Each method starts at `position` and moves it past what it
 * read. If one fails, the caller must give the whole page to the tolerant decoder.
 */
export class ByteReader {
  position: number;
  /** The digits of the last decimal; null: its double holds them. */
  exact: string | null = null;
  readonly #bytes: Buffer;
  readonly #view: DataView;
  /** The position of the last parsed date, and its midnight: thousands of timestamps in a row share a day. */
  #datePosition = -1;
  #midnight: Micros = Number.NaN;

  constructor(bytes: Buffer, position: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.position = position;
  }

  /** Moves past exactly this text; false if something else is there. */
  consume({ length, words, remainder }: ExpectedText): boolean {
    const bytes = this.#bytes;
    const view = this.#view;
    let at = this.position;
    if (at + length > bytes.length) return false;
    for (let i = 0; i < words.length; i++, at += WORD_BYTES)
      if (view.getBigInt64(at, true) !== words[i]) return false;
    for (let i = 0; i < remainder.length; i++, at++) if (bytes[at] !== remainder[i]) return false;
    this.position = at;
    return true;
  }

  /** Moves to the closing quote; false if the text has escapes, control characters or non-ASCII bytes. */
  skipText(): boolean {
    const bytes = this.#bytes;
    const view = this.#view;
    let at = this.position;
    while (at + 4 <= bytes.length && arePlainBytes(view.getInt32(at, true))) at += 4;
    for (; ; at++) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) break;
      if (!(byte >= 32 && byte < 128) || byte === BACKSLASH) return false;
    }
    this.position = at;
    return true;
  }

  /**
   * Reads an unsigned decimal up to its closing quote as a double; NaN for any other text. Sets `exact` if the double loses
   * digits.
   */
  readDecimal(): number {
    const bytes = this.#bytes;
    const start = this.position;
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
    const short = isPlain && count <= MAX_SHORT_DIGITS ? realFromDigits(digits, places) : Number.NaN;
    if (Number.isNaN(short)) return this.#readUnusualDecimal();
    this.position = at;
    this.exact = null;
    return short;
  }

  #readUnusualDecimal(): number {
    const start = this.position;
    if (this.#bytes[start] === MINUS || !this.skipText()) return Number.NaN;
    const decimal = parseDecimal(this.#bytes.toString("latin1", start, this.position));
    this.exact = decimal?.exact ?? null;
    return decimal?.real ?? Number.NaN;
  }

  /**
   * Reads `YYYY-MM-DDTHH:MM:SS[.f…]Z` (or `+00:00`) like `parseTimestamp`; NaN for anything else, also for leap
   * seconds and 24:00.
   */
  readTimestamp(): Micros {
    const bytes = this.#bytes;
    const start = this.position;
    const hour = readTwoDigits(bytes, start + 11);
    const minute = readTwoDigits(bytes, start + 14);
    const second = readTwoDigits(bytes, start + 17);
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
    this.position = at;
    if (bytes[at] === LETTER_Z) this.position++;
    else if (!this.consume(zeroOffset)) return Number.NaN;
    return this.#readMidnight(start) + ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction;
  }

  #readMidnight(dateAt: number): Micros {
    const view = this.#view;
    const known = this.#datePosition;
    const isKnown =
      known >= 0 &&
      view.getBigInt64(dateAt, true) === view.getBigInt64(known, true) &&
      view.getInt16(dateAt + WORD_BYTES) === view.getInt16(known + WORD_BYTES);
    if (!isKnown) {
      const date = this.#bytes.toString("latin1", dateAt, dateAt + DATE_LENGTH);
      this.#midnight = parseTimestamp(`${date}T00:00:00Z`) ?? Number.NaN;
      this.#datePosition = dateAt;
    }
    return this.#midnight;
  }

  /** Everything from `position` to the end. */
  readRest(): string {
    return this.#bytes.toString("latin1", this.position);
  }
}

function readTwoDigits(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] as number) - ZERO;
  const ones = (bytes[at + 1] as number) - ZERO;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : NOT_DIGITS;
}

/**
 * Whether none of four bytes is a quote, a backslash, a control character or non-ASCII. Each subtraction sets
 * the highest bit of a byte that is one of them.
 */
function arePlainBytes(four: number): boolean {
  const quotes = (four ^ 0x22222222) - 0x01010101;
  const backslashes = (four ^ 0x5c5c5c5c) - 0x01010101;
  const controls = four - 0x20202020;
  return ((four | quotes | backslashes | controls) & 0x80808080) === 0;
}
