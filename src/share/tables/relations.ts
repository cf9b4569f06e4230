import type { ShareRole } from "../../model/status/share-status.ts";
import { historyStreams, type RowStream, streamTable } from "../../model/streams.ts";
import { readSmallRelation } from "../../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { readJournalPosition } from "../../warehouse/tables/journal.ts";
import type { SqlValue } from "../../warehouse/tables/row-tables.ts";
import { type RelationLayout, relationLayouts } from "../schema/tables.ts";
import { type SharedSession, TABLE_TIMEOUT_MS } from "../server/session.ts";
import { CopyWriter, endOfField, splitCopy } from "./copy-format.ts";
import type { FencedTransaction, SharedDictionaries } from "./dictionaries.ts";

/** A log may be long: it is read in parts. */
const MAX_ROWS_PER_PART = 20_000;

/** Lookups, logs and the small tables that `gaps` reads. Rows that differ are replaced, in one transaction each. */
export class SharedRelations {
  readonly #relations: readonly SharedRelation[];

  constructor(session: SharedSession, dictionaries: SharedDictionaries, role: ShareRole) {
    const of = (layout: RelationLayout) => {
      if (layout.isLog) return new SharedLog(session, layout, dictionaries, role);
      const isTargets = layout.name === "targets" && role === "pair";
      return new (isTargets ? SharedTargets : SharedTable)(session, layout, dictionaries, role);
    };
    this.#relations = relationLayouts.map(of);
  }

