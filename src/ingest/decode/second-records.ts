import { propertyOf } from "../../model/records.ts";
import { type Stream, streamDefinition } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { toCanonicalJson } from "./json-source.ts";
import { truncateRaw } from "./page.ts";

/** A record of a moment of which the page has listed another record before. */
export interface SecondRecord<R> {
  readonly record: R;
  readonly raw: string;
  /** The record that the page lists first. */
  readonly first: R;
  readonly firstRaw: string;
}

export interface SeparatedRecords<R> {
  /** One of each moment: the one that the page lists first, because the service lists the newest first. */
  readonly records: R[];
  readonly seconds: readonly SecondRecord<R>[];
}

/**
 * Separates the second records of a moment of the same series, listing, asset or contract. A repetition of the same record
 * is dropped. `rawOf` returns the source text of a record by its position.
 */
export function separateSeconds<R>(
  stream: Stream,
  records: R[],
  rawOf: (index: number) => string,
): SeparatedRecords<R> {
  if (streamDefinition(stream).kind === "lookup" || isDescending(records)) return { records, seconds: [] };
  const properties = ["ts", ...identityOf(stream)];
  const positions = new Map<string, number[]>();
  records.forEach((record, at) => {
    const values = properties.map((property) => (record as Record<string, unknown>)[property]);
    const moment = values.join("\n");
    const listed = positions.get(moment);
    if (listed) listed.push(at);
    else positions.set(moment, [at]);
  });
  if (positions.size === records.length) return { records, seconds: [] };
  const seconds = [...positions.values()].flatMap(([first = 0, ...others]) => {
    const firstRaw = others.length > 0 ? rawOf(first) : "";
    const seen = new Set(others.length > 0 ? [toCanonicalJson(firstRaw)] : []);
    return others.flatMap((at): SecondRecord<R>[] => {
      const raw = rawOf(at);
      const isRepeated = seen.size === seen.add(toCanonicalJson(raw)).size;
      const texts = { raw: truncateRaw(raw), firstRaw: truncateRaw(firstRaw) };
      return isRepeated ? [] : [{ record: records[at] as R, first: records[first] as R, ...texts }];
    });
  });
  const firsts = [...positions.values()].map(([first = 0]) => records[first] as R);
  return { records: firsts, seconds };
}

/** The usual order of a history, which has no moment twice. */
function isDescending(records: readonly unknown[]): boolean {
  let previous = Number.POSITIVE_INFINITY;
  for (const record of records) {
    const { ts } = record as { readonly ts: Micros };
    if (ts >= previous) return false;
    previous = ts;
  }
  return true;
}

function identityOf(stream: Stream): string[] {
  return streamDefinition(stream)
    .columns.filter(({ reading }) => reading === "identity")
    .map(propertyOf);
}
