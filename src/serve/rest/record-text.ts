import type { Column } from "../../model/column.ts";
import { toPlainNotation } from "../../model/decimal.ts";
import { formatDay, MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";

/** The rare values of a row: exact digits by column, and what the record had besides. */
type Details = Readonly<Record<string, string>>;

const noDetails: Details = {};

export function parseDetails(text: string | null): Details {
  return text === null ? noDetails : (JSON.parse(text) as Details);
}

/** All fractions of four digits, with their zeros and without the last ones. */
const fourDigits = Array.from({ length: 10_000 }, (_, value) => String(value).padStart(4, "0"));
const trimmedDigits = fourDigits.map((text) => text.replace(/0+$/, ""));

/** The usual decimals: not negative, below `limit`, with at most eight or four places. Both give at most 15 digits. */
const LIMIT_OF_EIGHT = 1e7;
const LIMIT_OF_FOUR = 1e11;

/** The digits of a decimal (docs/decisions/exact-decimals.md). From tables they take a third of the time of `String`. */
export function decimalText(real: number, exact?: string): string {
  if (exact !== undefined) return exact;
  if (real >= 0 && real < LIMIT_OF_EIGHT) {
    const scaled = Math.round(real * 1e8);
    if (scaled / 1e8 === real) {
      const whole = Math.floor(scaled / 1e8);
      const fraction = scaled - whole * 1e8;
      const high = Math.floor(fraction / 1e4);
      const low = fraction - high * 1e4;
      if (low > 0) return `${whole}.${fourDigits[high]}${trimmedDigits[low]}`;
      return high > 0 ? `${whole}.${trimmedDigits[high]}` : `${whole}`;
    }
  } else if (real >= 0 && real < LIMIT_OF_FOUR) {
    const scaled = Math.round(real * 1e4);
    if (scaled / 1e4 === real) {
      const whole = Math.floor(scaled / 1e4);
      const fraction = scaled - whole * 1e4;
      return fraction > 0 ? `${whole}.${trimmedDigits[fraction]}` : `${whole}`;
    }
  }
  const text = String(real);
  return text.includes("e") ? (toPlainNotation(text) ?? text) : text;
}

const twoDigits = Array.from({ length: 100 }, (_, value) => String(value).padStart(2, "0"));

let cachedDay = Number.NaN;
let cachedDayText = "";

/** ISO 8601 with as many digits as the timestamp has: three, or six. Four times as fast as `formatTimestamp`. */
export function timestampText(ts: Micros): string {
  const day = Math.floor(ts / MICROS_PER_DAY);
  if (day !== cachedDay) {
    cachedDay = day;
    cachedDayText = `${formatDay(ts)}T`;
  }
  const rest = ts - day * MICROS_PER_DAY;
  const second = Math.floor(rest / MICROS_PER_SECOND);
  const micros = rest - second * MICROS_PER_SECOND;
  const minute = Math.floor(second / 60);
  const hour = Math.floor(minute / 60);
  const clock = `${twoDigits[hour]}:${twoDigits[minute - hour * 60]}:${twoDigits[second - minute * 60]}`;
  return `${cachedDayText}${clock}.${fractionText(micros)}Z`;
}

function fractionText(micros: number): string {
  if (micros === 0) return "000";
  const ms = micros / 1000;
  return Number.isInteger(ms) ? String(ms).padStart(3, "0") : String(micros).padStart(6, "0");
}

/** `,"price":"1.5"`; empty if the row has no value. */
export function decimalProperty(name: string, real: number | null, exact: string | undefined): string {
  return real === null ? "" : `,"${name}":"${decimalText(real, exact)}"`;
}

/** The unknown properties that were stored, ready to be appended to others. */
export function extraProperties(extra: string | null | undefined, skip?: RegExp): string {
  if (!extra) return "";
  if (!skip?.test(extra)) return extra.length > 2 ? `,${extra.slice(1, -1)}` : "";
  const entries = Object.entries(JSON.parse(extra) as Record<string, unknown>);
  return entries
    .filter(([name]) => !skip.test(`"${name}"`))
    .map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`)
    .join("");
}

type Row = Readonly<Record<string, unknown>>;

/** Writes records of streams that are not on the hot path, from the columns of the stream table. */
export class RecordWriter {
  readonly #plain: readonly Column[];
  readonly #nested = new Map<string, { readonly inner: string; readonly column: Column }[]>();

  constructor(columns: readonly Column[]) {
    const fields = columns.filter(({ field, reading }) => field !== "" && reading !== null);
    this.#plain = fields.filter(({ field, reading }) => !field.includes(".") && reading !== "timestamp");
    for (const column of fields) {
      const [outer = "", inner] = column.field.split(".");
      if (inner === undefined) continue;
      this.#nested.set(outer, [...(this.#nested.get(outer) ?? []), { inner, column }]);
    }
  }

  /** The properties of a record, without braces. `row` has the values by column name. */
  properties(row: Row, details: Details = noDetails): string {
    const parts: string[] = [];
    for (const column of this.#plain) {
      const text = valueText(column, row[column.name], details);
      if (text !== undefined) parts.push(`"${column.field}":${text}`);
    }
    return parts.join(",");
  }

  /** The nested objects, each preceded by a comma, without those that `extra` has whole: they have unknown properties. */
  nestedProperties(row: Row, details: Details = noDetails): string {
    let text = "";
    for (const [outer, members] of this.#nested) {
      const values = members.map(({ column }) => valueText(column, row[column.name], details));
      if (details.extra?.includes(`"${outer}":`) || values.every((value) => value === undefined)) continue;
      text += `,"${outer}":{${members.map(({ inner }, at) => `"${inner}":${values[at] ?? null}`).join(",")}}`;
    }
    return text;
  }
}

function valueText({ name, type, reading }: Column, value: unknown, details: Details): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (type === "decimal") return `"${decimalText(value as number, details[name])}"`;
  if (type === "timestamp") return `"${timestampText(value as Micros)}"`;
  if (reading === "flag") return value ? "true" : "false";
  return JSON.stringify(value);
}
