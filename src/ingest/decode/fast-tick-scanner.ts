import { indexTypes } from "../../model/stream-columns.ts";
import {
  allocateColumns,
  type DecimalColumn,
  type ExactDigits,
  type TickColumns,
} from "../../model/tick-columns.ts";
import { isPlausible } from "../../model/time.ts";
import { ByteReader, ExpectedText } from "./byte-reader.ts";

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
  const prefix = readPrefix(start);
  const shape = prefix && readShape(start, prefix.length);
  if (!shape) return undefined;

  const reader = new ByteReader(bytes, prefix.length);
  const columns = readColumns(reader, shape, bytes.length);
  const suffix = columns && readSuffix(reader.readRest());
  if (!suffix || (prefix.nextId !== undefined && suffix.nextId !== undefined)) return undefined;
  return { columns, nextId: (prefix.nextId ?? suffix.nextId) || undefined, firstRaw: shape.firstRaw };
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
type VaryingField = "id" | "timestamp" | DecimalColumn;

/** The layout of the page's first record; all others must have the same. */
interface TickShape {
  readonly indexType: string;
  readonly indexId: string;
  /** In order: the constant text before each varying value, including the opening quote. */
  readonly parts: readonly { readonly before: ExpectedText; readonly field: VaryingField }[];
  /** The constant text from the last value's closing quote to the end of the record. */
  readonly end: ExpectedText;
  /** No record is shorter. */
  readonly minBytes: number;
  readonly firstRaw: string;
}

/** The text before the records. */
interface PagePrefix {
  readonly length: number;
  /** Undefined: not in this part of the page. */
  readonly nextId: string | null | undefined;
}

// All patterns match printable ASCII without escapes only, so that byte and character positions agree.
const nextIdPattern = /"nextId":(?:null|"([ !#-[\]-~]*)")/.source;
const prefixPattern = new RegExp(`^\\{(?:${nextIdPattern},)?"content":\\[`);
const suffixPattern = new RegExp(`^\\](?:,${nextIdPattern})?\\}[ \\t\\r\\n]*$`);
const propertyPattern = /[{,]"([A-Za-z]+)":"([ !#-[\]-~]*)"/y;

/** `text`: the start of the page. Undefined if it has an unusual form. */
function readPrefix(text: string): PagePrefix | undefined {
  const match = prefixPattern.exec(text);
  return match ? { length: match[0].length, nextId: readNextId(match) } : undefined;
}

/** `text`: everything after the last record. Undefined if it has an unusual form. */
function readSuffix(text: string): Pick<PagePrefix, "nextId"> | undefined {
  const match = suffixPattern.exec(text);
  return match ? { nextId: readNextId(match) } : undefined;
}

function readNextId([match, nextId]: RegExpExecArray): PagePrefix["nextId"] {
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
    if (isVarying(name)) {
      const valueAt = at - 1 - value.length;
      parts.push({ before: new ExpectedText(text.slice(constantFrom, valueAt)), field: name });
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

const varyingFields: ReadonlySet<string> = new Set<VaryingField>([
  "id",
  "price",
  "volume",
  "tickVolume",
  "timestamp",
]);

function isVarying(name: string): name is VaryingField {
  return varyingFields.has(name);
}
