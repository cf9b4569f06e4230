import { parseRecordId, RowIds } from "../../api-server/record-ids.ts";
import { hashNumbers } from "./hash.ts";
import type { Quirks } from "./quirks.ts";

export const recordKinds = [
  "GWA tick",
  "MWA tick",
  "LX tick",
  "GWA bar",
  "MWA bar",
  "LX bar",
  "exchange tick",
  "market cap",
  "contract",
  "derivative tick",
] as const;
export type RecordKind = (typeof recordKinds)[number];

interface SimulatedRecord {
  readonly kind: RecordKind;
  /** Which series of its kind. */
  readonly ordinal: number;
  /** Which step of the series: a tick, a day, a ranking. */
  readonly step: number;
}

/** Ids that encode the position of their record. */
export class RecordIds {
  readonly #seed: number;
  readonly #format: ReturnType<typeof createIdFormat>;

  constructor(seed: number, style: Quirks["ids"]) {
    this.#seed = seed;
    this.#format = createIdFormat(style);
  }

  encode(kind: RecordKind, ordinal: number, step: number): string {
    const { prefix, suffix } = this.#format;
    return prefix + new RowIds(ordinal, kind, this.#seed).at(step) + suffix;
  }

  decode(id: string): SimulatedRecord | undefined {
    const { prefix, suffix } = this.#format;
    const position = parseRecordId(id.slice(prefix.length, id.length - suffix.length));
    if (!position) return undefined;
    const { key: ordinal, number: step } = position;
    const kind = recordKinds.find((known) => this.encode(known, ordinal, step) === id);
    return kind && { kind, ordinal, step };
  }
}

/** What the service shows before and after the UUID of an id. */
export function createIdFormat(style: Quirks["ids"]): { prefix: string; suffix: string } {
  if (style === "uuid") return { prefix: "", suffix: "" };
  return { prefix: "idé/", suffix: `%2F+${"long".repeat(40)}∆` };
}

/** A random-looking UUID that is always the same for one entity; `kind` is 1 asset, 2 market, 3 exchange, 4 liquid index. */
export function createEntityUuid(seed: number, kind: number, ordinal: number): string {
  const word = (part: number) => hashNumbers(seed, kind, ordinal, part).toString(16).padStart(8, "0");
  const second = word(2);
  const third = word(3);
  return `${word(1)}-${second.slice(0, 4)}-4${second.slice(5)}-a${third.slice(1, 4)}-${third.slice(4)}${word(4)}`;
}
