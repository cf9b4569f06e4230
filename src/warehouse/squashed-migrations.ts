/**
 * The first migration replaced 16 that no release had. A file that has all of them gets the names of today instead; one
 * with fewer is refused.
 */
export const SQUASHED_MIGRATIONS = 16;

/** The digests of the first and the last of them, as `__drizzle_migrations` has them. */
export const FIRST_SQUASHED_HASH = "ce588afb165e3d02cb7dfdac7edd88b62e605d649781bc8c536cb38cd95f7af7";
export const LAST_SQUASHED_HASH = "4bd0c1746a57bd58f01ccfdda5834eeee912a66f1ca323338a85921a27903cd0";

const renamedTables = { wanted_ranges: "targets", rereads: "rechecks" };

/** [table, earlier name, name] */
const renamedColumns = [
  ["targets", "kept_for", "service_window"],
  ["targets", "observed", "is_snapshot"],
  ["targets", "hindrance", "blocked_reason"],
  ["job_runs", "moment", "scheduled_at"],
  ["contracts", "described", "is_described"],
  ["contracts", "aside", "details"],
  ["index_tick_rows", "aside", "details"],
  ["kept_bars", "aside", "details"],
  ["daily_bar_rows", "aside", "details"],
  ["exchange_tick_rows", "aside", "details"],
  ["market_cap_rows", "aside", "details"],
  ["derivative_tick_rows", "aside", "details"],
] as const;

/** The renames, also for a copy of the tables elsewhere. `prefix`: what goes before the name of a table. */
export function renamesOf(prefix = ""): string[] {
  return [
    ...Object.entries(renamedTables).map(
      ([earlier, name]) => `ALTER TABLE ${prefix}${earlier} RENAME TO ${name}`,
    ),
    ...renamedColumns.map(
      ([table, earlier, name]) => `ALTER TABLE ${prefix}${table} RENAME COLUMN ${earlier} TO ${name}`,
    ),
  ];
}
