import type { ColumnType } from "../../model/column.ts";
import { formatTimestamp } from "../../model/time.ts";
import { countAbsences, onlyAbsent, requiredFor } from "../../rule/repetition.ts";
import { readAbsentEntries, storeAbsentEntries } from "../coverage/pending-claims.ts";
import type { SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/** The table of a lookup: its key columns, and the columns whose changes go to `status_changes`. */
export interface LookupTable {
  readonly entity: string;
  readonly table: string;
  readonly keys: readonly string[];
  readonly tracked: readonly string[];
  /** Stored, but their changes are not recorded. */
  readonly untracked: readonly string[];
  /** Of the tracked columns, except those that the warehouse derives. */
  readonly types: ReadonlyMap<string, ColumnType>;
}

/** A list that lacks a larger part of the listed rows is an incident. At most this part is delisted at once. */
const MAX_MISSING_RATIO = 0.1;

export interface ReconcileOptions {
  /** The list is complete and every record was readable: rows that it lacks count as absent. */
  readonly isComplete: boolean;
  /** The response came from a stale HTTP cache: stored rows may be newer, so the list may only add rows. */
  readonly isStale?: boolean;
}

type Scope = readonly { readonly column: string; readonly value: SqlValue }[];

interface StoredRow {
  readonly values: readonly SqlValue[];
  readonly delistedAt: string | null;
  /** For readers: `pending_claims` has what decides. */
  readonly absences: number;
}

/** What a list changes in its table, decided by what is stored before anything is written. */
export type LookupPlan = Readonly<ReturnType<typeof planLookup>>;

/**
 * Compares a lookup table with a list; each incoming row is its key, tracked and untracked values. Rows that a complete
 * list (within `scope`) lacks are never deleted: they count as absent and are eventually marked as delisted.
 */
export function planLookup(
  transaction: Transaction,
  lookup: LookupTable,
  incoming: readonly (readonly SqlValue[])[],
  { scope = [], isComplete, isStale = false }: ReconcileOptions & { readonly scope?: Scope },
) {
  const stored = readStored(transaction, lookup, scope);
  const seen = new Map(incoming.map((values) => [keyOf(lookup, values), values]));
  const added = [...seen].flatMap(([key, values]) => (stored.has(key) ? [] : [values]));
  if (isStale) {
    const nothing = { seen: [], missing: [], delisted: [], absent: undefined, incident: null };
    return { lookup, isStale, added, ...nothing };
  }
  const both = [...seen].flatMap(([key, after]) => {
    const before = stored.get(key);
    return before ? [{ before, after }] : [];
  });
  const list = [lookup.table, ...scope.map(({ value }) => value)].join(" ");
  const absent = readAbsentEntries(transaction, "delisted", list);
  const listed = [...stored].filter(([, row]) => row.delistedAt === null);
  const missing = listed.filter(([key]) => isComplete && !seen.has(key)).map(([key]) => key);
  const maxDelisted = Math.max(1, listed.length * MAX_MISSING_RATIO);
  const isIncident = missing.length > maxDelisted;
  const required = requiredFor(isIncident ? "shorter list" : "delisted");
  const { accepted, pending } = isComplete
    ? countAbsences(missing, absent, required, transaction.now, maxDelisted)
    : { accepted: [], pending: onlyAbsent(absent, (key) => !seen.has(key)) };
  const keyValues = (key: string) => stored.get(key)?.values.slice(0, lookup.keys.length) ?? [];
  return {
    ...{ lookup, isStale, added, seen: both },
    /** The keys of the listed rows that the list lacks, and of those that count as removed now. */
    missing: missing.map(keyValues),
    delisted: accepted.map(keyValues),
    /** What the list lacks so far, by its name; undefined: as before. */
    absent: absent.length + pending.length > 0 ? { list, pending } : undefined,
    /** So many rows are missing that the list is probably wrong. */
    incident: isIncident ? { missing: missing.length, listed: listed.length } : null,
  };
}

/** Writes what was planned. Reads nothing. */
export function writeLookupPlan(
  transaction: Transaction,
  { lookup, isStale, added, seen, missing, delisted, absent, incident }: LookupPlan,
) {
  const show = `UPDATE ${lookup.table} SET absences = absences + 1 WHERE ${whereKey(lookup)}`;
  const result = {
    added: added.reduce((sum, values) => sum + upsert(transaction, lookup, values, isStale), 0),
    changed: seen.filter(({ before, after }) => update(transaction, lookup, before, after)).length,
    /** Newly marked as delisted, after lists have lacked them for long enough. */
    delisted: delisted.length,
    incident,
  };
  if (absent) storeAbsentEntries(transaction, "delisted", absent.list, absent.pending);
  for (const key of missing) transaction.run(show, key);
  const delist = `UPDATE ${lookup.table} SET delisted_at = ? WHERE ${whereKey(lookup)}`;
  for (const key of delisted) {
    const now = transaction.stamp();
    transaction.run(delist, [now, ...key]);
    recordChange(transaction, lookup, key, { field: "delisted_at", old: null, new: now });
  }
  return result;
}

function readStored(transaction: Transaction, lookup: LookupTable, scope: Scope): Map<string, StoredRow> {
  const columns = [...lookup.keys, ...lookup.tracked, ...lookup.untracked];
  const where = scope.map(({ column }) => ` AND ${column} = ?`).join("");
  const rows = transaction.tuples<
    readonly [delistedAt: string | null, absences: number, ...values: SqlValue[]]
  >(
    `SELECT delisted_at, absences, ${columns.join(", ")} FROM ${lookup.table} WHERE true${where}`,
    scope.map(({ value }) => value),
  );
  return new Map(
    rows.map(([delistedAt, absences, ...values]) => [
      keyOf(lookup, values),
      { values, delistedAt, absences },
    ]),
  );
}

function upsert(transaction: Transaction, lookup: LookupTable, values: readonly SqlValue[], isStale = false) {
  const columns = [...lookup.keys, ...lookup.tracked, ...lookup.untracked, "first_seen", "absences"];
  // A row outside the scope may have the same key: a stub inserted for a tick, or a contract that moved here.
  const updates = [...lookup.tracked, ...lookup.untracked, "absences"].map(
    (column) => `${column} = excluded.${column}`,
  );
  // A stub was not listed yet.
  if (lookup.untracked.includes("is_described"))
    updates.push("first_seen = CASE WHEN is_described THEN first_seen ELSE excluded.first_seen END");
  const onConflict = isStale ? "NOTHING" : `UPDATE SET ${updates.join(", ")}, delisted_at = NULL`;
  return transaction.run(
    `INSERT INTO ${lookup.table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})
      ON CONFLICT (${lookup.keys.join(", ")}) DO ${onConflict}`,
    [...values, transaction.stamp(), 0],
  );
}

function update(
  transaction: Transaction,
  lookup: LookupTable,
  before: StoredRow,
  after: readonly SqlValue[],
): boolean {
  const differs = after.some((value, i) => value !== before.values[i]);
  if (!differs && before.absences === 0 && before.delistedAt === null) return false;
  const keys = lookup.keys.length;
  lookup.tracked.forEach((field, i) => {
    const [old, latest] = [before.values[keys + i] ?? null, after[keys + i] ?? null];
    if (old !== latest) recordChange(transaction, lookup, after, { field, old, new: latest });
  });
  if (before.delistedAt !== null) {
    const old = before.delistedAt;
    recordChange(transaction, lookup, after, { field: "delisted_at", old, new: null });
  }
  upsert(transaction, lookup, after);
  return differs || before.delistedAt !== null;
}

function recordChange(
  transaction: Transaction,
  lookup: LookupTable,
  values: readonly SqlValue[],
  change: { field: string; old: SqlValue; new: SqlValue },
): void {
  const isTimestamp = lookup.types.get(change.field) === "timestamp";
  const text = (value: SqlValue) =>
    value === null ? null : isTimestamp && typeof value === "number" ? formatTimestamp(value) : String(value);
  transaction.run(
    "INSERT INTO status_changes (entity, id, field, old, new, seen_at) VALUES (?, ?, ?, ?, ?, ?)",
    [
      lookup.entity,
      values.slice(0, lookup.keys.length).join("/"),
      change.field,
      text(change.old),
      text(change.new),
      transaction.stamp(),
    ],
  );
}

function whereKey({ keys }: LookupTable): string {
  return keys.map((key) => `${key} = ?`).join(" AND ");
}

/** Identifiers may contain any character, so composite keys are compared as JSON. */
function keyOf({ keys }: LookupTable, values: readonly SqlValue[]): string {
  return keys.length === 1 ? String(values[0]) : JSON.stringify(values.slice(0, keys.length));
}
