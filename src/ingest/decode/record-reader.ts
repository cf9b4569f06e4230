import { type Decimal, readDecimal } from "../../model/decimal.ts";
import type { UnknownField } from "../../model/records.ts";
import { formatInstant, type Micros, parseInstant } from "../../model/time.ts";
import { canonicalJson, propertySlices } from "./json-source.ts";

export type Properties = Readonly<Record<string, unknown>>;

/** Gives the text of a record as it came, when something about it cannot be told from the parsed value. */
export type RecordText = (index: number) => string;

const MINUS = 45;
const LONGEST_RAW = 4096;
const LONGEST_QUALITY = 16_384;

/** Bitcoin's first block was mined in January 2009; no market has been older, and none of today's bars is from the 2090s. */
const EARLIEST = parseInstant("2009-01-01T00:00:00Z") ?? 0;
const LATEST = parseInstant("2090-01-01T00:00:00Z") ?? 0;

export function isPlausible(micros: Micros): boolean {
  return micros >= EARLIEST && micros < LATEST;
}

/**
 * Reads the fields of one record after the other: a page has one reader. Callers pass each value beside its name
 * instead of the name alone, since a property read with a fixed name is several times cheaper; the hot path never
 * asks for the record's text.
 */
export class RecordReader {
  /** Why the record cannot be kept as a record; the first reason stands. */
  rejection: string | null = null;

  #record: Properties = {};
  #index = 0;
  #quality: string | null = null;
  #slices: Map<string, string> | undefined;
  /** The names of the last record that had only known ones: the next record has the same, nearly always. */
  #usualNames: readonly string[] = [];
  #extras: [name: string, json: string][] = [];
  readonly #text: RecordText;
  readonly #tally: UnknownTally;
  /** What a nested object's names are called in notes and counts: `marketCapPercentChange.`. */
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
    this.#quality = null;
    this.#slices = undefined;
    if (this.#extras.length > 0) this.#extras = [];
  }

  /** A figure that cannot be below zero: with a minus sign it is an error upstream, `-0` included. */
  amount(name: string, value: unknown): Decimal | null {
    if (typeof value === "string" && value.charCodeAt(0) !== MINUS) {
      const decimal = readDecimal(value);
      if (decimal !== undefined) return decimal;
    }
    return value === undefined ? null : this.#unusualDecimal(name, value, false);
  }

  /** A figure without which the record says little: its absence is noted. */
  coreAmount(name: string, value: unknown): Decimal | null {
    if (value === undefined) this.note(name, "is missing");
    return this.amount(name, value);
  }

  /** A figure that only some records have: null is as good as absent. */
  optionalAmount(name: string, value: unknown): Decimal | null {
    return value === null ? null : this.amount(name, value);
  }

  /** A figure of either sign that only some records have: a rate or a change. */
  rate(name: string, value: unknown): Decimal | null {
    return value === undefined || value === null ? null : this.#unusualDecimal(name, value, true);
  }

