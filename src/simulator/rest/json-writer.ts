import { hashText } from "../market/hash.ts";
import type { Quirks } from "../market/quirks.ts";

/** A record as the service sends it; decimals are text here and become JSON numbers on the wire if the quirk says so. */
export type WireValue =
  | string
  | number
  | boolean
  | null
  | readonly WireValue[]
  | { readonly [name: string]: WireValue };
export type WireRecord = { readonly [name: string]: WireValue };

const DECIMAL_PROPERTIES = new Set([
  "price",
  "volume",
  "tickVolume",
  "last",
  "bid",
  "ask",
  "open",
  "high",
  "low",
  "close",
  "volumeUsd",
  "vwap",
  "twap",
  "totalSupply",
  "freeFloatSupply",
  "marketCap",
  "totalMarketCap",
  "change24h",
  "change7d",
  "change30d",
  "openInterest",
  "openInterestUsd",
  "indexPrice",
  "markPrice",
  "fundingRate",
  "contractValue",
  "optionStrike",
]);

const propertyNames = new Map<string, string>();

/** `"name":`, made once. */
function formatPropertyName(name: string): string {
  const kept = propertyNames.get(name);
  if (kept !== undefined) return kept;
  const text = `${JSON.stringify(name)}:`;
  propertyNames.set(name, text);
  return text;
}

/** Writes records as JSON in the manner that the quirks ask for. */
export class JsonWriter {
  readonly #quirks: Quirks;

  constructor(quirks: Quirks) {
    this.#quirks = quirks;
  }

  formatRecord(record: object): string {
    const members: string[] = [];
    const fields = record as WireRecord;
    for (const name in fields)
      members.push(formatPropertyName(name) + this.#formatValue(name, fields[name] as WireValue));
    if (this.#quirks.extraProperties)
      members.push(`"venueTier":2`, `"audit":{"source":"simulator","flags":[]}`);
    if (this.#quirks.reorderedProperties) {
      const turn = hashText(members[0] ?? "") % members.length;
      members.push(...members.splice(0, turn));
    }
    return `{${members.join(",")}}`;
  }

  formatList(records: readonly object[]): string {
    return `[${records.map((record) => this.formatRecord(record)).join(",")}]`;
  }

  /** The end of a list answer that may be paged: `nextId` when there is more, else what the quirk puts in its place. */
  nextIdProperty(next: string | undefined, lastRecordId: string | undefined): string {
    if (next !== undefined) return `,"nextId":${JSON.stringify(next)}`;
    switch (this.#quirks.lastPage) {
      case "absent":
        return "";
      case "empty":
        return `,"nextId":""`;
      case "own-id":
        return `,"nextId":${lastRecordId === undefined ? "null" : JSON.stringify(lastRecordId)}`;
      case "null":
        return `,"nextId":null`;
    }
  }

  #formatValue(name: string, value: WireValue): string {
    if (typeof value === "string") {
      if (!DECIMAL_PROPERTIES.has(name)) return JSON.stringify(value);
      return this.#quirks.decimals === "number" ? value : `"${value}"`;
    }
    if (Array.isArray(value)) return `[${value.map((item) => this.#formatValue("", item)).join(",")}]`;
    if (typeof value === "object" && value !== null) {
      const members = Object.entries(value).map(
        ([inner, item]) => `${JSON.stringify(inner)}:${this.#formatValue(inner, item)}`,
      );
      return `{${members.join(",")}}`;
    }
    return JSON.stringify(value);
  }
}
