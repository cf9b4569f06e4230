import type { Dictionary } from "../../model/streams.ts";
import { readSmallRelation } from "../../warehouse/read/forwarded-rows.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { SqlValue } from "../../warehouse/tables/row-tables.ts";
import { type DictionaryLayout, dictionaryLayouts } from "../schema/tables.ts";
import type { SharedSession } from "../server/session.ts";
import { CopyWriter, endOfField, splitCopy } from "./copy-format.ts";

/** Runs work in a transaction that only the lease's holder can commit. */
export type FencedTransaction = <T>(work: () => Promise<T>) => Promise<T>;

/** An entry as PostgreSQL has it: its key there, and its columns as bytes. */
interface SharedEntry {
  readonly key: number;
  readonly bytes: string;
}

/** An entry of the SQLite file. */
interface LocalEntry {
  readonly local: number;
  readonly values: SqlValue[];
  /** The bytes that name it in every file. */
  readonly identity: string;
}

/** Maps the keys of the SQLite file to those of PostgreSQL, which assigns its own. */
export class SharedDictionaries {
  readonly #session: SharedSession;
  #hasAdopted = false;
  readonly #keys = new Map<Dictionary, Map<number, number>>();
  readonly #entries = new Map<Dictionary, Map<string, SharedEntry>>();

  constructor(session: SharedSession) {
    this.#session = session;
  }

  /** Reads what PostgreSQL has. */
  async load(): Promise<void> {
    for (const layout of dictionaryLayouts) {
      this.#keys.set(layout.name, new Map());
      this.#entries.set(layout.name, new Map());
      await this.#loadOne(layout);
    }
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

  async #loadOne({ name, key, columns }: DictionaryLayout): Promise<void> {
    const entries = this.#entries.get(name);
    const names = columns.map((column) => `"${column.name}"`).join(", ");
    const copied = await this.#session.copyOut(
      `COPY (SELECT ${names}, ${key} FROM mds.${name}) TO STDOUT (FORMAT binary)`,
    );
    for (const { bytes, ends } of splitCopy(copied)) {
      const end = ends[columns.length - 1] as number;
      const entry = { key: bytes.readInt32BE(end + 4), bytes: bytes.toString("latin1", 2, end) };
      entries?.set(bytes.toString("latin1", 2, ends[1]), entry);
    }
  }

  /** Returns the entries that PostgreSQL lacks, or has otherwise. */
  #matchOne(connection: Connection, { name, key, columns }: DictionaryLayout): LocalEntry[] {
    const { keys, entries } = this.#contentOf(name);
    const writer = new CopyWriter(columns);
    const changed: LocalEntry[] = [];
    for (const [local, ...values] of readSmallRelation(connection, name, [
      key,
      ...columns.map((each) => each.name),
    ])) {
      const row = writer.add((i) => values[i] ?? null);
      const identity = row.toString("latin1", 2, endOfField(row, 1));
      const entry = entries.get(identity);
      if (entry && !keys.has(Number(local))) this.#hasAdopted = true;
      if (entry) keys.set(Number(local), entry.key);
      if (entry?.bytes !== row.toString("latin1", 2))
        changed.push({ local: Number(local), values, identity });
    }
    return changed;
  }

  async #updateOne(
    connection: Connection,
    layout: DictionaryLayout,
    transaction: FencedTransaction,
  ): Promise<number> {
    const { keys, entries } = this.#contentOf(layout.name);
    const changed = this.#matchOne(connection, layout);
    if (changed.length === 0) return 0;
    const { name, identity } = layout;
    const copy = new CopyWriter(layout.columns);
    for (const { values } of changed) copy.add((i) => values[i] ?? null);
    const columns = layout.columns.map((column) => column.name);
    const bytes = copy.finish();
    await transaction(() => this.#session.mergeIn(`mds.${name}`, { columns, key: identity, bytes }));
    await this.#loadOne(layout);
    for (const { local, identity } of changed) {
      const entry = entries.get(identity);
      if (entry) keys.set(local, entry.key);
    }
    return changed.length;
  }

  #contentOf(name: Dictionary): { keys: Map<number, number>; entries: Map<string, SharedEntry> } {
    const [keys, entries] = [this.#keys.get(name), this.#entries.get(name)];
    if (!keys || !entries) throw new Error("the shared dictionaries are not loaded");
    return { keys, entries };
  }
}
