import type { SqlValue } from "../../warehouse/tables/row-tables.ts";
import type { PgColumn, PgType } from "../schema/tables.ts";

/*
 * PostgreSQL's binary COPY format: a header, then per row the number of fields and per field its length and bytes, all
 * big-endian, then a trailer. Four times as fast as INSERT, and exact: a double travels as its eight bytes.
 */

const HEADER = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const TRAILER_BYTES = 2;
const MIN_CAPACITY = 64 * 1024;
/** Moments count from the year 2000. */
const EPOCH_2000_MICROS = Date.UTC(2000, 0, 1) * 1000;
const MAX_UINT32 = 2 ** 32;
const fixedBytes = { float8: 8, int4: 4, int2: 2, bool: 1 } as const;

/** Builds the bytes of one COPY. Give it each row's values in the order of the columns. */
export class CopyWriter {
  readonly #types: readonly PgType[];
  #buffer = Buffer.allocUnsafe(MIN_CAPACITY);
  #at: number;

  constructor(columns: readonly PgColumn[]) {
    this.#types = columns.map(({ type }) => type);
    this.#at = HEADER.copy(this.#buffer);
  }

  /** `valueAt(i)`: the value of column number i. */
  add(valueAt: (column: number) => SqlValue): void {
    const types = this.#types;
    this.#reserve(2 + types.length * 12);
    this.#at = this.#buffer.writeInt16BE(types.length, this.#at);
    for (let i = 0; i < types.length; i++) this.#addField(types[i] as PgType, valueAt(i));
  }

  /** The bytes of the COPY. The writer must not be used afterwards. */
  finish(): Buffer {
    this.#reserve(TRAILER_BYTES);
    this.#at = this.#buffer.writeInt16BE(-1, this.#at);
    return this.#buffer.subarray(0, this.#at);
  }

  #addField(type: PgType, value: SqlValue): void {
    if (value === null) {
      this.#at = this.#buffer.writeInt32BE(-1, this.#at);
      return;
    }
    if (type === "text") this.#addText(cleanText(String(value)));
    else if (type === "json") this.#addText(cleanJson(String(value)));
    else if (type === "int8") this.#addInt8(Number(value));
    else if (type === "moment") this.#addInt8(parseMoment(String(value)) - EPOCH_2000_MICROS);
    else this.#addFixed(type, value);
  }

  #addFixed(type: Exclude<PgType, "text" | "json" | "int8" | "moment">, value: number | string): void {
    this.#at = this.#buffer.writeInt32BE(fixedBytes[type], this.#at);
    if (type === "float8") this.#at = this.#buffer.writeDoubleBE(Number(value), this.#at);
    else if (type === "int4") this.#at = this.#buffer.writeInt32BE(Number(value), this.#at);
    else if (type === "int2") this.#at = this.#buffer.writeInt16BE(Number(value), this.#at);
    else this.#at = this.#buffer.writeInt8(value === 1 ? 1 : 0, this.#at);
  }

  /** Two halves: a BigInt per value would cost as much as all the rest. */
  #addInt8(value: number): void {
    const high = Math.floor(value / MAX_UINT32);
    this.#at = this.#buffer.writeInt32BE(8, this.#at);
    this.#at = this.#buffer.writeInt32BE(high, this.#at);
    this.#at = this.#buffer.writeUInt32BE(value - high * MAX_UINT32, this.#at);
  }

  #addText(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.#reserve(4 + bytes + this.#types.length * 12);
    this.#at = this.#buffer.writeInt32BE(bytes, this.#at);
    this.#at += this.#buffer.write(text, this.#at);
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes));
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

/** The bytes of a COPY of rows that have a value for each column. */
export function encodeRows(columns: readonly PgColumn[], rows: Iterable<readonly SqlValue[]>): Buffer {
  const copy = new CopyWriter(columns);
  for (const row of rows) copy.add((i) => row[i] ?? null);
  return copy.finish();
}

/** Splits a binary COPY into the bytes of its rows: equal rows have equal bytes. */
export function* splitCopy(copied: Buffer): Generator<Buffer> {
  let at = HEADER.length;
  while (copied.readInt16BE(at) >= 0) {
    const from = at;
    const fields = copied.readInt16BE(at);
    at += 2;
    for (let i = 0; i < fields; i++) at += 4 + Math.max(0, copied.readInt32BE(at));
    yield copied.subarray(from, at);
  }
}

/** PostgreSQL stores no NUL character, and UTF-8 no half of a surrogate pair. */
function cleanText(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\ufffd") : text;
}

/** Its JSON functions accept neither the escape of NUL nor that of half a surrogate pair. */
function cleanJson(text: string): string {
  if (!/\\u(?:0000|[dD][89a-fA-F])/.test(text)) return cleanText(text);
  return cleanText(text)
    .replaceAll("\\u0000", "\\ufffd")
    .replaceAll(/\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])/g, "\\ufffd")
    .replaceAll(/(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}/g, "\\ufffd");
}

/** A moment of the warehouse, `YYYY-MM-DDTHH:MM:SS.ffffffZ`, in microseconds since 1970. */
function parseMoment(text: string): number {
  const fraction = /\.(\d{1,6})/.exec(text)?.[1]?.padEnd(6, "0") ?? "0";
  return Math.floor(Date.parse(text) / 1000) * 1_000_000 + Number(fraction);
}
