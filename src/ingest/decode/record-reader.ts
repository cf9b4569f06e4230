import { type Decimal, parseDecimal } from "../../model/decimal.ts";
import type { UnknownField } from "../../model/records.ts";
import { formatTimestamp, isPlausible, type Micros, parseServiceTimestamp } from "../../model/time.ts";
import { sliceProperties, toCanonicalJson } from "./json-source.ts";

export type Properties = Readonly<Record<string, unknown>>;

/** Returns the source text of a record, for what `JSON.parse` loses. */
export type RecordText = (index: number) => string;

const MINUS = 45;
const MAX_RAW_LENGTH = 4096;
const MAX_QUALITY_LENGTH = 16_384;

/**
 * Reads the fields of one record after the other; a page has one reader. Callers pass each value with its
 * name, because they can read a property by a fixed name, which is several times faster.
 */
export class RecordReader {
  /** Why the record is rejected: the first reason found; null while there is none. */
  rejection: string | null = null;
  /** The problems of its fields; null: none. */
  quality: string | null = null;

  #record: Properties = {};
  #index = 0;
  #slices: Map<string, string> | undefined;
  /** The names of the last record that had only known ones: the next record nearly always has the same. */
  #usualNames: readonly string[] = [];
  #extras: [name: string, json: string][] = [];
  readonly #text: RecordText;
  readonly #tally: UnknownTally;
  /** What precedes the names of a nested object in notes and counts: `marketCapPercentChange.`. */
  readonly #prefix: string;

  constructor(text: RecordText, tally: UnknownTally, prefix = "") {
    this.#text = text;
    this.#tally = tally;
    this.#prefix = prefix;
  }

  begin(record: Properties, index: number): void {
    this.#record = record;
    this.#index = index;
    this.rejection = null;
    this.quality = null;
    this.#slices = undefined;
    if (this.#extras.length > 0) this.#extras = [];
  }

  /** A figure that cannot be negative: a minus sign is an error of the service, also in `-0`. */
  amount(name: string, value: unknown): Decimal | null {
    if (typeof value === "string" && value.charCodeAt(0) !== MINUS) {
      const decimal = parseDecimal(value);
      if (decimal !== undefined) return decimal;
    }
    return value === undefined ? null : this.#readUnusualDecimal(name, value, false);
  }

  /** A figure that every record should have: `quality` notes its absence. */
  coreAmount(name: string, value: unknown): Decimal | null {
    if (value === undefined) this.noteProblem(name, "is missing");
    return this.amount(name, value);
  }

  /** A figure that only some records have: null counts as absent. */
  optionalAmount(name: string, value: unknown): Decimal | null {
    return value === null ? null : this.amount(name, value);
  }

  /** A figure of either sign that only some records have: a rate or a change. */
  rate(name: string, value: unknown): Decimal | null {
    return value === undefined || value === null ? null : this.#readUnusualDecimal(name, value, true);
  }

  #readUnusualDecimal(name: string, value: unknown, mayBeNegative: boolean): Decimal | null {
    const text =
      typeof value === "string" ? value : typeof value === "number" ? this.sourceOf(name) : undefined;
    const decimal = text === undefined ? undefined : parseDecimal(text);
    if (text === undefined || decimal === undefined) return this.#noteUnreadable(name, "is not a decimal");
    if (text.charCodeAt(0) !== MINUS) return decimal;
    if (!mayBeNegative) return this.#noteUnreadable(name, "is negative");
    return decimal.real === 0 ? { real: 0, exact: decimal.exact } : decimal;
  }

  rank(name: string, value: unknown): number | null {
    if (value === undefined || value === null) return null;
    const rank = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
    if (typeof rank === "number" && Number.isSafeInteger(rank) && rank >= 0 && !Object.is(rank, -0))
      return rank;
    return this.#noteUnreadable(name, "is not a rank");
  }

  flag(name: string, value: unknown): boolean | null {
    if (value === undefined || value === null || typeof value === "boolean") return value ?? null;
    return this.#noteUnreadable(name, "is not a boolean");
  }

  text(name: string, value: unknown): string | null {
    if (typeof value === "string") return value;
    if (value === undefined || value === null) return null;
    return typeof value === "number" ? this.sourceOf(name) : this.#noteUnreadable(name, "is not text");
  }

  /** Counts a text that this version does not know; it is stored like any other. */
  countIfUnknown<T extends string | null>(name: string, text: T, values: ReadonlySet<string>): T {
    if (text !== null && text !== "" && !values.has(text))
      this.#tally.count(`${this.#prefix}${name} = ${text}`, text);
    return text;
  }

  /** An id without which the record is rejected. */
  identity(name: string, value: unknown): string {
    if (typeof value === "string" && value !== "") return value;
    const id = this.id(name, value);
    if (id === null && this.rejection === null) this.rejection = `${name} is missing`;
    return id ?? "";
  }

