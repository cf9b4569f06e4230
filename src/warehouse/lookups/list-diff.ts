import { formatInstant } from "../../model/time.ts";
import type { SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/** A lookup's table: its key, and the columns whose changes people want to hear of. */
export interface LookupTable {
  readonly entity: string;
  readonly table: string;
  readonly keys: readonly string[];
  readonly tracked: readonly string[];
  /** Kept, but a change of these alone is no news. */
  readonly kept: readonly string[];
  /** Tracked columns that hold moments. */
  readonly moments?: readonly string[];
}

export interface Reconciled {
  readonly added: number;
  readonly changed: number;
  /** Marked as no longer listed, after enough lists in a row lacked them. */
  readonly delisted: number;
  /** Set when so many rows were missing that the list is taken for the service's mistake, until it has come very often. */
  readonly incident: { readonly missing: number; readonly listed: number } | null;
}

/** Complete lists in a row that must lack a row before it is marked. */
const CONFIRMATIONS = 3;
/** A list that lacks more than this share of what was listed is an incident, and no more is ever marked at once. */
const BELIEVABLE_SHARE = 0.1;
/** Two days of hourly lists: a service that says the same for so long has really given it up. */
const INCIDENT_CONFIRMATIONS = 48;

/** What a list is worth. */
export interface ListWorth {
  /** All that there is was on it and could be read: what it lacks counts as absent. */
  readonly complete: boolean;
  /** A cache on the way has kept it: what is stored may be newer, so that it only adds. */
  readonly isKept?: boolean;
}

type Scope = readonly { readonly column: string; readonly value: SqlValue }[];

interface Stored {
  readonly values: readonly SqlValue[];
  readonly delistedAt: string | null;
  readonly absences: number;
}

/**
 * Brings a lookup in step with a list of the service, each incoming row as key, tracked and kept values. With `complete`
 * the list is all there is (in `scope`), and rows that it lacks are counted absent; they stay, marked in time.
 */
export function reconcile(
  transaction: Transaction,
  lookup: LookupTable,
  incoming: readonly (readonly SqlValue[])[],
  options: ListWorth & { readonly scope?: Scope },
): Reconciled {
  const now = formatInstant(transaction.now);
  const stored = readStored(transaction, lookup, options.scope ?? []);
  const seen = new Map(incoming.map((values) => [keyOf(lookup, values), values]));
  let added = 0;
  let changed = 0;
  for (const [key, values] of seen) {
    const before = stored.get(key);
    if (!before) added += insert(transaction, lookup, values, now, options.isKept ?? false);
    else if (!options.isKept && update(transaction, lookup, before, values, now)) changed++;
  }
  if (!options.complete || options.isKept) return { added, changed, delisted: 0, incident: null };

  const listed = [...stored].filter(([, row]) => row.delistedAt === null);
  const missing = listed.filter(([key]) => !seen.has(key));
  const believable = Math.max(1, listed.length * BELIEVABLE_SHARE);
  const isIncident = missing.length > believable;
  const confirmations = isIncident ? INCIDENT_CONFIRMATIONS : CONFIRMATIONS;
  let delisted = 0;
  for (const [, row] of missing) {
    const isGone = row.absences + 1 >= confirmations && delisted + 1 <= believable;
    countAbsence(transaction, lookup, row, isGone ? now : null);
    if (isGone) delisted++;
  }
  const incident = isIncident ? { missing: missing.length, listed: listed.length } : null;
  return { added, changed, delisted, incident };
}

function readStored(transaction: Transaction, lookup: LookupTable, scope: Scope): Map<string, Stored> {
  const columns = [...lookup.keys, ...lookup.tracked, ...lookup.kept];
  const where = scope.map(({ column }) => ` AND ${column} = ?`).join("");
  const rows = transaction
    .statement(`SELECT delisted_at, absences, ${columns.join(", ")} FROM ${lookup.table} WHERE true${where}`)
    .raw()
    .all(scope.map(({ value }) => value)) as [string | null, number, ...SqlValue[]][];
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
  isKept: boolean,
): number {
  const columns = [...lookup.keys, ...lookup.tracked, ...lookup.kept, "first_seen", "absences"];
  // A row outside the scope may have the key: a stub that a tick has left, or one that moved here.
  const updates = [...lookup.tracked, ...lookup.kept, "absences"].map(
    (column) => `${column} = excluded.${column}`,
  );
  const known = isKept ? "NOTHING" : `UPDATE SET ${updates.join(", ")}, delisted_at = NULL`;
  return transaction
    .statement(
      `INSERT INTO ${lookup.table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})
      ON CONFLICT (${lookup.keys.join(", ")}) DO ${known}`,
    )
    .run([...values, now, 0]).changes;
}

function update(
  transaction: Transaction,
  lookup: LookupTable,
  before: Stored,
  after: readonly SqlValue[],
  now: string,
): boolean {
  const differs = after.some((value, i) => value !== before.values[i]);
  if (!differs && before.absences === 0 && before.delistedAt === null) return false;
  const columns = [...lookup.tracked, ...lookup.kept];
  const keys = lookup.keys.length;
  lookup.tracked.forEach((field, i) => {
    const [old, latest] = [before.values[keys + i] ?? null, after[keys + i] ?? null];
    if (old !== latest) noteChange(transaction, lookup, after, { field, old, new: latest, now });
  });
  if (before.delistedAt !== null) {
    noteChange(transaction, lookup, after, { field: "delisted_at", old: before.delistedAt, new: null, now });
  }
  transaction
    .statement(
      `UPDATE ${lookup.table} SET ${columns.map((column) => `${column} = ?`).join(", ")}, absences = 0,
        delisted_at = NULL WHERE ${whereKey(lookup)}`,
    )
    .run([...after.slice(keys), ...after.slice(0, keys)]);
  return differs || before.delistedAt !== null;
}

function countAbsence(
  transaction: Transaction,
  lookup: LookupTable,
  row: Stored,
  delistedAt: string | null,
): void {
  const key = row.values.slice(0, lookup.keys.length);
  transaction
    .statement(`UPDATE ${lookup.table} SET absences = ?, delisted_at = ? WHERE ${whereKey(lookup)}`)
    .run([row.absences + 1, delistedAt, ...key]);
  if (delistedAt === null) return;
  const change = { field: "delisted_at", old: null, new: delistedAt, now: delistedAt };
  noteChange(transaction, lookup, key, change);
}

function noteChange(
  transaction: Transaction,
  lookup: LookupTable,
  values: readonly SqlValue[],
  change: { field: string; old: SqlValue; new: SqlValue; now: string },
): void {
  const isMoment = lookup.moments?.includes(change.field);
  const text = (value: SqlValue) =>
    value === null ? null : isMoment && typeof value === "number" ? formatInstant(value) : String(value);
  transaction
    .statement("INSERT INTO status_changes (entity, id, field, old, new, seen_at) VALUES (?, ?, ?, ?, ?, ?)")
    .run([
      lookup.entity,
      values.slice(0, lookup.keys.length).join("/"),
      change.field,
      text(change.old),
      text(change.new),
      change.now,
    ]);
}

function whereKey({ keys }: LookupTable): string {
  return keys.map((key) => `${key} = ?`).join(" AND ");
}

/** Identifiers are opaque and may hold any character, so they are told apart by their JSON. */
function keyOf({ keys }: LookupTable, values: readonly SqlValue[]): string {
  return keys.length === 1 ? String(values[0]) : JSON.stringify(values.slice(0, keys.length));
}
