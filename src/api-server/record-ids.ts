/*
 * Records have UUIDs of version 8 that contain the key of their series and their number in it, such as a timestamp. An id is a
 * position too, so a page can begin at it without a search.
 */

export interface RecordPosition {
  readonly key: number;
  readonly number: number;
}

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");

/** Seven digits: integers of 32 bits are ten times as fast as larger ones. */
const HALF = 2 ** 28;
const bytes = Array.from({ length: 256 }, (_, byte) => (byte % 16).toString(16) + (byte >> 4).toString(16));
const three = (part: number) => bytes[part & 255] + ((part >> 8) & 15).toString(16);
const four = (part: number) => `${bytes[part & 255]}${bytes[(part >> 8) & 255]}`;

/**
 * The ids of one series: `kkkkkkkk-nnnn-8nnn-8nnn-nnnncccccccc`. `names`: what else identifies it. Another warehouse, or another kind
 * of record, has another key or other names.
 */
export function createRowIds(
  key: number,
  ...names: readonly (string | number)[]
): (number: number) => string {
  const prefix = hex(key, 8);
  const check = checkOf(names.join("\n"));
  // The lowest digits come first, so that the order of ids differs from that of the records: clients must not rely on it.
  return (number) => {
    const [low, high] = [number % HALF, Math.floor(number / HALF)];
    return `${prefix}-${four(low)}-8${three(low >> 16)}-8${three(high)}-${four(high >> 12)}${check}`;
  };
}

const ID_PATTERN = /([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f]{3})-8([0-9a-f]{3})-([0-9a-f]{4})[0-9a-f]{8}/i;

/** What an id contains; undefined for ids of another form, or if `idAt` says that the record there has another id. */
export function parseRecordId(
  id: string,
  idAt: (position: RecordPosition) => string | undefined,
): RecordPosition | undefined {
  const [, key = "", ...digits] = ID_PATTERN.exec(id) ?? [];
  const number = Number.parseInt([...digits.join("")].reverse().join(""), 16);
  const position = { key: Number.parseInt(key, 16), number };
  return key !== "" && idAt(position)?.toLowerCase() === id.toLowerCase() ? position : undefined;
}

/** FNV-1a. */
function checkOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hex(hash >>> 0, 8);
}
