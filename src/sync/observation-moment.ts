import type { Micros } from "../model/instant.ts";

/**
 * The moment that an observation of a latest-only stream speaks for: the newest record's, never ahead of the service's
 * clock, and at the start of its period, so that observations at cadence touch.
 */
export function observationMoment(newest: Micros | undefined, now: Micros, cadence: Micros): Micros {
  const moment = newest === undefined ? now : Math.min(newest, now);
  return Math.floor(moment / cadence) * cadence;
}
