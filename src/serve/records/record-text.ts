import { emptyDetails, type RowDetails } from "../../model/answers/bar-aggregate.ts";
import type { Column } from "../../model/column.ts";
import { formatShort, type Micros } from "../../model/time.ts";
import { formatExact } from "../../warehouse/tables/row-tables.ts";

/** `,"price":"1.5"`; empty if the row has no value. */
export function decimalProperty(name: string, real: number | null, exact: string | undefined): string {
  return real === null ? "" : `,"${name}":"${formatExact(real, exact)}"`;
}

/** The unknown properties that were stored, ready to be appended to others. */
export function extraProperties(extra: string | null | undefined): string {
  return extra && extra.length > 2 ? `,${extra.slice(1, -1)}` : "";
}

type Row = Readonly<Record<string, unknown>>;

/** Writes records of streams that are not on the hot path, from the columns of the stream table. */
export class RecordWriter {
  readonly #plain: readonly Column[];
  readonly #nested = new Map<string, { readonly inner: string; readonly column: Column }[]>();

  constructor(columns: readonly Column[]) {
    const fields = columns.filter(({ field, reading }) => field !== "" && reading !== null);
    this.#plain = fields.filter(({ field, reading }) => !field.includes(".") && reading !== "timestamp");
    for (const column of fields) {
      const [outer = "", inner] = column.field.split(".");
      if (inner === undefined) continue;
      this.#nested.set(outer, [...(this.#nested.get(outer) ?? []), { inner, column }]);
    }
  }

  /** The properties of a record, without braces. `row` has the values by column name. */
  properties(row: Row, details = emptyDetails): string {
    const parts: string[] = [];
    for (const column of this.#plain) {
      const text = valueText(column, row[column.name], details);
      if (text !== undefined) parts.push(`"${column.field}":${text}`);
    }
    return parts.join(",");
  }

  /** The nested objects, each preceded by a comma, without those that `extra` has, because they have unknown properties. */
  nestedProperties(row: Row, details = emptyDetails): string {
    let text = "";
    for (const [outer, members] of this.#nested) {
      const values = members.map(({ column }) => valueText(column, row[column.name], details));
      if (details.extra?.includes(`"${outer}":`) || values.every((value) => value === undefined)) continue;
      text += `,"${outer}":{${members.map(({ inner }, at) => `"${inner}":${values[at] ?? null}`).join(",")}}`;
    }
    return text;
  }
}

function valueText({ name, type, reading }: Column, value: unknown, details: RowDetails): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (type === "decimal") return `"${formatExact(value as number, details[name])}"`;
  if (type === "timestamp") return `"${formatShort(value as Micros)}"`;
  if (reading === "flag") return value ? "true" : "false";
  return JSON.stringify(value);
}
