import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { SqlDialect } from "../views/sql-dialect.ts";
import type { TargetRules } from "./targets.ts";

/** The end of a target at `now`, in whole steps. The service may still change younger records. */
export function computeTargetEnd(
  { settleDelay, step }: Pick<TargetRules, "settleDelay" | "step">,
  now: Micros,
): Micros {
  return Math.floor((now - settleDelay) / step) * step;
}

/** Where the service's window begins at `now`. Without a window: the smallest safe integer, which SQL can bind. */
export function computeWindowStart(serviceWindow: Micros | null, now: Micros): Micros {
  return serviceWindow === null ? Number.MIN_SAFE_INTEGER : now - serviceWindow;
}

/** The service's clock is known from its responses, and better after more of them: the window's start may seem to move back. */
const MAX_CLOCK_ERROR = 60 * MICROS_PER_SECOND;

/**
 * Where the target `w` begins. Until REST has proven its oldest part, it begins where the service's window does: the first
 * walk takes time, and what leaves the window meanwhile was never promised.
 */
export function targetStartSql(
  { table, largest }: Pick<SqlDialect, "table" | "largest">,
  now: string,
): string {
  const firstSettled = `(SELECT min(f.from_ts) FROM ${table("settled_ranges")} f
    WHERE f.stream = w.stream AND f.series = w.series AND f.from_ts <= ${now} - w.service_window + ${MAX_CLOCK_ERROR})`;
  return `CASE WHEN w.is_snapshot = 1 OR w.service_window IS NULL THEN w.from_ts
    ELSE ${largest("w.from_ts", `coalesce(${firstSettled}, ${now} - w.service_window)`)} END`;
}

/** Reason of ranges that no snapshot covered. */
export const NOT_OBSERVED_REASON = "not observed";