  /** An id that may be absent; any value that cannot be an id rejects the record. */
  id(name: string, value: unknown): string | null {
    if (typeof value === "string") return value === "" ? null : value;
    if (value === undefined || value === null) return null;
    if (typeof value === "number") return this.sourceOf(name);
    this.rejection ??= `${name} is not an id`;
    return null;
  }

  /** The timestamp of the record, without which it is rejected. */
  timestamp(name: string, value: unknown): Micros {
    const micros = parseServiceTimestamp(value);
    if (micros !== undefined) return this.checkPlausible(name, micros);
    this.rejection ??=
      value === undefined || value === null ? `${name} is missing` : `${name} is not a UTC moment`;
    return 0;
  }

  /**
   * Notes a timestamp that no market can have had: such a record is stored, but never counts as the newest.
   */
  checkPlausible(name: string, micros: Micros): Micros {
    if (!isPlausible(micros)) this.noteProblem(name, "is implausible", formatTimestamp(micros));
    return micros;
  }

  optionalTimestamp(name: string, value: unknown): Micros | null {
    if (value === undefined || value === null) return null;
    const micros = parseServiceTimestamp(value);
    return micros ?? this.#noteUnreadable(name, "is not a UTC moment");
  }

  /** The properties of a nested object, with a reader for them; undefined if there is no object. */
  nested(name: string, value: unknown): { reader: RecordReader; properties: Properties } | undefined {
    if (value === undefined || value === null) return undefined;
    if (!isProperties(value)) {
      this.#noteUnreadable(name, "is not an object");
      return undefined;
    }
    const reader = new RecordReader(() => this.sourceOf(name), this.#tally, `${this.#prefix}${name}.`);
    reader.begin(value, 0);
    return { reader, properties: value };
  }

  /** A reader for the elements of the list `name`; `text` returns the source text of each by its position. */
  elements(name: string, text: RecordText): RecordReader {
    return new RecordReader(text, this.#tally, `${this.#prefix}${name}[].`);
  }

  /** Adds a problem of a field to `quality`. Equal records must give equal texts, or rows would change. */
  noteProblem(name: string, problem: string, raw?: string): void {
    const value = raw === undefined ? "" : `: ${raw.slice(0, MAX_RAW_LENGTH)}`;
    this.addQuality(`${this.#prefix}${name} ${problem}${value}`);
  }

  /** Adds the problems that a nested reader found. */
  addQuality(quality: string | null): void {
    if (quality === null) return;
    if (this.quality === null) this.quality = quality;
    else if (this.quality.length < MAX_QUALITY_LENGTH) this.quality += `; ${quality}`;
    else if (!this.quality.endsWith("; …")) this.quality += "; …";
  }

  addExtra(name: string, json: string): void {
    this.#extras.push([name, json]);
  }

  /** All properties that are not in `known`, as canonical JSON; each is counted as unknown. */
  extra(known: ReadonlySet<string>): string | null {
    if (this.#extras.length === 0 && this.#hasUsualNames()) return null;
    for (const name in this.#record) {
      if (known.has(name)) continue;
      const value = this.#record[name];
      // Strings, booleans and null need no source text, which is slow to find: a new field must not slow a
      // page down.
      const json =
        typeof value === "number" || (typeof value === "object" && value !== null)
          ? toCanonicalJson(this.sourceOf(name))
          : JSON.stringify(value);
      this.#extras.push([name, json]);
      this.#tally.count(this.#prefix === "" ? name : this.#prefix + name, json);
    }
    if (this.#extras.length === 0) {
      this.#usualNames = Object.keys(this.#record);
      return null;
    }
    if (this.#extras.length > 1) this.#extras.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${this.#extras.map(([name, json]) => `${JSON.stringify(name)}:${json}`).join(",")}}`;
  }

  #hasUsualNames(): boolean {
    let at = 0;
    for (const name in this.#record) if (name !== this.#usualNames[at++]) return false;
    return true;
  }

  /** The source text of one property's value. */
  sourceOf(name: string): string {
    this.#slices ??= sliceProperties(this.#text(this.#index));
    return this.#slices.get(name) ?? "";
  }

  #noteUnreadable(name: string, problem: string): null {
    this.noteProblem(name, problem, toCanonicalJson(this.sourceOf(name)));
    return null;
  }
}

export function isProperties(value: unknown): value is Properties {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A page with a new name in every record must not fill the memory with names. */
const MAX_NAMES = 500;
const MAX_NAME_LENGTH = 200;
const MAX_SAMPLE_LENGTH = 500;

/** Counts the names that this version does not know, with the first sample of each. */
export class UnknownTally {
  readonly #seen = new Map<string, { name: string; count: number; sample: string }>();

  count(name: string, sample: string): void {
    const short = name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name;
    const key = this.#seen.has(short) || this.#seen.size < MAX_NAMES ? short : "(other names)";
    const seen = this.#seen.get(key);
    if (seen) seen.count++;
    else this.#seen.set(key, { name: key, count: 1, sample: sample.slice(0, MAX_SAMPLE_LENGTH) });
  }

  fields(): UnknownField[] {
    return [...this.#seen.values()];
  }
}
