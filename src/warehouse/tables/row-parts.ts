import {
  keyColumns,
  type RowStream,
  rowStreams,
  type SnapshotStream,
  streamTable,
} from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";

/*
 * A poll brings one row for each of thousands of keys. In a table ordered by (key, ts) each of them changes a page of its own, and
 * 4 KiB are written for 65 bytes. So the tables of snapshot streams are ordered by (slot, ts), and a slot is a part and a key: part 0
 * has the history, ordered by key; each other part has the live rows of some minutes, which are a few neighbouring pages. Closed
 * parts are moved to part 0 in bulk (rows/move-live-rows.ts).
 *
 * For each key, a later part has only later rows: so (part, ts) is an order of time, and the newest row is in the last part.
 */

/** More keys than a dictionary has. */
const KEYS_PER_PART = 2 ** 24;
/** Each poll changes the pages of the open part: they must stay few. */
const MAX_PART_AGE: Micros = 240 * MICROS_PER_SECOND;
const MAX_PART_ROWS = 65_536;
/** An hour or a million rows. More parts would make reads slower, fewer would write more. */
export const MAX_CLOSED_PARTS = 15;

/** Whether the rows of a stream are in parts. */
export function isParted(stream: RowStream): stream is SnapshotStream {
  return streamTable[stream].kind === "snapshot";
}

export const partedStreams = rowStreams.filter(isParted);

/** The table that the writer changes: for streams in parts the one below the view with the keys. */
export function storedTable(stream: RowStream): string {
  const { table } = streamTable[stream];
  return isParted(stream) ? table.replace("_rows", "_slots") : table;
}

/** SQL: the slot of a key in a part. */
export const slotOf = (key: string, part: string) => `${part} * ${KEYS_PER_PART} + ${key}`;

/** SQL: the stored rows of a key, in whichever part. */
export function isOfKey(stream: RowStream, key = "?"): string {
  if (!isParted(stream)) return `${keyColumns[streamTable[stream].dictionary]} = ${key}`;
  return `slot IN (SELECT ${slotOf(key, "part")} FROM row_parts)`;
}

/** SQL: the order of time of the rows of one key, without sorting. */
export function timeOrder(stream: RowStream, direction: "ASC" | "DESC" = "ASC"): string {
  return isParted(stream) ? `part ${direction}, ts ${direction}` : `ts ${direction}`;
}

/** SQL: the view of a table in parts with the keys. It starts with the dictionary, so that a key is one seek a part. */
export function keyedRows(stream: SnapshotStream, columns: readonly string[]): string {
  const { dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  return `SELECT d.${key}, p.part, ${columns.map((name) => `r.${name}`).join(", ")}
FROM ${dictionary} d CROSS JOIN row_parts p CROSS JOIN ${storedTable(stream)} r WHERE r.slot = ${slotOf(`d.${key}`, "p.part")}`;
}

/** SQL: the time of the newest row of a key, if it meets a condition on `n`. A seek, or one for each part without such a row. */
export function newestTs(stream: RowStream, key: string, condition: string): string {
  const { table, dictionary } = streamTable[stream];
  return `(SELECT n.ts FROM ${table} n WHERE n.${keyColumns[dictionary]} = ${key} AND ${condition}
    ORDER BY ${timeOrder(stream, "DESC")} LIMIT 1)`;
}

/**
 * SQL: where to add a row that is older than the newest of its key: the part of the next one. Parameters: the key twice, `ts`.
 */
export function slotBefore(stream: SnapshotStream): string {
  const { table, dictionary } = streamTable[stream];
  return `SELECT ${slotOf("?", "n.part")} FROM ${table} n WHERE n.${keyColumns[dictionary]} = ? AND n.ts > ? ORDER BY n.part, n.ts LIMIT 1`;
}

interface Part {
  readonly part: number;
  readonly openedAt: Micros;
}

/** Opens the parts of a warehouse. */
export class RowParts {
  readonly #connection: Connection;
  #open: Part | undefined;
  #rows = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** What a key must be added to, for its slot in the open part. */
  openBase(at: Micros): number {
    this.#open ??= readLastPart(this.#connection);
    if (isClosed(this.#open, at) || this.#rows >= MAX_PART_ROWS) {
      this.#open = { part: this.#open.part + 1, openedAt: at };
      this.#rows = 0;
      this.#connection.run("INSERT INTO row_parts (part, opened_at) VALUES (?, ?)", [this.#open.part, at]);
    }
    this.#rows++;
    return this.#open.part * KEYS_PER_PART;
  }

  clear(): void {
    this.#open = undefined;
  }
}

function readLastPart(connection: SqlRunner): Part {
  const sql = 'SELECT part, opened_at AS "openedAt" FROM row_parts ORDER BY part DESC LIMIT 1';
  return connection.findRow<Part>(sql, []) ?? { part: 0, openedAt: 0 };
}

/** Whether no row will be added at its end. The clock may have been set back. */
function isClosed({ part, openedAt }: Part, at: Micros): boolean {
  return part === 0 || at >= openedAt + MAX_PART_AGE || at < openedAt;
}

/** The last closed part, if there are so many that they are to be moved. */
export function findFullParts(connection: SqlRunner, at: Micros): number | undefined {
  const closed = connection
    .rows<Part>('SELECT part, opened_at AS "openedAt" FROM row_parts WHERE part > 0 ORDER BY part', [])
    .filter((part, i, parts) => i < parts.length - 1 || isClosed(part, at));
  return closed.length < MAX_CLOSED_PARTS ? undefined : closed.at(-1)?.part;
}
