export type ColumnType = "TEXT" | "INTEGER" | "REAL";

export interface ColumnNote {
  readonly name: string;
  readonly type: ColumnType;
  readonly meaning: string;
}

/** What a relation is to somebody who queries it. */
export interface RelationNote {
  readonly summary: string;
  readonly columns: readonly ColumnNote[];
}

const line = /^(?<name>\w+) (?<type>TEXT|INTEGER|REAL|DECIMAL) (?<meaning>.+)$/;

/**
 * A note from text, a line a column: its name, its type, its meaning. DECIMAL stands for two columns, as everywhere in
 * the contract: the REAL and, under `NAME_exact`, its digits.
 */
export function relation(summary: string, columns: string): RelationNote {
  return { summary, columns: columns.trim().split("\n").flatMap(readLine) };
}

function readLine(text: string): ColumnNote[] {
  const { name, type, meaning } = line.exec(text.trim())?.groups ?? {};
  if (name === undefined || type === undefined || meaning === undefined)
    throw new Error(`not a column's note: ${text}`);
  if (type !== "DECIMAL") return [{ name, type: type as ColumnType, meaning }];
  return [
    { name, type: "REAL", meaning },
    { name: `${name}_exact`, type: "TEXT", meaning: `${name}, every digit of it` },
  ];
}

/* Columns that many relations share. */

export const index = `index_type TEXT GWA (an asset in USD), MWA (a market) or LX (a liquid index)
index_id TEXT the asset's id (GWA), the market's (MWA) or the index's own (LX)
name TEXT what a person calls it: BTC (GWA), BTC/USD (MWA), BLX (LX); the id until a name is known`;

export const moment = `ts INTEGER the moment, microseconds since 1970 UTC
time TEXT the same moment, YYYY-MM-DDTHH:MM:SS.ffffffZ`;

export const doubt = "quality TEXT what is doubtful about the row, in words; NULL when nothing is";

export const extra =
  "extra TEXT properties without a column of their own, a JSON object; NULL when there are none";

export const doubtAndExtra = `${doubt}\n${extra}`;

export const listed = `first_seen TEXT when the service first listed it
delisted_at TEXT since when the service lists it no longer; NULL while it does`;

export const absences = "absences INTEGER complete lists in a row that lacked it; delisted after several";
