import { formatTimestamp, type Micros, parseTimestamp } from "../../../src/model/time.ts";

export interface HistoryRow {
  readonly id: string;
  readonly ts: Micros;
}
export interface HistoryPage {
  content: { id: string; timestamp: string }[];
  nextId?: string | null;
}
export type HistoryQuery = Readonly<Record<string, string | undefined>>;

export class UnknownCursorError extends Error {}

/** Newest first. */
export function rowsEvery30s(count: number, newest: Micros): HistoryRow[] {
  return Array.from({ length: count }, (_, at) => ({ id: `r${count - at}`, ts: newest - at * 30_000_000 }));
}

/** Implements the service's paging rules without quirks; every page with rows has a `nextId`. */
export function correctPage(rows: readonly HistoryRow[], query: HistoryQuery): HistoryPage {
  const size = query.timestamp === undefined ? 10 : Number(query.size ?? 10);
  let remaining = rows;
  if (query.startAfter !== undefined) {
    const at = rows.findIndex(({ id }) => id === query.startAfter);
    if (at < 0) throw new UnknownCursorError();
    remaining = rows.slice(at + 1);
  } else if (query.timestamp !== undefined) {
    const bound = parseTimestamp(query.timestamp) ?? Number.NaN;
    remaining = rows.filter(({ ts }) => ts <= bound);
  }
  return toHistoryPage(remaining.slice(0, size));
}

export function toHistoryPage(rows: readonly HistoryRow[]): HistoryPage {
  const last = rows.at(-1);
  return {
    content: rows.map(({ id, ts }) => ({ id, timestamp: formatTimestamp(ts) })),
    ...(last ? { nextId: last.id } : {}),
  };
}
