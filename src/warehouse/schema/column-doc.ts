import type { Column } from "../../model/column.ts";

type SqlType = "TEXT" | "INTEGER" | "REAL";

export interface ColumnDoc {
  readonly name: string;
  readonly type: SqlType;
  readonly meaning: string;
}

/** What somebody who queries a relation needs to know about it. */
export interface RelationDoc {
  readonly summary: string;
  readonly columns: readonly ColumnDoc[];
}

const line = /^(?<name>\w+) (?<type>TEXT|INTEGER|REAL|DECIMAL) (?<meaning>.+)$/;

/**
 * Documentation from text, one line a column: its name, its type, its meaning. DECIMAL stands for two columns: the REAL
 * and, under `NAME_exact`, its digits.
 */
export function relation(summary: string, columns: string): RelationDoc {
  return { summary, columns: columns.trim().split("\n").flatMap(readLine) };
}

function readLine(text: string): ColumnDoc[] {
  const { name, type, meaning } = line.exec(text.trim())?.groups ?? {};
  if (name === undefined || type === undefined || meaning === undefined)
    throw new Error(`not the documentation of a column: ${text}`);
  return type === "DECIMAL" ? decimalDocs(name, meaning) : [{ name, type: type as SqlType, meaning }];
}

function decimalDocs(name: string, meaning: string): ColumnDoc[] {
  return [
    { name, type: "REAL", meaning },
    { name: `${name}_exact`, type: "TEXT", meaning: `${name}, every digit of it` },
  ];
}

/** The columns of a stream as its view shows them. */
export function viewDocs(columns: readonly Column[]): ColumnDoc[] {
  return columns.flatMap(({ name, type, meaning }) =>
    type === "decimal" ? decimalDocs(name, meaning) : [{ name, type: viewTypes[type], meaning }],
  );
}

/** The columns of a table as it stores them; `view`: where their meaning is told. */
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
    "0: a current REST page wrote the row; 1: the websocket or an outdated (cached) page did; an equal page leaves it",
};

/* Columns that many relations share. */

export const index = `index_type TEXT GWA (an asset in USD), MWA (a market) or LX (a liquid index)
index_id TEXT the asset's id (GWA), the market's (MWA) or the index's own (LX)
name TEXT what a person calls it: BTC (GWA), BTC/USD (MWA), BLX (LX); the id until a name is known`;

export const quality = "quality TEXT what is doubtful about the row, in words; NULL when nothing is";