  #unusualDecimal(name: string, value: unknown, mayBeNegative: boolean): Decimal | null {
    const text =
      typeof value === "string" ? value : typeof value === "number" ? this.sourceOf(name) : undefined;
    const decimal = text === undefined ? undefined : readDecimal(text);
    if (text === undefined || decimal === undefined) return this.#unread(name, "is not a decimal");
    if (text.charCodeAt(0) !== MINUS) return decimal;
    if (!mayBeNegative) return this.#unread(name, "is negative");
    return decimal.real === 0 ? { real: 0, exact: decimal.exact } : decimal;
  }

  rank(name: string, value: unknown): number | null {
    if (value === undefined || value === null) return null;
    const rank = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
    if (typeof rank === "number" && Number.isSafeInteger(rank) && rank >= 0 && !Object.is(rank, -0))
      return rank;
    return this.#unread(name, "is not a rank");
  }

  flag(name: string, value: unknown): boolean | null {
    if (value === undefined || value === null || typeof value === "boolean") return value ?? null;
    return this.#unread(name, "is not a boolean");
  }

  text(name: string, value: unknown): string | null {
    if (typeof value === "string") return value;
    if (value === undefined || value === null) return null;
    return typeof value === "number" ? this.sourceOf(name) : this.#unread(name, "is not text");
  }

  /** Counts a text that this version does not know; it is stored like any other. */
  known<T extends string | null>(name: string, text: T, values: ReadonlySet<string>): T {
    if (text !== null && text !== "" && !values.has(text))
      this.#tally.count(`${this.#prefix}${name} = ${text}`, text);
    return text;
  }

  /** An id that the record cannot be filed without. */
  identity(name: string, value: unknown): string {
    if (typeof value === "string" && value !== "") return value;
    const id = this.id(name, value);
    if (id === null && this.rejection === null) this.rejection = `${name} is missing`;
    return id ?? "";
  }

  /** An id that may be absent, but not be something that no id can be. */
  id(name: string, value: unknown): string | null {
    if (typeof value === "string") return value === "" ? null : value;
    if (value === undefined || value === null) return null;
    if (typeof value === "number") return this.sourceOf(name);
    this.rejection ??= `${name} is not an id`;
    return null;
  }

  /** The moment that the record is filed under. */
  timestamp(name: string, value: unknown): Micros {
    const micros = typeof value === "string" ? parseInstant(value) : undefined;
    if (micros !== undefined) return this.plausible(name, micros);
    this.rejection ??=
      value === undefined || value === null ? `${name} is missing` : `${name} is not a UTC moment`;
    return 0;
  }

  /** A moment that no market can have had is kept, with a doubt: it must not move anybody's idea of "newest". */
  plausible(name: string, micros: Micros): Micros {
    if (!isPlausible(micros)) this.note(name, "is implausible", formatInstant(micros));
    return micros;
  }

  moment(name: string, value: unknown): Micros | null {
    if (value === undefined || value === null) return null;
    const micros = typeof value === "string" ? parseInstant(value) : undefined;
    return micros ?? this.#unread(name, "is not a UTC moment");
  }

  /** The properties of a nested object, with a reader of their own; undefined where there is none. */
  nested(name: string, value: unknown): { reader: RecordReader; properties: Properties } | undefined {
    if (value === undefined || value === null) return undefined;
    if (!isProperties(value)) {
      this.#unread(name, "is not an object");
      return undefined;
    }
    const reader = new RecordReader(() => this.sourceOf(name), this.#tally, `${this.#prefix}${name}.`);
    reader.begin(value, 0);
    return { reader, properties: value };
  }

  /** A reader for the elements of the list `name`, whose text is given by position. */
  elements(name: string, text: RecordText): RecordReader {
    return new RecordReader(text, this.#tally, `${this.#prefix}${name}[].`);
  }

  /** Records a doubt about a field, in words. The same record always gives the same words. */
  note(name: string, doubt: string, raw?: string): void {
    const words = `${this.#prefix}${name} ${doubt}${raw === undefined ? "" : `: ${raw.slice(0, LONGEST_RAW)}`}`;
    this.adopt(words);
  }

  /** Takes over what a nested reader had to say. */
  adopt(quality: string | null): void {
    if (quality === null) return;
    if (this.#quality === null) this.#quality = quality;
    else if (this.#quality.length < LONGEST_QUALITY) this.#quality += `; ${quality}`;
    else if (!this.#quality.endsWith("; …")) this.#quality += "; …";
  }

  /** Keeps something beside the fields that the record type has. */
  keep(name: string, json: string): void {
    this.#extras.push([name, json]);
  }

  quality(): string | null {
    return this.#quality;
  }

  /**
   * All properties that are not in `known`, as canonical JSON. Those in `foreseen` are kept without being counted as
   * unknown.
   */
  extra(known: ReadonlySet<string>, foreseen?: ReadonlySet<string>): string | null {
    if (this.#extras.length === 0 && this.#hasUsualNames()) return null;
    for (const name in this.#record) {
      if (known.has(name)) continue;
      const value = this.#record[name];
      // Strings, booleans and null have one form each, so that a new field of those kinds does not slow a page down.
      const json =
        typeof value === "number" || (typeof value === "object" && value !== null)
          ? canonicalJson(this.sourceOf(name))
          : JSON.stringify(value);
      this.#extras.push([name, json]);
      if (!foreseen?.has(name)) this.#tally.count(this.#prefix === "" ? name : this.#prefix + name, json);
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

  /** The text of one property's value as it came. */
  sourceOf(name: string): string {
    this.#slices ??= propertySlices(this.#text(this.#index));
    return this.#slices.get(name) ?? "";
  }

  #unread(name: string, doubt: string): null {
    this.note(name, doubt, canonicalJson(this.sourceOf(name)));
    return null;
  }
}

export function isProperties(value: unknown): value is Properties {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A page that invents a new name for every record must not fill the memory with names. */
const MOST_NAMES = 500;
const LONGEST_NAME = 200;
const LONGEST_SAMPLE = 500;

/** Counts what this version does not know, with the first sample of each name. */
export class UnknownTally {
  readonly #seen = new Map<string, { count: number; sample: string }>();

  count(name: string, sample: string): void {
    const known = this.#seen.get(name);
    if (known) {
      known.count++;
      return;
    }
    const short = name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name;
    const key = this.#seen.has(short) || this.#seen.size < MOST_NAMES ? short : "(other names)";
    const entry = this.#seen.get(key);
    if (entry) entry.count++;
    else this.#seen.set(key, { count: 1, sample: sample.slice(0, LONGEST_SAMPLE) });
  }

  fields(): UnknownField[] {
    return [...this.#seen].map(([name, { count, sample }]) => ({ name, count, sample }));
  }
}
