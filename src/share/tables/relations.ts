import { type RowStream, streamTable } from "../../model/streams.ts";
import { readSmallRelation } from "../../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SqlValue } from "../../warehouse/tables/row-tables.ts";
import { type RelationLayout, relationLayouts } from "../schema/tables.ts";
import type { SharedSession } from "../server/session.ts";
import { CopyWriter, endOfField, splitCopy } from "./copy-format.ts";
import type { FencedTransaction, SharedDictionaries } from "./dictionaries.ts";

/** A log may be long: it is read in parts. */
const MAX_ROWS_PER_PART = 20_000;

/** Lookups, logs and the small tables that `gaps` reads. Rows that differ are replaced, in one transaction each. */
export class SharedRelations {
  readonly #relations: readonly SharedRelation[];

  constructor(session: SharedSession, dictionaries: SharedDictionaries) {
    this.#relations = relationLayouts.map((layout) =>
      layout.isLog
        ? new SharedLog(session, layout, dictionaries)
        : new SharedTable(session, layout, dictionaries),
    );
  }

  /** Reads what PostgreSQL has. */
  async load(): Promise<void> {
    for (const relation of this.#relations) await relation.load();
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
  readonly #dictionaries: SharedDictionaries;

  constructor(session: SharedSession, layout: RelationLayout, dictionaries: SharedDictionaries) {
    this.session = session;
    this.layout = layout;
    this.#dictionaries = dictionaries;
  }

  abstract load(): Promise<void>;
  abstract update(connection: Connection, transaction: FencedTransaction): Promise<number>;

  protected get names(): string {
    return this.layout.columns.map(({ name }) => `"${name}"`).join(", ");
  }

  protected read(connection: Connection, options: { after?: number; limit?: number } = {}): SqlValue[][] {
    const names = this.layout.columns.map(({ name }) => name);
    return readSmallRelation(connection, this.layout.from, names, options);
  }

  /** Puts the keys of PostgreSQL in the place of the local ones; undefined if one is too new to have any. */
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

/** A relation whose rows may change: compared as a whole. */
class SharedTable extends SharedRelation {
  /** What PostgreSQL has: the bytes of each row by those of its primary key. */
  #rows = new Map<string, string>();

  async load(): Promise<void> {
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
    for (const row of this.read(connection)) {
      const translated = this.translate(row);
      if (!translated) continue;
      const bytes = scratch.add((i) => translated[i] ?? null);
      const [key, text] = [this.#keyOf(bytes), bytes.toString("latin1")];
      found.set(key, text);
      if (this.#rows.get(key) !== text) incoming.add((i) => translated[i] ?? null);
    }
    const gone = [...this.#rows.keys()].filter((key) => !found.has(key));
    if (incoming.rows + gone.length === 0) return 0;
    const isKey = (each: string) => primaryKey.includes(each);
    const keys = primaryKey.map((each) => `"${each}"`).join(", ");
    const set = columns
      .filter((each) => !isKey(each.name))
      .map((each) => `"${each.name}" = excluded."${each.name}"`);
    await transaction(async () => {
      await this.session.query(
        `CREATE TEMP TABLE incoming ON COMMIT DROP AS SELECT ${this.names} FROM mds.${name} LIMIT 0`,
      );
      if (gone.length > 0) {
        // The rows as they are there: their bytes are known.
        const bytes = new CopyWriter(columns).finishWith(gone.map((key) => this.#rows.get(key) ?? ""));
        await this.copyInto("pg_temp.incoming", bytes);
        await this.session.query(
          `DELETE FROM mds.${name} WHERE (${keys}) IN (SELECT ${keys} FROM pg_temp.incoming); TRUNCATE pg_temp.incoming`,
        );
      }
      await this.copyInto("pg_temp.incoming", incoming.finish());
      await this.session.query(
        `INSERT INTO mds.${name} (${this.names}) SELECT ${this.names} FROM pg_temp.incoming
        ON CONFLICT (${keys}) DO UPDATE SET ${set.join(", ")}`,
      );
    });
    const changed = incoming.rows + gone.length;
    this.#rows = found;
    return changed;
  }

  /** The primary key is the first columns. */
  #keyOf(row: Buffer): string {
    return row.toString("latin1", 2, endOfField(row, this.layout.primaryKey.length - 1));
  }
}

/** A relation that only grows, by ascending numbers. */
class SharedLog extends SharedRelation {
  #last = 0;
  #lastRow = "";
  #count = 0;
  #isCompared = false;

  async load(): Promise<void> {
    const { name, columns } = this.layout;
    const key = `"${columns[0]?.name}"`;
    const [state] = await this.session.query<{ count: string; last: string | null }>(
      `SELECT count(*) AS count, max(${key}) AS last FROM mds.${name}`,
    );
    this.#count = Number(state?.count);
    this.#last = Number(state?.last ?? 0);
    const copied = await this.session.copyOut(
      `COPY (SELECT ${this.names} FROM mds.${name} WHERE ${key} = ${this.#last}) TO STDOUT (FORMAT binary)`,
    );
    this.#lastRow = [...splitCopy(copied)].map(({ bytes }) => bytes.toString("latin1")).join("");
    this.#isCompared = false;
  }

  async update(connection: Connection, transaction: FencedTransaction): Promise<number> {
    const { name, columns } = this.layout;
    let changed = 0;
    if (!this.#isCompared && !this.#isPrefix(connection)) {
      // Another file's log: it is replaced whole.
      await transaction(async () => void (await this.session.query(`DELETE FROM mds.${name}`)));
      changed += this.#count;
      this.#last = 0;
    }
    this.#isCompared = true;
    for (;;) {
      const rows = this.read(connection, { after: this.#last, limit: MAX_ROWS_PER_PART });
      const copy = new CopyWriter(columns);
      let last = this.#last;
      for (const row of rows) {
        const translated = this.translate(row);
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

  #isPrefix(connection: Connection): boolean {
    if (this.#last === 0) return true;
    const { columns, from } = this.layout;
    const key = `"${columns[0]?.name}"`;
    const count = connection.value<number>(`SELECT count(*) FROM ${from} WHERE ${key} <= ?`, [this.#last]);
    const [row] = this.read(connection, { after: this.#last - 1, limit: 1 });
    const translated = row && this.translate(row);
    if (count !== this.#count || !translated) return false;
    return new CopyWriter(columns).add((i) => translated[i] ?? null).toString("latin1") === this.#lastRow;
  }
}
