import type { TriggeredFault } from "./script.ts";

/**
 * The properties of a JSON object in order, each value as JSON text. This form can hold duplicate keys, __proto__, and
 * numbers of any length.
 */
export type JsonFields = [name: string, json: string][];

/** JSON.rawJSON and the reviver's source text preserve the digits of numbers. TypeScript has no types for them yet. */
const json = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
};

export function parsePreservingDigits(text: string): unknown {
  // A reviver takes ten times as long: most pages have their decimals as strings.
  if (!/":-?\d/.test(text)) return JSON.parse(text);
  return json.parse(text, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined ? json.rawJSON(source) : value,
  );
}

export function toJsonFields(record: object): JsonFields {
  return Object.entries(record).map(([name, value]) => [name, JSON.stringify(value)]);
}

export function formatJsonFields(fields: JsonFields): string {
  return `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

/** Whether the parameter `rows` of a payload fault selects this row. */
export function appliesToRow(fault: TriggeredFault, at: number, count: number): boolean {
  const rows = fault.line.textOf("rows");
  if (rows === "all") return true;
  if (rows === "first") return at === 0;
  if (rows === "last") return at === count - 1;
  return fault.chance("row", at) < Number(rows);
}

/** Applies a payload fault to a record; undefined for any other fault. */
export function applyRecordFault(fault: TriggeredFault, fields: JsonFields): JsonFields | undefined {
  return RECORD_FAULTS[fault.line.definition.name]?.(fields, fault);
}

const RECORD_FAULTS: Record<string, (fields: JsonFields, fault: TriggeredFault) => JsonFields> = {
  "unknown-fields": (fields) => [
    ...fields,
    ["grade", '"A+"'],
    ["sequenceNumber", "90071992547409931"],
    ["venue", '{"city":"Zürich","tags":["new",null,true]}'],
  ],
  "reordered-fields": (fields) => fields.toReversed(),
  "duplicate-keys": (fields) => [...fields.map(([name]): [string, string] => [name, '"0.000"']), ...fields],
  "proto-key": (fields) => [
    ...fields,
    ["__proto__", '{"polluted":true}'],
    ["constructor", '{"prototype":{"polluted":true}}'],
  ],
  decimals: (fields, { line }) => changeTexts(fields, isDecimal, DECIMAL_FORMS[line.textOf("as")]),
  set(fields, { line }) {
    const value = line.textOf("value");
    return setField(
      fields,
      line.textOf("field"),
      line.textOf("as") === "json" ? value : JSON.stringify(value),
    );
  },
  "echo-secrets": (fields, { line, secrets }) =>
    setField(fields, line.textOf("field"), formatSecrets(secrets(), line.textOf("as"))),
  drop: (fields, { line }) => fields.filter(([name]) => name !== line.textOf("field")),
  timestamps: (fields, { line }) => changeTexts(fields, isTimestamp, TIMESTAMP_FORMS[line.textOf("as")]),
  "shift-timestamps": (fields, { line }) =>
    changeTexts(fields, isTimestamp, (text) =>
      JSON.stringify(new Date(Date.parse(text) + line.numberOf("by")).toISOString()),
    ),
  "upside-down"(fields) {
    const readValue = (property: string) => fields.find(([name]) => name === property)?.[1];
    const [high, low] = [readValue("high"), readValue("low")];
    return high === undefined || low === undefined
      ? fields
      : setField(setField(fields, "high", low), "low", high);
  },
};

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
  change: ((text: string) => string) | undefined,
): JsonFields {
  return fields.map((field) =>
    change && isSelected(field) ? [field[0], change(field[1].replaceAll('"', ""))] : field,
  );
}

function isDecimal([name, value]: [string, string]): boolean {
  return /^"?-?\d+(\.\d+)?"?$/.test(value) && !/id$|name$|symbol$|rank$/i.test(name);
}

const DECIMAL_FORMS: Record<string, (digits: string) => string> = {
  number: (digits) => digits,
  exponent: (digits) => `"${withExponent(digits)}"`,
  zeros: (digits) => `"${digits.includes(".") ? digits : `${digits}.`}000"`,
  tiny: () => '"1e-18"',
  long(digits) {
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

const TIMESTAMP_FORMS: Record<string, (text: string) => string> = {
  us(text) {
    const [seconds, fraction] = splitSeconds(text);
    return `"${seconds}.${fraction.padEnd(6, "0").slice(0, 6)}Z"`;
  },
  ns(text) {
    const [seconds, fraction] = splitSeconds(text);
    return `"${seconds}.${fraction.padEnd(9, "0")}Z"`;
  },
  "no-zone": (text) => `"${text.replace("Z", "")}"`,
  offset: (text) => `"${new Date(Date.parse(text) + 7_200_000).toISOString().replace("Z", "+02:00")}"`,
  "zero-offset": (text) => `"${text.replace("Z", "+00:00")}"`,
  leap: (text) => `"${splitSeconds(text)[0].slice(0, -2)}60Z"`,
  "midnight-24": (text) => `"${text.slice(0, 10)}T24:00:00Z"`,
  epoch: (text) => String(Date.parse(text)),
  "epoch-text": (text) => `"${Date.parse(text)}"`,
  1970: () => '"1970-01-01T00:00:00Z"',
  2099: () => '"2099-01-01T00:00:00Z"',
};
