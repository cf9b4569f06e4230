import { createRowIds, parseRecordId } from "../../api-server/record-ids.ts";
import { hashNumbers } from "./hash.ts";

/** The id of an entity or a record, which contains its UUID. */
export type FormatId = (uuid: string) => string;

/** Ids that encode the position of their record: which series of its kind, and which step of the series. */
export function createRecordIds(seed: number, format: FormatId) {
  const encode = (kind: string, key: number, number: number) => format(createRowIds(key, kind, seed)(number));
  /** Undefined if the id is not of this kind. */
  const decode = (kind: string, id: string) =>
    parseRecordId(id, ({ key, number }) => encode(kind, key, number));
  return { encode, decode };
}

/** A random-looking UUID that is always the same for one entity; `kind` is 1 asset, 2 market, 3 exchange, 4 liquid index, 5 contract address. */
export function createEntityUuid(seed: number, kind: number, ordinal: number): string {
  const word = (part: number) => hashNumbers(seed, kind, ordinal, part).toString(16).padStart(8, "0");
  const second = word(2);
  const third = word(3);
  return `${word(1)}-${second.slice(0, 4)}-4${second.slice(5)}-a${third.slice(1, 4)}-${third.slice(4)}${word(4)}`;
}
