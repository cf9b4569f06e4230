import { isUtf8 } from "node:buffer";
import { Failure } from "../../model/failure.ts";
import { propertyOf, type Reject, type StreamRecords, type UnknownField } from "../../model/records.ts";
import { noListFailure, nullListFailure } from "../../model/response-body.ts";
import { type Stream, streamDefinition } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { sliceElements, sliceProperties, toCanonicalJson } from "./json-source.ts";
import { isProperties, RecordReader, UnknownTally } from "./record-reader.ts";
import { type DecodeContext, type ReadRecord, recordReaders } from "./records.ts";

export interface DecodedPage<R> {
  /** In page order. Every element of `content` is either here or in `rejects`. */
  readonly records: R[];
  readonly rejects: Reject[];
  readonly unknownFields: UnknownField[];
  /** The cursor of the next page; undefined if there is none. */
  readonly nextId: string | undefined;
  /** The number of elements of `content`, readable or not. */
  readonly rawCount: number;
  /** How many of the rejects were readable, but from beyond `DecodeContext.latest`. */
  readonly ahead: number;
}

/** Why a readable record is rejected whose timestamp is beyond the service's clock. */
export const AHEAD_REASON = "timestamp is ahead of the service's clock";

/** Longer rejects are truncated, so that a huge one cannot fill the warehouse. */
const MAX_RAW_LENGTH = 65_536;

/**
 * Decodes a page. Every element of `content` becomes a record or a reject. Only a body without a list throws
 * (`malformed_body`, `no_list`, `null_list`): the walk must retry it, not take it for the end.
 */
export function decodePage<S extends Stream>(
  stream: S,
  json: string | Uint8Array,
  context: DecodeContext = {},
): DecodedPage<StreamRecords[S]> {
  return decodeWithSource(stream, json, context).page;
}

/** `rawOf`: the source text of a record of the page, by its position. */
export function decodeWithSource<S extends Stream>(
  stream: S,
  json: string | Uint8Array,
  context: DecodeContext,
): { readonly page: DecodedPage<StreamRecords[S]>; readonly rawOf: (at: number) => string } {
  const text = decodeText(json);
  const page = parseJson(text);
  if (isProperties(page) && page.content === null) throw nullListFailure();
  if (!isProperties(page) || !Array.isArray(page.content))
    throw noListFailure("it is not an object with a list in `content`");
  let pageSlices: Map<string, string> | undefined;
  const sourceOfProperty = (name: string) => {
    pageSlices ??= sliceProperties(text);
    return pageSlices.get(name) ?? "";
  };
  let contentSlices: string[] | undefined;
  const sourceOfItem = (index: number) => {
    contentSlices ??= sliceElements(sourceOfProperty("content"));
    return contentSlices[index] ?? "";
  };
  const tally = new UnknownTally();
  for (const name in page) {
    if (name !== "content" && name !== "nextId")
      tally.count(`page.${name}`, toCanonicalJson(sourceOfProperty(name)));
  }
  /** The positions of the records among the elements. */
  const positions: number[] = [];
  const decoded = {
    ...readRecords(recordReaders[stream], page.content, sourceOfItem, context, positions, tally),
    nextId: readCursor(page.nextId, sourceOfProperty),
    rawCount: page.content.length,
  };
  return { page: decoded, rawOf: (at) => sourceOfItem(positions[at] ?? -1) };
}

/** Reads parsed items; `sourceOfItem` returns the source text of one. Appends the positions of the records to `positions`. */
export function readRecords<R>(
  read: ReadRecord<R>,
  items: readonly unknown[],
  sourceOfItem: (index: number) => string,
  context: DecodeContext,
  positions: number[],
  tally = new UnknownTally(),
): Pick<DecodedPage<R>, "records" | "rejects" | "unknownFields" | "ahead"> {
  const records: R[] = [];
  const rejects: Reject[] = [];
  const latest = context.latest ?? Number.POSITIVE_INFINITY;
  let ahead = 0;
  const reader = new RecordReader(sourceOfItem, tally);
  for (let index = 0; index < items.length; index++) {
    const item = items[index];
    if (!isProperties(item)) {
      rejects.push({ reason: "not an object", raw: truncateRaw(sourceOfItem(index)) });
      continue;
    }
    reader.begin(item, index);
    const record = read(reader, item, context);
    let { rejection } = reader;
    // A record of a lookup has no timestamp.
    const { ts = latest } = record as { readonly ts?: Micros };
    if (rejection === null && ts > latest) {
      rejection = AHEAD_REASON;
      ahead++;
    }
    if (rejection === null) {
      records.push(record);
      positions.push(index);
    } else rejects.push({ reason: rejection, raw: truncateRaw(sourceOfItem(index)) });
  }
  return { records, rejects, unknownFields: tally.fields(), ahead };
}

