import { type Column, isSlim } from "../../model/column.ts";

type SqlType = "TEXT" | "INTEGER" | "REAL";

export interface ColumnDoc {
  readonly name: string;
  readonly type: SqlType;
  readonly meaning: string;
}

/** The documentation of a relation for users who query it. */
export interface RelationDoc {
  readonly summary: string;
  readonly columns: readonly ColumnDoc[];
}

interface SchemaGroup {
  readonly title: string;
  readonly relations: readonly (RelationDoc & { readonly name: string })[];
}

export type SchemaResult = readonly SchemaGroup[];

const columnLine = /^(?<name>\w+) (?<type>TEXT|INTEGER|REAL|DECIMAL) (?<meaning>.+)$/;

/**
 * Parses documentation with one line per column: name, type, meaning. DECIMAL stands for two columns: the REAL and, as
 * `NAME_exact`, its digits.
 */
export function relation(summary: string, columns: string): RelationDoc {
  return { summary, columns: columns.trim().split("\n").flatMap(readLine) };
}

function readLine(text: string): ColumnDoc[] {
  const { name, type, meaning } = columnLine.exec(text.trim())?.groups ?? {};
  if (name === undefined || type === undefined || meaning === undefined)
    throw new Error(`not the documentation of a column: ${text}`);
  return type === "DECIMAL" ? decimalDocs(name, meaning) : [{ name, type: type as SqlType, meaning }];
}

function decimalDocs(name: string, meaning: string): ColumnDoc[] {
  return [
    { name, type: "REAL", meaning },
    { name: `${name}_exact`, type: "TEXT", meaning: `${name} with every digit` },
  ];
}

/** The columns of a stream as its view shows them. */
export function viewDocs(columns: readonly Column[]): ColumnDoc[] {
  return columns.flatMap(({ name, type, meaning }) =>
    type === "decimal" ? decimalDocs(name, meaning) : [{ name, type: viewTypes[type], meaning }],
  );
}

/** The columns of a stream as its `…_slim` view shows them. */
export function slimDocs(columns: readonly Column[]): ColumnDoc[] {
  return columns.filter(isSlim).map(({ name, type, meaning }) => ({
    name,
    type: type === "decimal" ? "REAL" : viewTypes[type],
    meaning,
  }));
}

/** The columns of a table as it stores them. `view`: the view that documents their meaning. */
export function tableDocs(columns: readonly Column[], view?: string): ColumnDoc[] {
  return columns.map(({ name, type, meaning }) => ({
    name,
    type: tableTypes[type],
    meaning: ownMeanings[type] ?? (view === undefined ? meaning : `as in ${view}`),
  }));
}

const viewTypes: Readonly<Record<Exclude<Column["type"], "decimal">, SqlType>> = {
  text: "TEXT",
  integer: "INTEGER",
  real: "REAL",
  timestamp: "TEXT",
  source: "TEXT",
};

const tableTypes: Readonly<Record<Column["type"], SqlType>> = {
  text: "TEXT",
  integer: "INTEGER",
  real: "REAL",
  decimal: "REAL",
  timestamp: "INTEGER",
  source: "INTEGER",
};

const ownMeanings: Partial<Record<Column["type"], string>> = {
  timestamp: "microseconds since 1970 UTC",
  source:
    "0: a current REST page wrote or confirmed the row; 1: only the websocket or an outdated (cached) page did",
};

/* Columns that many relations share. */

export const index = `index_type TEXT GWA (an asset in USD), MWA (a market) or LX (a liquid index)
index_id TEXT id of the asset (GWA), of the market (MWA) or of the index itself (LX)
name TEXT readable name: BTC (GWA), BTC/USD (MWA), BLX (LX); the id while no name is known`;

export const quality = "quality TEXT problems with the row, in words; NULL if there are none";
