import { formatTimestamp } from "../../model/time.ts";
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
  /** Tracked columns that contain timestamps. */
  readonly timestamps: readonly string[];
}

export interface ReconcileResult {
  readonly added: number;
  readonly changed: number;
  /** Newly marked as delisted, after enough consecutive lists lacked them. */
  readonly delisted: number;
  /** Set when so many rows were missing that the list is probably wrong. */
  readonly incident: { readonly missing: number; readonly listed: number } | null;
}

/** How many consecutive complete lists must lack a row before it is marked as delisted. */
const MIN_ABSENCES = 3;
/** A list that lacks a larger part of the listed rows is an incident. At most this part is delisted at once. */
const MAX_MISSING_RATIO = 0.1;
/** Two days of hourly lists: rows that are still missing then are delisted despite the incident. */
const MIN_INCIDENT_ABSENCES = 48;

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
  readonly absences: number;
}

/**
 * Updates a lookup table from a list; each incoming row is its key, tracked and untracked values. Rows that a complete
 * list (within `scope`) lacks are never deleted: they count as absent and are eventually marked as delisted.
 */
export function reconcileLookup(
  transaction: Transaction,
  lookup: LookupTable,
  incoming: readonly (readonly SqlValue[])[],
  options: ReconcileOptions & { readonly scope?: Scope },
): ReconcileResult {
  const now = formatTimestamp(transaction.at);
  const stored = readStored(transaction, lookup, options.scope ?? []);
  const seen = new Map(incoming.map((values) => [keyOf(lookup, values), values]));
  let added = 0;
  let changed = 0;
  for (const [key, values] of seen) {
    const before = stored.get(key);
    if (!before) added += insert(transaction, lookup, values, now, options.isStale ?? false);
    else if (!options.isStale && update(transaction, lookup, before, values, now)) changed++;
  }
  if (!options.isComplete || options.isStale) return { added, changed, delisted: 0, incident: null };

  const listed = [...stored].filter(([, row]) => row.delistedAt === null);
  const missing = listed.filter(([key]) => !seen.has(key));
  const maxDelisted = Math.max(1, listed.length * MAX_MISSING_RATIO);
  const isIncident = missing.length > maxDelisted;
  const minAbsences = isIncident ? MIN_INCIDENT_ABSENCES : MIN_ABSENCES;
  let delisted = 0;
  for (const [, row] of missing) {
    const isGone = row.absences + 1 >= minAbsences && delisted + 1 <= maxDelisted;
    countAbsence(transaction, lookup, row, isGone ? now : null);
    if (isGone) delisted++;
  }
  const incident = isIncident ? { missing: missing.length, listed: listed.length } : null;
  return { added, changed, delisted, incident };
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

function insert(
  transaction: Transaction,
  lookup: LookupTable,
  values: readonly SqlValue[],
  now: string,
  isStale: boolean,
): number {
  const columns = [...lookup.keys, ...lookup.tracked, ...lookup.untracked, "first_seen", "absences"];
  // A row outside the scope may have the same key: a stub inserted for a tick, or a contract that moved here.
  const updates = [...lookup.tracked, ...lookup.untracked, "absences"].map(
    (column) => `${column} = excluded.${column}`,
  );
  const onConflict = isStale ? "NOTHING" : `UPDATE SET ${updates.join(", ")}, delisted_at = NULL`;
  return transaction.run(
    `INSERT INTO ${lookup.table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})
      ON CONFLICT (${lookup.keys.join(", ")}) DO ${onConflict}`,
    [...values, now, 0],
  );
}

function update(
  transaction: Transaction,
  lookup: LookupTable,
  before: StoredRow,
  after: readonly SqlValue[],
  now: string,
): boolean {
  const differs = after.some((value, i) => value !== before.values[i]);
  if (!differs && before.absences === 0 && before.delistedAt === null) return false;
  const columns = [...lookup.tracked, ...lookup.untracked];
  const keys = lookup.keys.length;
  lookup.tracked.forEach((field, i) => {
    const [old, latest] = [before.values[keys + i] ?? null, after[keys + i] ?? null];
    if (old !== latest) recordChange(transaction, lookup, after, { field, old, new: latest, now });
  });
  if (before.delistedAt !== null) {
    recordChange(transaction, lookup, after, {
      field: "delisted_at",
      old: before.delistedAt,
      new: null,
      now,
    });
  }
  transaction.run(
    `UPDATE ${lookup.table} SET ${columns.map((column) => `${column} = ?`).join(", ")}, absences = 0,
        delisted_at = NULL WHERE ${whereKey(lookup)}`,
    [...after.slice(keys), ...after.slice(0, keys)],
  );
  return differs || before.delistedAt !== null;
}

function countAbsence(
  transaction: Transaction,
  lookup: LookupTable,
  row: StoredRow,
  delistedAt: string | null,
): void {
  const key = row.values.slice(0, lookup.keys.length);
  transaction.run(`UPDATE ${lookup.table} SET absences = ?, delisted_at = ? WHERE ${whereKey(lookup)}`, [
    row.absences + 1,
    delistedAt,
    ...key,
  ]);
  if (delistedAt === null) return;
  const change = { field: "delisted_at", old: null, new: delistedAt, now: delistedAt };
  recordChange(transaction, lookup, key, change);
}

function recordChange(
  transaction: Transaction,
  lookup: LookupTable,
  values: readonly SqlValue[],
  change: { field: string; old: SqlValue; new: SqlValue; now: string },
): void {
  const isTimestamp = lookup.timestamps?.includes(change.field);
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
      change.now,
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