/**
 * Returns a cursor that is not a string as JSON text: the service rejects it, and the walk restarts at its
 * anchor. If the page counted as the last one, it would prove history that no page contains.
 */
function readCursor(value: unknown, sourceOfProperty: (name: string) => string): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  return typeof value === "string" ? value : toCanonicalJson(sourceOfProperty("nextId"));
}

/** The part of an unreadable record that is stored. */
export function truncateRaw(raw: string): string {
  if (raw.length <= MAX_RAW_LENGTH) return raw;
  return `${raw.slice(0, MAX_RAW_LENGTH)}… (cut: ${raw.length} characters in all)`;
}

function decodeText(json: string | Uint8Array): string {
  if (typeof json === "string") return json.charCodeAt(0) === 0xfeff ? json.slice(1) : json;
  // A body cut inside a character would otherwise decode to replacement characters and be accepted.
  if (!isUtf8(json)) throw malformedPageFailure("the response is not UTF-8");
  return decodeText(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString("utf8"));
}

/** Without the parser's message, which quotes the body. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw malformedPageFailure("the response is not JSON");
  }
}

function malformedPageFailure(message: string): Failure {
  return new Failure(message, { code: "malformed_body" });
}

/** A record of a moment of which the page has listed another record before. */
export interface DuplicateRecord<R> {
  readonly record: R;
  readonly raw: string;
  /** The record that the page lists first. */
  readonly first: R;
  readonly firstRaw: string;
}

export interface SeparatedRecords<R> {
  /** One of each moment: the one that the page lists first, because the service lists the newest first. */
  readonly records: R[];
  readonly duplicates: readonly DuplicateRecord<R>[];
}

/**
 * Separates the duplicates of a moment of the same series, listing, asset or contract. A repetition of the same record
 * is dropped. `rawOf` returns the source text of a record by its position.
 */
export function separateDuplicates<R>(
  stream: Stream,
  records: R[],
  rawOf: (index: number) => string,
): SeparatedRecords<R> {
  const { kind, columns } = streamDefinition(stream);
  const timestamps = records.map((record) => (record as { readonly ts: Micros }).ts);
  if (kind === "lookup" || isDescending(timestamps)) return { records, duplicates: [] };
  const identity = columns.filter(({ reading }) => reading === "identity").map(propertyOf);
  const momentOf = (at: number) => {
    const record = records[at] as Record<string, unknown>;
    return [timestamps[at], ...identity.map((property) => record[property])].join("\n");
  };
  const positions = Map.groupBy(records.keys(), momentOf);
  if (positions.size === records.length) return { records, duplicates: [] };
  const duplicates = [...positions.values()].flatMap(([first = 0, ...others]) => {
    const firstRaw = others.length > 0 ? rawOf(first) : "";
    const seen = new Set(others.length > 0 ? [toCanonicalJson(firstRaw)] : []);
    return others.flatMap((at): DuplicateRecord<R>[] => {
      const raw = rawOf(at);
      const isRepeated = seen.size === seen.add(toCanonicalJson(raw)).size;
      const texts = { raw: truncateRaw(raw), firstRaw: truncateRaw(firstRaw) };
      return isRepeated ? [] : [{ record: records[at] as R, first: records[first] as R, ...texts }];
    });
  });
  const firsts = [...positions.values()].map(([first = 0]) => records[first] as R);
  return { records: firsts, duplicates };
}

/** The usual order of a history, which has no moment twice: every timestamp is below the one before, and all are below `end`. */
export function isDescending(timestamps: ArrayLike<Micros>, end = Number.POSITIVE_INFINITY): boolean {
  let previous = end;
  for (let i = 0; i < timestamps.length; i++) {
    const ts = timestamps[i] as Micros;
    if (ts >= previous) return false;
    previous = ts;
  }
  return true;
}
