import type { ChangedResponse } from "../simulator/fault-interceptor.ts";
import type { Fault } from "../simulator/faults.ts";
import type { HiddenRows, OracleRow } from "../support/sync/oracle.ts";

interface ServedRow {
  readonly indexId: string;
  /** NaN: the record has no readable timestamp. */
  readonly ms: number;
  readonly text: string;
}

/** Remembers what the lies of a schedule have hidden: the records that an answer lacked, or had with another content. */
export class HiddenRecords implements HiddenRows {
  readonly #lies: ReadonlySet<Fault>;
  readonly #movesRecords: boolean;
  /** By index: the times of its hidden records. */
  readonly #times = new Map<string, Set<number>>();
  /** Of all indices. A page without them is filled with older records, so no answer shows every record that it lacks. */
  readonly #withdrawn = new Set<NonNullable<Fault["withdrawn"]>>();
  /** By index: all records older than this are hidden. */
  readonly #olderThan = new Map<string, number>();

  constructor(lies: readonly Fault[]) {
    this.#lies = new Set(lies);
    this.#movesRecords = lies.some(({ name }) => name === "timestamps");
  }

  record({ fault, before, after }: ChangedResponse): void {
    if (!this.#lies.has(fault)) return;
    if (fault.withdrawn) this.#withdrawn.add(fault.withdrawn);
    const [shown, left] = [parsePage(before.body), parsePage(after.body)];
    if (!shown) return;
    const rows = left?.rows ?? [];
    const isSameList = rows.length === shown.rows.length;
    const texts = new Set(rows.map(({ text }) => text));
    for (const [at, row] of shown.rows.entries()) {
      const changed = isSameList ? rows[at] : undefined;
      if (changed ? changed.text === row.text : texts.has(row.text)) continue;
      this.#hide(row);
      // It may stand in the place of another record.
      if (changed) this.#hide(changed);
    }
    const oldest = rows.at(-1) ?? shown.rows[0];
    if (oldest && shown.nextId !== null && (left?.nextId ?? null) === null) {
      const known = this.#olderThan.get(oldest.indexId) ?? Number.NEGATIVE_INFINITY;
      this.#olderThan.set(oldest.indexId, Math.max(known, rows.length === 0 ? oldest.ms + 1 : oldest.ms));
    }
  }

  #hide({ indexId, ms }: ServedRow): void {
    const times = this.#times.get(indexId) ?? new Set();
    this.#times.set(indexId, times.add(ms));
  }

  leaveOut(
    { indexId }: { readonly indexId: string },
    stored: readonly OracleRow[],
    served: readonly OracleRow[],
  ): [readonly OracleRow[], readonly OracleRow[]] {
    const times = this.#times.get(indexId);
    const olderThan = this.#olderThan.get(indexId) ?? Number.NEGATIVE_INFINITY;
    const isWithdrawn = (ms: number) => [...this.#withdrawn].some(({ from, to }) => from <= ms && ms < to);
    const isShown = (row: OracleRow) =>
      !(times?.has(timeOf(row)) || timeOf(row) < olderThan || isWithdrawn(timeOf(row)));
    const known = new Set(served.map(timeOf));
    const isOwn = (row: OracleRow) => !this.#movesRecords || known.has(timeOf(row));
    return [stored.filter((row) => isShown(row) && isOwn(row)), served.filter(isShown)];
  }
}

function timeOf({ ts, day }: OracleRow): number {
  return ts === undefined ? Date.parse(String(day)) : Math.floor(Number(ts) / 1000);
}

function parsePage(body: Uint8Array): { rows: ServedRow[]; nextId: unknown } | undefined {
  let page: { content?: unknown; nextId?: unknown };
  try {
    page = JSON.parse(Buffer.from(body).toString());
  } catch {
    return undefined;
  }
  if (!Array.isArray(page?.content)) return undefined;
  const rows = page.content.map((row: Record<string, unknown>): ServedRow => {
    const time = row.startTimestamp ?? row.timestamp;
    const ms = typeof time === "number" ? time : Date.parse(String(time));
    return { indexId: String(row.indexId), ms, text: JSON.stringify(row) };
  });
  return { rows, nextId: page.nextId || null };
}
