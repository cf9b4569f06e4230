import { type CommitNews, type CommittedTick, joinNews } from "../../model/answers/ticks.ts";
import { hasHistory, type RowStream } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { ChangeKind } from "../schema/coverage.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";

/*
 * The journal: every range whose rows or coverage a transaction has changed, entered in that transaction. A reader (the shared
 * warehouse, an export, an open page, `serve`) knows up to which entry it has looked. An entry says where to look again, not what
 * happened, so order and repetition do not matter. Pages of the writer's own process get the news of each commit with it.
 * A poll changes thousands of neighbouring keys at nearly the same moment: they share an entry.
 */

export interface Change extends TimeRange {
  readonly stream: RowStream;
  readonly kind: ChangeKind;
  readonly key: number;
}

/** An entry: the change of each of `keys` neighbouring keys. */
export interface JournalEntry extends Change {
  readonly seq: number;
  readonly keys: number;
}

const HOUR = 3600 * MICROS_PER_SECOND;
/** Neighbouring keys share an entry if all their rows are within this: less than a poll's interval, which a reader would read too. */
const MAX_SHARED_RANGE = 10 * MICROS_PER_SECOND;

/** With 1,500 series that are followed live: a quarter of an hour, and some weeks in 15 MB. */
const usualLimits = {
  /** Older entries than these are combined, so many at once. */
  ...{ recent: 50_000, combined: 40_000 },
  /** A reader that is further behind has to compare everything: the oldest are deleted, so many at once. */
  ...{ all: 500_000, pruned: 50_000 },
};

interface JournalState {
  /** The last entry. */
  seq: number;
  /** The last entry that was combined with others. */
  combinedTo: number;
  count: number;
}

interface ChangedRanges {
  readonly change: Omit<Change, "from" | "to">;
  readonly ranges: TimeRange[];
  /** The ticks in the news are all that changed. */
  isPublished: boolean;
}

/** What open transactions have changed. Owned by the writer of the file. */
export class Journal {
  readonly #connection: Connection;
  readonly #changes = new Map<string, ChangedRanges>();
  #ticks: CommittedTick[] = [];
  readonly #limits: typeof usualLimits;
  #state: JournalState | undefined;

  constructor(connection: Connection, limits = usualLimits) {
    this.#connection = connection;
    this.#limits = limits;
  }

  /** `tick`: the only row of the range, which is newer than all others of its series. */
  add(
    stream: RowStream,
    kind: ChangeKind,
    key: number,
    { from, to }: TimeRange,
    tick?: CommittedTick | undefined,
  ): void {
    if (from >= to) return;
    if (tick) this.publish(tick);
    const name = `${stream} ${kind} ${key}`;
    const known = this.#changes.get(name);
    if (!known) {
      this.#changes.set(name, {
        change: { stream, kind, key },
        ranges: [{ from, to }],
        isPublished: tick !== undefined,
      });
      return;
    }
    known.isPublished &&= tick !== undefined;
    const last = known.ranges.at(-1) as TimeRange;
    // Rows of one page or one poll follow one another; far ranges stay apart, so that nobody reads what lies between.
    if (from <= last.to + HOUR && to >= last.from - HOUR)
      known.ranges[known.ranges.length - 1] = { from: Math.min(from, last.from), to: Math.max(to, last.to) };
    else known.ranges.push({ from, to });
  }

  /** Whether nothing was added since the last commit. */
  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  /** Adds the newest tick of a series to the news. */
  publish(tick: CommittedTick): void {
    this.#ticks.push(tick);
  }

  /** Enters what was added; undefined if nothing was. Call it last in the database's transaction. */
  write(): CommitNews | undefined {
    const news = this.#describe();
    this.#ticks = [];
    if (this.#changes.size === 0) return undefined;
    this.#state ??= this.#readState();
    const { seq } = this.#state;
    const entries = [...this.#changes.values()].flatMap(({ change, ranges }) =>
      ranges.map((range) => ({ seq, ...change, ...range, keys: 1 })),
    );
    for (const entry of joinEntries(entries, ({ from, to }) => to - from <= MAX_SHARED_RANGE))
      this.#enter({ ...entry, seq: ++this.#state.seq });
    this.#changes.clear();
    this.#keepSmall(this.#state);
    return news;
  }

  #describe(): CommitNews {
    const changes = [...this.#changes.values()];
    const untold = changes.filter(({ change, isPublished }) => hasHistory(change.stream) && !isPublished);
    return joinNews([
      {
        streams: changes.filter(({ change }) => change.kind === "rows").map(({ change }) => change.stream),
        ticks: this.#ticks,
        ranges: untold.flatMap(({ change, ranges }) =>
          ranges.map(({ from, to }) => [change.key, from, to] as const),
        ),
      },
    ]);
  }

  /** Forgets what a rolled back transaction has changed. */
  clear(): void {
    this.#changes.clear();
    this.#ticks = [];
    this.#state = undefined;
  }

  #readState(): JournalState {
    const [seq, count] = this.#connection.findTuple<[number, number]>(
      "SELECT coalesce(max(seq), (SELECT changes_pruned FROM warehouse_state)), count(*) FROM changes",
    ) as [number, number];
    return { seq, combinedTo: seq, count };
  }

  #enter({ seq, stream, kind, key, from, to, keys }: JournalEntry): void {
    this.#connection.run(
      "INSERT INTO changes (seq, stream, kind, key, from_ts, to_ts, keys) VALUES (?, ?, ?, ?, ?, ?, ?)",
      [seq, stream, kind, key, from, to, keys],
    );
    if (this.#state) this.#state.count++;
  }

  /** A reader that follows finds exact ranges; one that comes once a day finds few. */
  #keepSmall(state: JournalState): void {
    const { recent, combined, all, pruned } = this.#limits;
    if (state.seq - state.combinedTo > recent) {
      const until = state.combinedTo + combined;
      this.#combine(state, state.combinedTo, until);
      state.combinedTo = until;
    }
    if (state.count <= all) return;
    this.#combine(state, 0, this.#seqAt(all / 2));
    if (state.count <= all - pruned) return;
    const until = this.#seqAt(pruned);
    state.count -= this.#connection.run("DELETE FROM changes WHERE seq <= ?", [until]);
    this.#connection.run("UPDATE warehouse_state SET changes_pruned = ?", [until]);
  }

  #seqAt(offset: number): number {
    return this.#connection.value<number>("SELECT seq FROM changes ORDER BY seq LIMIT 1 OFFSET ?", [offset]);
  }

  /** Combines the live rows of an hour, and the pages of a day, into one entry with the number of the last. */
  #combine(state: JournalState, after: number, until: number): void {
    const entries = readEntries(this.#connection, { after, until });
    const unitOf = ({ from, to }: TimeRange) => (to - from < HOUR ? HOUR : MICROS_PER_DAY);
    const groups = Map.groupBy(entries, (entry) => {
      const { stream, kind, key, keys, from } = entry;
      const unit = unitOf(entry);
      // Only the live rows of neighbouring keys are of the same time.
      return `${stream} ${kind} ${unit === HOUR ? "" : `${key} ${keys}`} ${unit} ${Math.floor(from / unit)}`;
    });
    state.count -= this.#connection.run("DELETE FROM changes WHERE seq > ? AND seq <= ?", [after, until]);
    for (const group of groups.values())
      for (const entry of joinEntries(group.toSorted((a, b) => a.key - b.key))) this.#enter(entry);
  }
}

