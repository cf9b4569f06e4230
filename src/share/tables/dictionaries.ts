import type { Dictionary } from "../../model/streams.ts";
import { readSmallRelation } from "../../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type DictionaryLayout, dictionaryLayouts, upsertSql } from "../schema/tables.ts";
import { type SharedSession, TABLE_TIMEOUT_MS } from "../server/session.ts";
import { encodeRows } from "./copy-format.ts";

/** Runs work in a transaction that only the lease's holder can commit. */
export type FencedTransaction = <T>(work: () => Promise<T>) => Promise<T>;

/** An entry of the SQLite file in PostgreSQL. */
interface MatchedEntry {
  readonly local: number;
  /** Null: PostgreSQL lacks it. */
  readonly shared: number | null;
  readonly differs: boolean;
}

/** Maps the keys of the SQLite file to those of PostgreSQL, which assigns its own. */
export class SharedDictionaries {
  readonly #session: SharedSession;
  #hasAdopted = false;
  readonly #keys = new Map<Dictionary, Map<number, number>>();
  /** The entries as they were compared last. */
  readonly #compared = new Map<Dictionary, Buffer>();

  constructor(session: SharedSession) {
    this.#session = session;
  }

  /** Forgets what PostgreSQL has: another daemon may have changed it. */
  clear(): void {
    this.#keys.clear();
    this.#compared.clear();
  }

  /** Adds the entries that PostgreSQL lacks, and updates those that differ. Returns how many. */
  async update(connection: Connection, transaction: FencedTransaction): Promise<number> {
    let changed = 0;
    for (const layout of dictionaryLayouts) changed += await this.#updateOne(connection, layout, transaction);
    return changed;
  }

  /** Whether the file has entries that were added after the last update. */
  hasNewKeys(connection: Connection): boolean {
    return dictionaryLayouts.some(
      ({ name }) => connection.value<number>(`SELECT count(*) FROM ${name}`) !== this.#keys.get(name)?.size,
    );
  }

  /** Whether an entry that another file has forwarded is new to this one since the last call: PostgreSQL may have rows of it. */
  hasAdopted(): boolean {
    const hasAdopted = this.#hasAdopted;
    this.#hasAdopted = false;
    return hasAdopted;
  }

  /** The key in PostgreSQL; undefined if the entry is newer than the last update. */
  find(dictionary: Dictionary, local: number): number | undefined {
    return this.#keys.get(dictionary)?.get(local);
  }

  keyOf(dictionary: Dictionary, local: number): number {
    const key = this.find(dictionary, local);
    if (key === undefined) throw new Error(`no shared key for ${dictionary} ${local}`);
    return key;
  }

  /** From the keys of PostgreSQL to those of the SQLite file. */
  invert(dictionary: Dictionary): Map<number, number> {
    return new Map([...(this.#keys.get(dictionary) ?? [])].map(([local, shared]) => [shared, local]));
  }

  async #updateOne(
    connection: Connection,
    { name, key, identity, columns }: DictionaryLayout,
    transaction: FencedTransaction,
  ): Promise<number> {
    const names = columns.map((column) => column.name);
    const rows = readSmallRelation(connection, name, [key, ...names]);
    const bytes = encodeRows([{ name: key, type: "int4", isNullable: false }, ...columns], rows);
    if (this.#compared.get(name)?.equals(bytes)) return 0;
    await this.#session.stage(`mds.${name}`, [key, ...names], bytes);
    // PostgreSQL cannot compare JSON.
    const content = (alias: string) =>
      columns.map((each) => `${alias}."${each.name}"${each.type === "json" ? "::text" : ""}`).join(", ");
    const matched = `(SELECT i.*, d.${key} AS shared, ROW(${content("i")}) IS DISTINCT FROM ROW(${content("d")}) AS differs
      FROM pg_temp.incoming i LEFT JOIN mds.${name} d USING (${identity.join(", ")})) m`;
    const match = () =>
      this.#session.query<MatchedEntry>(
        `SELECT ${key} AS local, shared, differs FROM ${matched}`,
        [],
        TABLE_TIMEOUT_MS,
      );
    let entries = await match();
    const known = this.#keys.get(name);
    this.#hasAdopted ||= entries.some(({ local, shared }) => shared !== null && !known?.has(local));
    const changed = entries.filter(({ differs }) => differs).length;
    if (changed > 0) {
      const sql = upsertSql(`mds.${name}`, names, identity, `${matched} WHERE differs`);
      await transaction(() => this.#session.query(sql, [], TABLE_TIMEOUT_MS));
      entries = await match();
    }
    const pairs = entries.flatMap(({ local, shared }) => (shared === null ? [] : [[local, shared] as const]));
    this.#keys.set(name, new Map(pairs));
    this.#compared.set(name, bytes);
    return changed;
  }
}
