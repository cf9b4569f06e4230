import { indexTypes } from "../model/series.ts";
import { ExpectedText } from "./byte-reader.ts";

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