/** Joins each entry with the one before it, if they have equal or neighbouring keys, and `canJoin` agrees to the result. */
function joinEntries(
  entries: readonly JournalEntry[],
  canJoin: (joined: JournalEntry) => boolean = () => true,
): JournalEntry[] {
  const joined: JournalEntry[] = [];
  for (const entry of entries) {
    const last = joined.at(-1);
    const end = last ? last.key + last.keys : 0;
    const both = last && {
      ...last,
      seq: Math.max(last.seq, entry.seq),
      keys: Math.max(end, entry.key + entry.keys) - last.key,
      from: Math.min(last.from, entry.from),
      to: Math.max(last.to, entry.to),
    };
    const isNext =
      last?.stream === entry.stream && last.kind === entry.kind && entry.key >= last.key && entry.key <= end;
    if (both && isNext && canJoin(both)) joined[joined.length - 1] = both;
    else joined.push(entry);
  }
  return joined;
}

export type JournalPosition = Readonly<Record<"id" | "seq" | "firstSeq", number>>;

/**
 * `id`: which journal, that of this file. `seq`: the last entry. Entries before `firstSeq` may be deleted: a reader that is further
 * behind has missed some.
 */
export function readJournalPosition(connection: Connection): JournalPosition {
  const sql = `SELECT changes_id AS id, coalesce((SELECT max(seq) FROM changes), changes_pruned) AS seq, changes_pruned AS firstSeq
    FROM warehouse_state`;
  return connection.findRow<JournalPosition>(sql) as JournalPosition;
}

/** Whether a reader that has looked up to `seq` of journal `id` finds everything after it. */
export function canContinue(position: JournalPosition, { id, seq }: Pick<JournalPosition, "id" | "seq">) {
  return id === position.id && seq >= position.firstSeq && seq <= position.seq;
}

interface JournalPart {
  readonly after: number;
  readonly until: number;
  readonly limit?: number;
}

/** The entries after `after` up to `until`, oldest first. */
export function readEntries(connection: SqlRunner, { after, until, limit = -1 }: JournalPart) {
  return connection.rows<JournalEntry>(
    `SELECT seq, stream, kind, key, from_ts AS "from", to_ts AS "to", keys FROM changes
        WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
    [after, until, limit],
  );
}

export type NumberedChange = Omit<JournalEntry, "keys">;

/** The changes of these entries, one for each key. `limit`: the entry that reaches it is the last. */
export function readChanges(connection: SqlRunner, part: JournalPart): NumberedChange[] {
  const changes: NumberedChange[] = [];
  for (const { keys, ...first } of readEntries(connection, part)) {
    for (let i = 0; i < keys; i++) changes.push({ ...first, key: first.key + i });
    if (changes.length >= (part.limit ?? Number.POSITIVE_INFINITY)) break;
  }
  return changes;
}

/** Gives the journal another name, so that every reader compares everything: the file is a copy of another. */
export function renameJournal(file: SqlRunner): void {
  file.run("UPDATE warehouse_state SET changes_id = abs(random() % 9007199254740991)");
}
