import {
  keyColumns,
  type RowStream,
  rowStreams,
  type SnapshotStream,
  streamTable,
} from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";

/*
 * A poll brings one row for each of thousands of keys. In a table ordered by (key, ts) each of them changes a page of its own, and
 * 4 KiB are written for 65 bytes. So the tables of snapshot streams are ordered by (slot, ts), and a slot is a part and a key: part 0
 * has the history, ordered by key; each other part has the live rows of some time, which are a few neighbouring pages. Closed
 * parts are merged, and moved to part 0 in bulk (rows/move-live-rows.ts, docs/decisions/live-rows.md).
 *
 * For each key, a later part has only later rows: so (part, ts) is an order of time, and the newest row is in the last part.
 */

/** More keys than a dictionary has. */
const KEYS_PER_PART = 2 ** 24;
/** A part is open for less than a period, so that the next poll opens another one although it comes a little early. */
const PERIODS_PER_PART = 0.9;
/** So many closed parts, of a poll each, are merged into the last of them: a move from many parts leaves many half-empty pages. */
const PARTS_PER_MERGE = 12;
/** Two hours of live rows, 240 of a key. More parts would make reads slower, fewer would write more. */
const MAX_MERGED_PARTS = 20;

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

/** The table with the earlier versions of rows. */
export function pastTable(stream: RowStream): string {
  const { table } = streamTable[stream];
  return table === "index_tick_rows" ? "past_tick_rows" : `past_${table}`;
}

/** The column of the stored table that comes before `ts`. */
export function storedKey(stream: RowStream): string {
  return isParted(stream) ? "slot" : keyColumns[streamTable[stream].dictionary];
}

/** SQL: the slot of a key in a part. */
export const slotOf = (part: string, key: string) => `${part} * ${KEYS_PER_PART} + ${key}`;

/** SQL: the stored rows of a key, in whichever part. */
export function hasSlotOfKey(stream: RowStream, key = "?"): string {
  if (!isParted(stream)) return `${keyColumns[streamTable[stream].dictionary]} = ${key}`;
  return `slot IN (SELECT ${slotOf("part", key)} FROM row_parts)`;
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
FROM ${dictionary} d CROSS JOIN row_parts p CROSS JOIN ${storedTable(stream)} r WHERE r.slot = ${slotOf("p.part", `d.${key}`)}`;
}

/** SQL: of the newest row of a key that meets a condition on `n`. A seek, or one for each part without such a row. */
export function newestRow(stream: RowStream, key: string, condition: string, what = "n.ts"): string {
  const { table, dictionary } = streamTable[stream];
  return `(SELECT ${what} FROM ${table} n WHERE n.${keyColumns[dictionary]} = ${key} AND ${condition}
    ORDER BY ${timeOrder(stream, "DESC")} LIMIT 1)`;
}

/**
 * SQL: where to add a row that is older than the newest of its key: the part of the next one. Parameters: the key twice, `ts`.
 */
export function slotBefore(stream: SnapshotStream): string {
  const { table, dictionary } = streamTable[stream];
  return `SELECT ${slotOf("n.part", "?")} FROM ${table} n WHERE n.${keyColumns[dictionary]} = ? AND n.ts > ? ORDER BY n.part, n.ts LIMIT 1`;
}

/** SQL: most of the live rows are exchange ticks. */
const exchangeTickPeriod =
  "(SELECT coalesce(max(w.period), 30000000) FROM targets w WHERE w.stream = 'exchange_ticks')";

interface Part {
  readonly part: number;
  readonly openedAt: Micros;
  /** How long it is open. */
  readonly age: Micros;
}

/** Opens the parts of a warehouse. */
export class RowParts {
  readonly #connection: Connection;
  #open: Part | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** What a key must be added to, for its slot in the open part. */
  openBase(at: Micros): number {
    this.#open ??= readParts(this.#connection).at(-1);
    if (this.#open === undefined || isClosed(this.#open, at)) {
      const part = (this.#open?.part ?? 0) + 1;
      this.#connection.run("INSERT INTO row_parts (part, opened_at) VALUES (?, ?)", [part, at]);
      this.#open = readParts(this.#connection).at(-1);
    }
    return (this.#open?.part ?? 0) * KEYS_PER_PART;
  }

  clear(): void {
    this.#open = undefined;
  }
}

/** The parts with live rows. */
function readParts(connection: SqlRunner): Part[] {
  return connection.rows<Part>(
    `SELECT part, opened_at AS "openedAt", ${PERIODS_PER_PART} * ${exchangeTickPeriod} AS age FROM row_parts WHERE part > 0 ORDER BY part`,
  );
}

/** Whether no row will be added at its end. The clock may have been set back. */
function isClosed({ openedAt, age }: Part, at: Micros): boolean {
  return at >= openedAt + age || at < openedAt;
}

/** Closed parts whose rows are to be moved to another one: to the last of them, or to the history. */
export interface PartMove {
  readonly first: number;
  readonly last: number;
  readonly into: number;
}

/** What is to be moved now: merged parts if there are many, else parts that are to be merged. */
export function findPartMove(connection: SqlRunner, at: Micros): PartMove | undefined {
  const closed = readParts(connection)
    .filter((part, i, parts) => i < parts.length - 1 || isClosed(part, at))
    .map(({ part }) => part);
  // A merged part has the number of its last one. The first part after a move counts as merged too.
  const merged = closed.filter((part, i) => part - (closed[i - 1] ?? 0) > 1);
  const single = closed.slice(closed.indexOf(merged.at(-1) ?? 0) + 1);
  if (merged.length >= MAX_MERGED_PARTS) return { first: 1, last: merged.at(-1) ?? 0, into: 0 };
  const [first, last] = [single[0], single.at(-1)];
  if (first === undefined || last === undefined || single.length < PARTS_PER_MERGE) return undefined;
  return { first, last, into: last };
}
