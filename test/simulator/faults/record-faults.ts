import { type Fault, httpFault, type Options, type RowChoice } from "../fault.ts";
import type { JsonFields } from "./page.ts";

/** Which records of a page it changes. Default: all. */
type RowOptions = Options<{ rows?: RowChoice }>;

function recordFault(name: string, options: RowOptions, record: NonNullable<Fault["record"]>): Fault {
  return httpFault(name, options, { record, rows: options.rows ?? "all" });
}

/** Adds undocumented properties. */
export const unknownFields = (options: RowOptions = {}): Fault =>
  recordFault("unknownFields", options, (fields) => [
    ...fields,
    ["grade", '"A+"'],
    ["sequenceNumber", "90071992547409931"],
    ["venue", '{"city":"Zürich","tags":["new",null,true]}'],
  ]);

/** Reverses the order of the properties. */
export const reorderedFields = (options: RowOptions = {}): Fault =>
  recordFault("reorderedFields", options, (fields) => fields.toReversed());

/** Sends every property twice, the first time with a wrong value. */
export const duplicateKeys = (options: RowOptions = {}): Fault =>
  recordFault("duplicateKeys", options, (fields) => [
    ...fields.map(([name]): [string, string] => [name, '"0.000"']),
    ...fields,
  ]);

/** Adds __proto__ and constructor as properties. */
export const protoKey = (options: RowOptions = {}): Fault =>
  recordFault("protoKey", options, (fields) => [
    ...fields,
    ["__proto__", '{"polluted":true}'],
    ["constructor", '{"prototype":{"polluted":true}}'],
  ]);

/** Formats decimals as numbers, with an exponent or trailing zeros (same value); with 30 digits, or as 1e-18 (other value). */
export function decimals(form: keyof typeof DECIMAL_FORMS, options: RowOptions = {}): Fault {
  return recordFault(`decimals ${form}`, options, (fields) =>
    changeTexts(fields, isDecimal, DECIMAL_FORMS[form]),
  );
}

/** Sets a property to any value of JSON. */
export function set(field: string, value: unknown, options: RowOptions = {}): Fault {
  return recordFault("set", options, (fields) => setField(fields, field, JSON.stringify(value)));
}

/** Sets a property to the client's secret and its newest tokens. */
export function echoSecrets(
  options: RowOptions & { field?: string; as?: "plain" | "nested" | "escaped" | "url" } = {},
): Fault {
  const { field = "debug", as = "plain" } = options;
  return recordFault("echoSecrets", options, (fields, { service }) =>
    setField(fields, field, formatSecrets(service.secrets, as)),
  );
}

/** Removes a property from the records. */
export const drop = (field: string, options: RowOptions = {}): Fault =>
  recordFault("drop", options, (fields) => fields.filter(([name]) => name !== field));

/** Formats timestamps differently; seconds, us, ns, offset, zero-offset, epoch and epoch-text mean the same time. */
export function timestamps(form: keyof typeof TIMESTAMP_FORMS, options: RowOptions = {}): Fault {
  return recordFault("timestamps", options, (fields) =>
    changeTexts(fields, isTimestamp, TIMESTAMP_FORMS[form]),
  );
}

/** Moves the timestamps, perhaps back: a socket with an offset, a record from the future. */
export function shiftTimestamps(ms: number, options: RowOptions = {}): Fault {
  return recordFault("shiftTimestamps", options, (fields) =>
    changeTexts(fields, isTimestamp, (text) => JSON.stringify(new Date(Date.parse(text) + ms).toISOString())),
  );
}

/** Swaps high and low. */
export const upsideDown = (options: RowOptions = {}): Fault =>
  recordFault("upsideDown", options, (fields) => {
    const readValue = (property: string) => fields.find(([name]) => name === property)?.[1];
    const [high, low] = [readValue("high"), readValue("low")];
    return high === undefined || low === undefined
      ? fields
      : setField(setField(fields, "high", low), "low", high);
  });

