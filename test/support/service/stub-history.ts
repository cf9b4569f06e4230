import { formatInstant, type Micros, parseInstant } from "../../../src/model/time.ts";

export interface HistoryRow {
  readonly id: string;
  readonly ts: Micros;
}
export interface HistoryPage {
  content: { id: string; timestamp: string }[];
  nextId?: string | null;
}
export type HistoryQuery = Readonly<Record<string, string | undefined>>;

export class DeadCursor extends Error {}

/** Rows every 30 seconds, the newest first. */
export function rowsEvery30s(count: number, newest: Micros): HistoryRow[] {
  return Array.from({ length: count }, (_, at) => ({ id: `r${count - at}`, ts: newest - at * 30_000_000 }));
}

/** The service's paging rules in their plainest form, `nextId` on every page that has rows. */
export function honestPage(rows: readonly HistoryRow[], query: HistoryQuery): HistoryPage {
  const size = query.timestamp === undefined ? 10 : Number(query.size ?? 10);
  let left = rows;
  if (query.startAfter !== undefined) {
    const at = rows.findIndex(({ id }) => id === query.startAfter);
    if (at < 0) throw new DeadCursor();
    left = rows.slice(at + 1);
  } else if (query.timestamp !== undefined) {
    const bound = parseInstant(query.timestamp) ?? Number.NaN;
    left = rows.filter(({ ts }) => ts <= bound);
  }
  return pageOf(left.slice(0, size));
}

export function pageOf(rows: readonly HistoryRow[]): HistoryPage {
  const last = rows.at(-1);
  return {
    content: rows.map(({ id, ts }) => ({ id, timestamp: formatInstant(ts) })),
    ...(last ? { nextId: last.id } : {}),
  };
}
