import type { Column } from "../../src/model/column.ts";
import { propertyOf, type StreamRecords } from "../../src/model/records.ts";
import { type Stream, streamTable } from "../../src/model/streams.ts";

/** A record whose properties are all null: for callers that fill in only some of them. */
export function emptyRecord<S extends Stream>(stream: S): { [P in keyof StreamRecords[S]]: null } {
  const columns: readonly Column[] = streamTable[stream].columns;
  const names = columns.filter(({ reading }) => reading !== null).map(propertyOf);
  const entries = [...names, "quality", "extra"].map((name) => [name, null]);
  return Object.fromEntries(entries) as { [P in keyof StreamRecords[S]]: null };
}