/** All secrets as one JSON value: plain, with every character escaped, or encoded for a URL. */
function formatSecrets(secrets: readonly string[], form: string): string {
  const text = `Bearer ${secrets.join(" ")}`;
  if (form === "url") return JSON.stringify(`?access_token=${secrets.map(encodeURIComponent).join("&")}`);
  if (form === "nested") return JSON.stringify({ request: { headers: [text], [text]: null } });
  if (form === "plain") return JSON.stringify(text);
  return `"${Array.from(text, escapeCharacter).join("")}"`;
}

/** Every row of a page may have all secrets. */
const escapes = new Map<string, string>();

function escapeCharacter(char: string): string {
  const known = escapes.get(char) ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  escapes.set(char, known);
  return known;
}

function setField(fields: JsonFields, name: string, value: string): JsonFields {
  const others = fields.some(([known]) => known === name)
    ? fields
    : [...fields, [name, ""] as [string, string]];
  return others.map(([known, old]) => [known, known === name ? value : old]);
}

/** Replaces each selected value by another JSON text; `change` gets it without quotation marks. */
function changeTexts(
  fields: JsonFields,
  isSelected: (field: [string, string]) => boolean,
  change: (text: string) => string,
): JsonFields {
  return fields.map((field) =>
    isSelected(field) ? [field[0], change(field[1].replaceAll('"', ""))] : field,
  );
}

function isDecimal([name, value]: [string, string]): boolean {
  return /^"?-?\d+(\.\d+)?"?$/.test(value) && !/id$|name$|symbol$|rank$/i.test(name);
}

const DECIMAL_FORMS = {
  number: (digits: string) => digits,
  exponent: (digits: string) => `"${withExponent(digits)}"`,
  zeros: (digits: string) => `"${digits.includes(".") ? digits : `${digits}.`}000"`,
  tiny: () => '"1e-18"',
  long(digits: string) {
    const [whole = "0", fraction = ""] = digits.split(".");
    const pattern = "123456789123456789123456789123";
    return `"${whole}.${(fraction + pattern).slice(0, Math.max(1, 30 - whole.replace("-", "").length))}"`;
  },
};

/** Formats the same value with an exponent: 1234.5 → 1.2345E+3. */
function withExponent(digits: string): string {
  const sign = digits.startsWith("-") ? "-" : "";
  const [whole = "0", fraction = ""] = digits.replace("-", "").split(".");
  const [first = "0", ...rest] = whole + fraction;
  return `${sign}${first}${rest.length > 0 ? `.${rest.join("")}` : ""}E+${whole.length - 1}`;
}

function isTimestamp([name, value]: [string, string]): boolean {
  return /timestamp$|^(lastMoved|listing|expiration)$/i.test(name) && /^"\d{4}-/.test(value);
}

/** Of `2026-03-01T12:00:00.123Z`, the text before the fraction and the fraction. */
function splitSeconds(text: string): [seconds: string, fraction: string] {
  const [seconds = text, fraction = ""] = text.replace("Z", "").split(".");
  return [seconds, fraction];
}

const TIMESTAMP_FORMS = {
  seconds: (text: string) => `"${splitSeconds(text)[0]}Z"`,
  us(text: string) {
    const [seconds, fraction] = splitSeconds(text);
    return `"${seconds}.${fraction.padEnd(6, "0").slice(0, 6)}Z"`;
  },
  ns(text: string) {
    const [seconds, fraction] = splitSeconds(text);
    return `"${seconds}.${fraction.padEnd(9, "0")}Z"`;
  },
  "no-zone": (text: string) => `"${text.replace("Z", "")}"`,
  offset: (text: string) =>
    `"${new Date(Date.parse(text) + 7_200_000).toISOString().replace("Z", "+02:00")}"`,
  "zero-offset": (text: string) => `"${text.replace("Z", "+00:00")}"`,
  leap: (text: string) => `"${splitSeconds(text)[0].slice(0, -2)}60Z"`,
  "midnight-24": (text: string) => `"${text.slice(0, 10)}T24:00:00Z"`,
  epoch: (text: string) => String(Date.parse(text)),
  "epoch-text": (text: string) => `"${Date.parse(text)}"`,
  1970: () => '"1970-01-01T00:00:00Z"',
  2099: () => '"2099-01-01T00:00:00Z"',
};
