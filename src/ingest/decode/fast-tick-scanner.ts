import { parseDecimal, realFromDigits } from "../../model/decimal.ts";
import { indexTypes } from "../../model/stream-columns.ts";
import {
  allocateColumns,
  type DecimalColumn,
  type ExactDigits,
  type TickColumns,
} from "../../model/tick-columns.ts";
import { isPlausible, MICROS_PER_SECOND, type Micros, parseTimestamp } from "../../model/time.ts";

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
class ExpectedText {
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
class ByteReader {
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

/** Enough for the text before the records and the first record. */
const MAX_PREFIX_BYTES = 4_096;

const comma = new ExpectedText(",");

/** What `decodePage` returns for the same page, with the records in columns: no rejects, no unknown fields. */
export interface ScannedTicks {
  readonly columns: TickColumns;
  readonly nextId: string | undefined;
  /** The first record as received. */
  readonly firstRaw: string;
}

/**
 * Decodes a page of index ticks of one index from its bytes, without the strings and objects of `JSON.parse`.
 * Returns undefined if anything is unusual: then `decodePage` must decode it.
 */
export function scanTickPage(json: Uint8Array): ScannedTicks | undefined {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  const start = bytes.toString("latin1", 0, MAX_PREFIX_BYTES);
  const prefix = prefixPattern.exec(start);
  const shape = prefix && readShape(start, prefix[0].length);
  if (!shape) return undefined;

  const reader = new ByteReader(bytes, prefix[0].length);
  const columns = readColumns(reader, shape, bytes.length);
  const suffix = columns && suffixPattern.exec(reader.readRest());
  if (!suffix) return undefined;
  const [before, after] = [readNextId(prefix), readNextId(suffix)];
  if (before !== undefined && after !== undefined) return undefined;
  return { columns, nextId: (before ?? after) || undefined, firstRaw: shape.firstRaw };
}

function readColumns(reader: ByteReader, shape: TickShape, maxBytes: number): TickColumns | undefined {
  const { indexType, indexId, parts, end } = shape;
  const columns = allocateColumns(Math.ceil(maxBytes / shape.minBytes));
  const exact = new Map<number, ExactDigits>();
  let row = 0;
  do {
    for (let i = 0; i < parts.length; i++) {
      const { before, field } = parts[i] as TickShape["parts"][number];
      if (!reader.consume(before)) return undefined;
      if (field === "id") {
        if (!reader.skipText()) return undefined;
      } else if (field === "timestamp") {
        const ts = reader.readTimestamp();
        if (!isPlausible(ts)) return undefined;
        columns.ts[row] = ts;
      } else {
        const real = reader.readDecimal();
        if (Number.isNaN(real)) return undefined;
        columns[field][row] = real;
        if (reader.exact !== null) exact.set(row, { ...exact.get(row), [field]: reader.exact });
      }
    }
    if (!reader.consume(end)) return undefined;
    row++;
  } while (reader.consume(comma));

  const columnOf = (name: DecimalColumn) =>
    parts.some(({ field }) => field === name) ? columns[name].subarray(0, row) : undefined;
  return {
    indexType,
    indexId,
    ts: columns.ts.subarray(0, row),
    price: columns.price.subarray(0, row),
    volume: columnOf("volume"),
    tickVolume: columnOf("tickVolume"),
    exact,
  };
}

/** The fields whose values differ between the records of a page. */
const varyingFields = ["id", "timestamp", "price", "volume", "tickVolume"] as const;
type VaryingField = (typeof varyingFields)[number];

/** The layout of the page's first record; all others must have the same. */
interface TickShape {
  readonly indexType: string;
  readonly indexId: string;
  /** In order: the constant text before each varying value, including the opening quote. */
  readonly parts: readonly { readonly before: ExpectedText; readonly field: VaryingField }[];
  /** The constant text from the last value's closing quote to the end of the record. */
  readonly end: ExpectedText;
  readonly minBytes: number;
  readonly firstRaw: string;
}

// All patterns match printable ASCII without escapes only, so that byte and character positions agree.
const nextIdPattern = /"nextId":(?:null|"([ !#-[\]-~]*)")/.source;
const prefixPattern = new RegExp(`^\\{(?:${nextIdPattern},)?"content":\\[`);
const suffixPattern = new RegExp(`^\\](?:,${nextIdPattern})?\\}[ \\t\\r\\n]*$`);
const propertyPattern = /[{,]"([A-Za-z]+)":"([ !#-[\]-~]*)"/y;

/** Undefined: not in this part of the page; null: there is none. */
function readNextId([match, nextId]: RegExpExecArray): string | null | undefined {
  return nextId ?? (match.includes('"nextId":null') ? null : undefined);
}

/**
 * The layout of the record at `start`; undefined unless it has the usual properties, each once and a string.
 */
function readShape(text: string, start: number): TickShape | undefined {
  const seen = new Map<string, string>();
  const parts: { before: ExpectedText; field: VaryingField }[] = [];
  let constantFrom = start;
  let at = start;
  do {
    propertyPattern.lastIndex = at;
    const match = propertyPattern.exec(text);
    if (!match || (text[at] === "{") !== (at === start)) return undefined;
    const [whole, name = "", value = ""] = match;
    if (seen.has(name)) return undefined;
    seen.set(name, value);
    at += whole.length;
    const field = varyingFields.find((varying) => varying === name);
    if (field) {
      const valueAt = at - 1 - value.length;
      parts.push({ before: new ExpectedText(text.slice(constantFrom, valueAt)), field });
      constantFrom = at - 1;
    } else if (name !== "indexId" && name !== "indexType") return undefined;
  } while (text[at] !== "}");
  const end = new ExpectedText(text.slice(constantFrom, at + 1));
  const indexId = seen.get("indexId");
  const indexType = indexTypes.find((known) => known === seen.get("indexType"));
  if (!indexId || !indexType || !seen.has("price") || !seen.has("timestamp")) return undefined;
  const minBytes = parts.reduce((sum, { before }) => sum + before.length, end.length);
  return { indexType, indexId, parts, end, minBytes, firstRaw: text.slice(start, at + 1) };
}
