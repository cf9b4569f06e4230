import type { NotNull } from "drizzle-orm";
import {
  integer,
  real,
  type SQLiteIntegerBuilderInitial,
  type SQLiteRealBuilderInitial,
  type SQLiteTextBuilderInitial,
  text,
} from "drizzle-orm/sqlite-core";
import { type CamelCase, type Column, type ColumnType, camelCase } from "../../model/column.ts";

/** The drizzle column that stores a column of the stream table. All but `source` may be null. */
type Builder<Name extends string, Type extends ColumnType> = Type extends "text"
  ? SQLiteTextBuilderInitial<Name, [string, ...string[]], undefined>
  : Type extends "decimal" | "real"
    ? SQLiteRealBuilderInitial<Name>
    : Type extends "source"
      ? NotNull<SQLiteIntegerBuilderInitial<Name>>
      : SQLiteIntegerBuilderInitial<Name>;

type SchemaColumns<Columns extends readonly Column[]> = {
  [C in Columns[number] as C["source"] extends "row"
    ? C["reading"] extends "identity"
      ? never
      : CamelCase<C["name"]>
    : never]: Builder<C["name"], C["type"]>;
};

/** The columns of a drizzle table that the stream table describes: all but its keys. */
export function schemaColumns<const Columns extends readonly Column[]>(
  columns: Columns,
): SchemaColumns<Columns> {
  const stored = columns.filter(({ source, reading }) => source === "row" && reading !== "identity");
  return Object.fromEntries(
    stored.map(({ name, type }) => [camelCase(name), builder(name, type)]),
  ) as SchemaColumns<Columns>;
}

function builder(name: string, type: ColumnType) {
  if (type === "text") return text(name);
  if (type === "decimal" || type === "real") return real(name);
  return type === "source" ? integer(name).notNull() : integer(name);
}
