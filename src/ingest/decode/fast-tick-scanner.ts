import type { Decimal } from "../../model/decimal.ts";
import type { IndexTick } from "../../model/records.ts";
import { indexTypes } from "../../model/stream-columns.ts";
import type { Micros } from "../../model/time.ts";
import { ByteReader, ExpectedText } from "./byte-reader.ts";
import type { DecodedPage } from "./page.ts";
import { isPlausible } from "./record-reader.ts";

/** Room for what stands before the records, and for the first of them. */
const LONGEST_BEGINNING = 4_096;

const comma = new ExpectedText(",");

/**
 * Reads a page of index ticks of one index straight from its bytes, without building the texts and objects of
 * `JSON.parse`. Undefined for a page with anything unusual in it: `decodePage` then reads it from the start. Where this
 * reads a page, it reads exactly what `decodePage` would.
 */
export function scanTickPage(json: Uint8Array): DecodedPage<IndexTick> | undefined {
  const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
  const beginning = bytes.toString("latin1", 0, LONGEST_BEGINNING);
  const head = readHead(beginning);
  const shape = head && learnShape(beginning, head.length);
  if (!shape) return undefined;

  const reader = new ByteReader(bytes, head.length);
  const records: IndexTick[] = [];
  do {
    const tick = readTick(reader, shape);
    if (tick === undefined) return undefined;
    records.push(tick);
  } while (reader.take(comma));

  const tail = readTail(reader.rest());
  if (!tail || (head.nextId !== undefined && tail.nextId !== undefined)) return undefined;
  const nextId = (head.nextId ?? tail.nextId) || undefined;
  return { records, rejects: [], unknownFields: [], nextId, rawCount: records.length };
}

function readTick(reader: ByteReader, { indexType, indexId, parts, end }: TickShape): IndexTick | undefined {
  let ts: Micros = 0;
  let price: Decimal | null = null;
  let volume: Decimal | null = null;
  let tickVolume: Decimal | null = null;
  for (let i = 0; i < parts.length; i++) {
    const { before, field } = parts[i] as TickShape["parts"][number];
    if (!reader.take(before)) return undefined;
    if (field === "id") {
      if (!reader.skipText()) return undefined;
    } else if (field === "timestamp") {
      ts = reader.moment();
      if (!isPlausible(ts)) return undefined;
    } else {
      const decimal = reader.decimal();
      if (decimal === undefined) return undefined;
      if (field === "price") price = decimal;
      else if (field === "volume") volume = decimal;
      else tickVolume = decimal;
    }
  }
  if (!reader.take(end)) return undefined;
  return { indexType, indexId, ts, price, volume, tickVolume, name: null, quality: null, extra: null };
}

/** What differs from record to record. */
export type VaryingField = "id" | "price" | "volume" | "tickVolume" | "timestamp";

/** How all records of a page of index ticks are written, if they are written like the first. */
export interface TickShape {
  readonly indexType: string;
  readonly indexId: string;
  /** In the order of the page: the text that stands before each varying value, its opening quote included. */
  readonly parts: readonly { readonly before: ExpectedText; readonly field: VaryingField }[];
  /** The text from the last varying value's closing quote to the end of the record. */
  readonly end: ExpectedText;
}

/** What stands before the records. */
export interface PageHead {
  readonly length: number;
  /** Undefined: not named here. */
  readonly nextId: string | null | undefined;
}

// In all of these a text is printable ASCII without escapes, so that each byte is a character and stands for itself.
const nextIdProperty = /"nextId":(?:null|"([ !#-[\]-~]*)")/.source;
const head = new RegExp(`^\\{(?:${nextIdProperty},)?"content":\\[`);
const tail = new RegExp(`^\\](?:,${nextIdProperty})?\\}[ \\t\\r\\n]*$`);
const property = /[{,]"([A-Za-z]+)":"([ !#-[\]-~]*)"/y;

/** `text`: the page's beginning. Undefined for a page that does not begin as pages do. */
export function readHead(text: string): PageHead | undefined {
  const match = head.exec(text);
  return match ? { length: match[0].length, nextId: namedIn(match) } : undefined;
}

/** `text`: all that follows the last record. Undefined for a page that does not end as pages do. */
export function readTail(text: string): Pick<PageHead, "nextId"> | undefined {
  const match = tail.exec(text);
  return match ? { nextId: namedIn(match) } : undefined;
}

function namedIn([whole, nextId]: RegExpExecArray): PageHead["nextId"] {
  return nextId ?? (whole.includes('"nextId":null') ? null : undefined);
}

/** The shape of the record at `start`; undefined where it is not made of the usual properties, each once and a text. */
export function learnShape(text: string, start: number): TickShape | undefined {
  const seen = new Map<string, string>();
  const parts: { before: ExpectedText; field: VaryingField }[] = [];
  let constantFrom = start;
  let at = start;
  do {
    property.lastIndex = at;
    const match = property.exec(text);
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
  return { indexType, indexId, parts, end };
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