  /** Reads what PostgreSQL has. */
  async load(connection: Connection): Promise<void> {
    for (const relation of this.#relations) await relation.load(connection);
  }

  /** Returns how many rows were written or deleted. */
  async update(connection: Connection, transaction: FencedTransaction): Promise<number> {
    let changed = 0;
    for (const relation of this.#relations) changed += await relation.update(connection, transaction);
    return changed;
  }
}

abstract class SharedRelation {
  protected readonly session: SharedSession;
  protected readonly layout: RelationLayout;
  protected readonly role: ShareRole;
  readonly #dictionaries: SharedDictionaries;

  constructor(
    session: SharedSession,
    layout: RelationLayout,
    dictionaries: SharedDictionaries,
    role: ShareRole,
  ) {
    this.session = session;
    this.layout = layout;
    this.role = role;
    this.#dictionaries = dictionaries;
  }

  abstract load(connection: Connection): Promise<void>;
  abstract update(connection: Connection, transaction: FencedTransaction): Promise<number>;

  protected get names(): string {
    return this.layout.columns.map(({ name }) => `"${name}"`).join(", ");
  }

  protected read(connection: Connection, options: { after?: number; limit?: number } = {}): SqlValue[][] {
    const names = this.layout.columns.map(({ name }) => name).filter((name) => name !== "source");
    return readSmallRelation(connection, this.layout.from, names, options);
  }

  /** Puts the keys of PostgreSQL in the place of the local ones; undefined if the row is too new. */
  protected translate(row: SqlValue[]): SqlValue[] | undefined {
    const { columns, seriesColumn, name } = this.layout;
    const column = name === "revision_rows" ? "key" : seriesColumn;
    if (column === undefined) return row;
    const at = columns.findIndex((each) => each.name === column);
    const stream = row[columns.findIndex((each) => each.name === "stream")] as RowStream;
    const dictionary = name === "revision_rows" ? streamTable[stream].dictionary : "series";
    const key = this.#dictionaries.find(dictionary, Number(row[at]));
    return key === undefined ? undefined : row.with(at, key);
  }

  protected async copyInto(table: string, bytes: Buffer): Promise<void> {
    await this.session.copyIn(`COPY ${table} (${this.names}) FROM STDIN (FORMAT binary)`, bytes);
  }
}

/** A relation whose rows may change, so all of them are compared. */
class SharedTable extends SharedRelation {
  /** What PostgreSQL has: the bytes of each row by those of its primary key. */
  #rows = new Map<string, string>();

  async load(_connection: Connection): Promise<void> {
    const { name } = this.layout;
    const copied = await this.session.copyOut(
      `COPY (SELECT ${this.names} FROM mds.${name}) TO STDOUT (FORMAT binary)`,
    );
    this.#rows = new Map(
      [...splitCopy(copied)].map(({ bytes }) => [this.#keyOf(bytes), bytes.toString("latin1")]),
    );
  }

  async update(connection: Connection, transaction: FencedTransaction): Promise<number> {
    const { columns, name, primaryKey } = this.layout;
    const incoming = new CopyWriter(columns);
    const scratch = new CopyWriter(columns);
    const found = new Map<string, string>();
    for (const translated of this.readOwn(connection, this.#rows)) {
      const bytes = scratch.add((i) => translated[i] ?? null);
      const [key, text] = [this.#keyOf(bytes), bytes.toString("latin1")];
      found.set(key, text);
      if (this.#rows.get(key) !== text) incoming.add((i) => translated[i] ?? null);
    }
    this.addKept(found, this.#rows);
    const gone = [...this.#rows.keys()].filter((key) => !found.has(key));
    if (incoming.rows + gone.length === 0) return 0;
    const keys = primaryKey.map((each) => `"${each}"`).join(", ");
    await transaction(async () => {
      if (gone.length > 0) {
        await this.session.query(`CREATE TEMP TABLE gone AS SELECT ${this.names} FROM mds.${name} LIMIT 0`);
        // The rows of PostgreSQL, whose bytes are known.
        const bytes = new CopyWriter(columns).finishWith(gone.map((key) => this.#rows.get(key) ?? ""));
        await this.copyInto("pg_temp.gone", bytes);
        await this.session.query(
          `DELETE FROM mds.${name} WHERE (${keys}) IN (SELECT ${keys} FROM pg_temp.gone); DROP TABLE pg_temp.gone`,
        );
      }
      await this.session.mergeIn(`mds.${name}`, {
        columns: columns.map((each) => each.name),
        key: primaryKey,
        bytes: incoming.finish(),
      });
    });
    const changed = incoming.rows + gone.length;
    this.#rows = found;
    return changed;
  }

  /** The rows of this file. `stored`: those of PostgreSQL, by the bytes of their primary key. */
  protected readOwn(connection: Connection, _stored: ReadonlyMap<string, string>): SqlValue[][] {
    return this.read(connection).flatMap((row) => {
      const translated = this.translate(row);
      return translated ? [translated] : [];
    });
  }

  /** Adds the rows of PostgreSQL that stay, though this file does not have them. */
  protected addKept(_found: Map<string, string>, _stored: ReadonlyMap<string, string>): void {}

  /** The primary key is the first columns. */
  #keyOf(row: Buffer): string {
    return row.toString("latin1", 2, endOfField(row, this.layout.primaryKey.length - 1));
  }
}

const isHistory = (stream: string) => historyStreams.some((each) => each === stream);

/** The part of a stored target that decides what becomes of it. */
interface StoredTarget {
  readonly series: string;
  readonly from: number;
  readonly to: number;
}

/**
 * The targets of a pair. Each daemon knows them from its own start on; PostgreSQL has the union, so that `gaps` never forgets
 * an older claim.
 */
class SharedTargets extends SharedTable {
  #own: StoredTarget[] = [];
  /** What was never fetched of a history that is no longer selected is no target any more, whoever has claimed it. */
  #isDeselected: (series: string) => boolean = () => false;

  protected override readOwn(connection: Connection, stored: ReadonlyMap<string, string>): SqlValue[][] {
    const claims = Map.groupBy([...stored.values()].map(decodeTarget), ({ series }) => series);
    const merged = new Map<string, SqlValue[]>();
    const own = super.readOwn(connection, stored);
    const declared = new Set(own.map(([stream]) => String(stream)).filter((stream) => isHistory(stream)));
    const selected = new Set(own.flatMap(([stream, key, , to]) => (to === null ? [`${stream} ${key}`] : [])));
    this.#isDeselected = (series) => declared.has(series.split(" ")[0] ?? "") && !selected.has(series);
    for (const row of own) {
      const [stream, key, from] = row as [string, number, number];
      const series = `${stream} ${key}`;
      const older = (this.#isDeselected(series) ? [] : (claims.get(series) ?? [])).filter(
        (claim) => claim.from < from && claim.to >= from,
      );
      const start = Math.min(from, ...older.map((claim) => claim.from));
      // The last of several inside one older claim decides whether that claim has ended; they are in order of time.
      merged.set(`${series} ${start}`, row.with(2, start));
    }
    const rows = [...merged.values()];
    this.#own = rows.map(([stream, key, from, to]) => ({
      series: `${stream} ${key}`,
      from: Number(from),
      to: to === null ? Number.POSITIVE_INFINITY : Number(to),
    }));
    return rows;
  }

  protected override addKept(found: Map<string, string>, stored: ReadonlyMap<string, string>): void {
    const own = Map.groupBy(this.#own, ({ series }) => series);
    for (const [key, row] of stored) {
      const { series, from } = decodeTarget(row);
      const isReplaced = own.get(series)?.some((target) => target.from <= from && from <= target.to) ?? false;
      if (!found.has(key) && !isReplaced && !this.#isDeselected(series)) found.set(key, row);
    }
  }
}

/** Reads the bytes of a row of `targets`: its first columns are the stream, the series and both ends. */
function decodeTarget(row: string): StoredTarget {
  const bytes = Buffer.from(row, "latin1");
  const [stream, series, from, to] = [0, 1, 2, 3].map((field) => endOfField(bytes, field)) as [
    number,
    number,
    number,
    number,
  ];
  const isOpen = to - from === 4;
  return {
    series: `${bytes.toString("utf8", 6, stream)} ${bytes.readInt32BE(series - 4)}`,
    from: Number(bytes.readBigInt64BE(from - 8)),
    to: isOpen ? Number.POSITIVE_INFINITY : Number(bytes.readBigInt64BE(to - 8)),
  };
}

/** A relation that only grows, by ascending numbers. PostgreSQL has a log of each file. */
class SharedLog extends SharedRelation {
  #source = 0;
  #last = 0;
  #lastRow = "";
  #count = 0;
  #others = 0;
  #isCompared = false;

  get #key(): string {
    return `"${this.layout.columns[1]?.name}"`;
  }

  async load(connection: Connection): Promise<void> {
    const { name } = this.layout;
    const { id } = readJournalPosition(connection);
    this.#source = id;
    const [state] = await this.session.query<{ count: string; last: string | null; others: string }>(
      `SELECT count(*) FILTER (WHERE source = ${id}) AS count, max(${this.#key}) FILTER (WHERE source = ${id}) AS last,
        count(*) FILTER (WHERE source <> ${id}) AS others FROM mds.${name}`,
      [],
      TABLE_TIMEOUT_MS,
    );
    this.#count = Number(state?.count);
    this.#last = Number(state?.last ?? 0);
    this.#others = Number(state?.others);
    const copied = await this.session.copyOut(
      `COPY (SELECT ${this.names} FROM mds.${name} WHERE source = ${id} AND ${this.#key} = ${this.#last}) TO STDOUT (FORMAT binary)`,
    );
    this.#lastRow = [...splitCopy(copied)].map(({ bytes }) => bytes.toString("latin1")).join("");
    this.#isCompared = false;
  }

  async update(connection: Connection, transaction: FencedTransaction): Promise<number> {
    const { name, columns } = this.layout;
    let changed = 0;
    if (!this.#isCompared) changed += await this.#compare(connection, transaction);
    this.#isCompared = true;
    for (;;) {
      const rows = this.read(connection, { after: this.#last, limit: MAX_ROWS_PER_PART });
      const copy = new CopyWriter(columns);
      let last = this.#last;
      for (const row of rows) {
        const translated = this.translate([this.#source, ...row]);
        if (!translated) break;
        copy.add((i) => translated[i] ?? null);
        last = Number(row[0]);
      }
      if (copy.rows === 0) return changed;
      const bytes = copy.finish();
      await transaction(() => this.copyInto(`mds.${name}`, bytes));
      changed += copy.rows;
      this.#last = last;
    }
  }

  /** Deletes what this file does not have, or finds out where its own part begins. Returns how many rows it deleted. */
  async #compare(connection: Connection, transaction: FencedTransaction): Promise<number> {
    const { name } = this.layout;
    const isAlone = this.role === "alone";
    const isPrefix = this.#isPrefix(connection);
    const condition = isPrefix ? `source <> ${this.#source}` : isAlone ? "true" : `source = ${this.#source}`;
    const mustDelete = !isPrefix || (isAlone && this.#others > 0);
    if (mustDelete)
      await transaction(
        async () =>
          void (await this.session.query(`DELETE FROM mds.${name} WHERE ${condition}`, [], TABLE_TIMEOUT_MS)),
      );
    if (!isPrefix) this.#last = 0;
    if (!isAlone) this.#last = Math.max(this.#last, await this.#findLastTold(connection));
    if (!mustDelete) return 0;
    return (isPrefix ? 0 : this.#count) + (isAlone ? this.#others : 0);
  }

  /** Both daemons of a pair see the same events; each event is logged once. */
  async #findLastTold(connection: Connection): Promise<number> {
    const { name, from, columns, momentColumn = "" } = this.layout;
    const isText = columns.find((each) => each.name === momentColumn)?.type === "moment";
    const newest = isText
      ? `to_char(max(${momentColumn}) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
      : `max(${momentColumn})::double precision`;
    const [row] = await this.session.query<{ newest: string | number | null }>(
      `SELECT ${newest} AS newest FROM mds.${name} WHERE source <> ${this.#source}`,
    );
    if (row === undefined || row.newest === null) return 0;
    const sql = `SELECT coalesce(max(${this.#key}), 0) FROM ${from} WHERE ${momentColumn} <= ?`;
    return connection.value<number>(sql, [row.newest]);
  }

  #isPrefix(connection: Connection): boolean {
    if (this.#last === 0) return true;
    // Leave out what the other daemon has logged.
    if (this.role === "pair") return this.#hasLast(connection);
    const sql = `SELECT count(*) FROM ${this.layout.from} WHERE ${this.#key} <= ?`;
    return connection.value<number>(sql, [this.#last]) === this.#count && this.#hasLast(connection);
  }

  #hasLast(connection: Connection): boolean {
    const { columns } = this.layout;
    const [row] = this.read(connection, { after: this.#last - 1, limit: 1 });
    const translated = row && this.translate([this.#source, ...row]);
    if (!translated) return false;
    return new CopyWriter(columns).add((i) => translated[i] ?? null).toString("latin1") === this.#lastRow;
  }
}
