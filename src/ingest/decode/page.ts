import { isUtf8 } from "node:buffer";
import { Failure } from "../../model/failure.ts";
import type { Reject, StreamRecords, UnknownField } from "../../model/records.ts";
import type { Stream } from "../../model/streams.ts";
import type { DecodeContext } from "./column-reader.ts";
import { canonicalJson, elementSlices, propertySlices } from "./json-source.ts";
import { isProperties, type Properties, RecordReader, UnknownTally } from "./record-reader.ts";
import { type ReadRecord, recordReaders } from "./records.ts";

export interface DecodedPage<R> {
  /** In the order of the page. Together with `rejects` they account for every element of `content`. */
  readonly records: R[];
  readonly rejects: Reject[];
  readonly unknownFields: UnknownField[];
  /** The cursor of the next page; undefined where the page named none. */
  readonly nextId: string | undefined;
  /** Elements of `content`, readable or not. */
  readonly rawCount: number;
}

/** Longer records than this are not read by people; a bomb must not fill the warehouse. */
const LONGEST_RAW = 65_536;

/**
 * Reads a list answer. Anything inside `content` becomes a record or a reject; only a body that is no list at all throws
 * `malformed_body`, since the walk must then ask again instead of taking it for the end.
 */
export function decodePage<S extends Stream>(
  stream: S,
  json: string | Uint8Array,
  context: DecodeContext = {},
): DecodedPage<StreamRecords[S]> {
  const text = textOf(json);
  const page = parse(text);
  if (!isProperties(page) || !Array.isArray(page.content))
    throw malformed("the answer is not an object with a list in `content`");
  let pageSlices: Map<string, string> | undefined;
  const sourceOf = (name: string) => {
    pageSlices ??= propertySlices(text);
    return pageSlices.get(name) ?? "";
  };
  let contentSlices: string[] | undefined;
  const sliceOf = (index: number) => {
    contentSlices ??= elementSlices(sourceOf("content"));
    return contentSlices[index] ?? "";
  };
  const tally = new UnknownTally();
  for (const name in page) {
    if (name !== "content" && name !== "nextId") tally.count(`page.${name}`, canonicalJson(sourceOf(name)));
  }
  return {
    ...readAll(recordReaders[stream], page.content, sliceOf, context, tally),
    nextId: cursor(page.nextId, sourceOf),
    rawCount: page.content.length,
  };
}

/** Reads items that `JSON.parse` gave, with `sliceOf` for the text that each was parsed from. */
export function readAll<R>(
  read: ReadRecord<R>,
  items: readonly unknown[],
  sliceOf: (index: number) => string,
  context: DecodeContext,
  tally: UnknownTally,
): { records: R[]; rejects: Reject[]; unknownFields: UnknownField[] } {
  const records: R[] = [];
  const rejects: Reject[] = [];
  const reader = new RecordReader(sliceOf, tally);
  for (let index = 0; index < items.length; index++) {
    const item = items[index];
    if (!isProperties(item)) {
      rejects.push({ reason: "not an object", raw: capped(sliceOf(index)) });
      continue;
    }
    reader.begin(item as Properties, index);
    const record = read(reader, item, context);
    if (reader.rejection === null) records.push(record);
    else rejects.push({ reason: reader.rejection, raw: capped(sliceOf(index)) });
  }
  return { records, rejects, unknownFields: tally.fields() };
}

/**
 * A cursor of an unexpected kind is passed on as text: the service refuses it and the walk re-anchors, whereas to take
 * it for the end would be to claim history that nobody has read.
 */
function cursor(value: unknown, sourceOf: (name: string) => string): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  return typeof value === "string" ? value : canonicalJson(sourceOf("nextId"));
}

/** What is kept of a record that cannot be read. */
export function capped(raw: string): string {
  if (raw.length <= LONGEST_RAW) return raw;
  return `${raw.slice(0, LONGEST_RAW)}… (cut: ${raw.length} characters in all)`;
}

function textOf(json: string | Uint8Array): string {
  if (typeof json === "string") return json.charCodeAt(0) === 0xfeff ? json.slice(1) : json;
  // A body cut within a character would otherwise decode to replacement characters and be believed.
  if (!isUtf8(json)) throw malformed("the answer is not UTF-8");
  return textOf(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString("utf8"));
}

/** Without the parser's own message, which quotes the body. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformed("the answer is not JSON");
  }
}

function malformed(message: string): Failure {
  return new Failure(message, { family: "retry", code: "malformed_body" });
}
