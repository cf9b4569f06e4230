import type { Decimal } from "../model/decimal.ts";
import type { Micros } from "../model/instant.ts";
import type { IndexTick } from "../model/records.ts";
import { ByteReader, ExpectedText } from "./byte-reader.ts";
import type { DecodedPage } from "./decode-page.ts";
import { isPlausible } from "./decode-reader.ts";
import { learnShape, readHead, readTail, type TickShape } from "./tick-page-shape.ts";

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
