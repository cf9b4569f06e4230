import type { Dictionary } from "../../model/streams.ts";
import { readSmallRelation } from "../../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type DictionaryLayout, dictionaryLayouts, upsertSql } from "../schema/tables.ts";
import type { Lease } from "../server/lease.ts";
import { TABLE_TIMEOUT_MS } from "../server/session.ts";
import { encodeRows } from "./copy-format.ts";

/** An entry of the SQLite file in PostgreSQL. */
interface MatchedEntry {
  readonly local: number;
  /** Null: PostgreSQL lacks it. */
  readonly shared: number | null;
  readonly differs: boolean;
}

/** Maps the keys of the SQLite file to those of PostgreSQL, which assigns its own. */
export class SharedDictionaries {
  readonly #connection: Connection;
  readonly #lease: Lease;
  /** Whether the last update found an entry that another file has forwarded and that is new to this one: PostgreSQL may have rows of it. */
  hasAdopted = false;
  readonly #keys = new Map<Dictionary, Map<number, number>>();
  /** The entries as they were compared last. */
  readonly #compared = new Map<Dictionary, Buffer>();

  constructor(connection: Connection, lease: Lease) {
    this.#connection = connection;
    this.#lease = lease;
  }

  /** The same as `update`, but another daemon may have changed what PostgreSQL has. */
  async reload(): Promise<void> {
    this.#keys.clear();
    this.#compared.clear();
    await this.update();
  }

  /** Adds the entries that PostgreSQL lacks, and updates those that differ. Returns how many. */
  async update(): Promise<number> {
    let changed = 0;
    this.hasAdopted = false;
    for (const layout of dictionaryLayouts) changed += await this.#updateOne(layout);
    return changed;
  }

  /** Whether the file has entries that were added after the last update. */
  hasNewKeys(): boolean {
    const count = (name: Dictionary) => this.#connection.value<number>(`SELECT count(*) FROM ${name}`);
    return dictionaryLayouts.some(({ name }) => count(name) !== this.#keys.get(name)?.size);
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

  async #updateOne({ name, key, identity, columns }: DictionaryLayout): Promise<number> {
    const { session } = this.#lease;
    const names = columns.map((column) => column.name);
    const rows = readSmallRelation(this.#connection, name, [key, ...names]);
    const bytes = encodeRows([{ name: key, type: "int4", isNullable: false }, ...columns], rows);
    if (this.#compared.get(name)?.equals(bytes)) return 0;
    await session.stage(`mds.${name}`, [key, ...names], bytes);
    // PostgreSQL cannot compare JSON.
    const content = (alias: string) =>
      columns.map((each) => `${alias}."${each.name}"${each.type === "json" ? "::text" : ""}`).join(", ");
    const matched = `(SELECT i.*, d.${key} AS shared, ROW(${content("i")}) IS DISTINCT FROM ROW(${content("d")}) AS differs
      FROM pg_temp.incoming i LEFT JOIN mds.${name} d USING (${identity.join(", ")})) m`;
    const matchSql = `SELECT ${key} AS local, shared, differs FROM ${matched}`;
    const match = () => session.queryTable<MatchedEntry>(matchSql);
    let entries = await match();
    const known = this.#keys.get(name);
    this.hasAdopted ||= entries.some(({ local, shared }) => shared !== null && !known?.has(local));
    const changed = entries.filter(({ differs }) => differs).length;
    if (changed > 0) {
      const sql = upsertSql(`mds.${name}`, names, identity, `${matched} WHERE differs`);
      await this.#lease.run(sql, TABLE_TIMEOUT_MS);
      entries = await match();
    }
    const pairs = entries.flatMap(({ local, shared }) => (shared === null ? [] : [[local, shared] as const]));
    this.#keys.set(name, new Map(pairs));
    this.#compared.set(name, bytes);
    return changed;
  }
}
