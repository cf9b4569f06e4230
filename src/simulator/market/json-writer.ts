import { hashText } from "./hash.ts";
import type { Quirks } from "./quirks.ts";

/** A value of a record. Decimals are strings here; the quirk `decimals` can turn them into JSON numbers. */
type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [name: string]: JsonValue };
type JsonRecord = { readonly [name: string]: JsonValue };

const DECIMAL_PROPERTIES = new Set(
  (
    "price volume tickVolume last bid ask open high low close volumeUsd vwap twap totalSupply freeFloatSupply marketCap " +
    "totalMarketCap change24h change7d change30d openInterest openInterestUsd indexPrice markPrice fundingRate contractValue " +
    "optionStrike"
  ).split(" "),
);

/** Formats records as JSON according to the quirks. */
export class JsonWriter {
  readonly #quirks: Quirks;

  constructor(quirks: Quirks) {
    this.#quirks = quirks;
  }

  formatRecord(record: object): string {
    const { extraProperties, reorderedProperties, decimals } = this.#quirks;
    if (!extraProperties && !reorderedProperties && decimals === "string") return JSON.stringify(record);
    const members: string[] = [];
    const fields = record as JsonRecord;
    for (const name in fields)
      members.push(`${JSON.stringify(name)}:${this.#formatValue(name, fields[name] as JsonValue)}`);
    if (extraProperties) members.push(`"venueTier":2`, `"audit":{"source":"simulator","flags":[]}`);
    if (reorderedProperties) {
      const rotation = hashText(members[0] ?? "") % members.length;
      members.push(...members.splice(0, rotation));
    }
    return `{${members.join(",")}}`;
  }

  /** A page with these records; `end`: the properties behind the list. */
  formatPage(records: readonly object[], end = ""): string {
    return `{"content":[${records.map((record) => this.formatRecord(record)).join(",")}]${end}}`;
  }

  /** The property `nextId` of a page. Without a next page, the quirk `lastPage` decides. */
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

  #formatValue(name: string, value: JsonValue): string {
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
