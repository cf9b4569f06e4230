import { type BadSign, MANY } from "./answer-counts.ts";

/** The speed restarts just below the ceiling, so that a known limit is used well. */
export const RESTART_SHARE = 0.9;
/** The speed is back at the ceiling after this time, and at twice of it after as long again, if nothing is bad. */
export const GROWTH_MS = 4_000;
/** The slower the limit, the longer the way back, because each ends with a wasted request; at most this. */
const MAX_RECOVERY_MS = 24_000;

/**
 * The unit of the speed: requests started per second, if the service answers 429. All else is first answered by fewer at once:
 * no rate holds a service that bears N at once, because its latency varies.
 */
type Unit = "per_second" | "at_once";

/** A speed that was found to cause bad answers. */
export interface SpeedLimit {
  readonly unit: Unit;
  readonly sign: BadSign;
  /** What the service accepted when it last answered badly. */
  readonly ceiling: number;
  /** The ceiling when bad answers last came at it, not earlier; undefined: they never did. */
  readonly confirmed: number | undefined;
  /** Time spent at the limit since the last bad answer: an unused limit does not grow. */
  readonly growthMs: number;
  /** Bad answers in a row that came below the ceiling. */
  readonly early: number;
  /** The longest silence after rejections: the window of the limit is as long, and the speed must not change within it. */
  readonly silenceMs: number;
  readonly since: number;
}

/** As CUBIC: back to the ceiling, ever slower, and beyond it, ever faster. */
export function speedOf(limit: SpeedLimit): number {
  const recovery = recoveryMs(limit);
  const beyondMs = limit.growthMs - recovery;
  if (beyondMs < 0) return limit.ceiling * (1 - (1 - RESTART_SHARE) * (-beyondMs / recovery) ** 3);
  return limit.ceiling * 2 ** ((beyondMs / Math.max(GROWTH_MS, limit.silenceMs)) ** 2);
}

export function recoveryMs({ unit, ceiling, confirmed, silenceMs }: SpeedLimit): number {
  const minMs = Math.max(GROWTH_MS, silenceMs);
  if (unit === "at_once" || confirmed === undefined) return minMs;
  return Math.max(minMs, Math.min(MAX_RECOVERY_MS, (MANY * 1000) / ceiling));
}
