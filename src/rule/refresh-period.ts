import type { SnapshotStream } from "../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";

/** One observation of a snapshot stream. */
interface Observation {
  readonly stream: SnapshotStream;
  /** The timestamp of the records. */
  readonly ts: Micros;
  /** When they were requested and when they had arrived, by the service's clock; undefined: unknown. */
  readonly askedAt: Micros | undefined;
  readonly answeredAt: Micros | undefined;
  /** How long one observation is valid by the settings. */
  readonly cadence: Micros;
}

/** What the service documents. Other streams have no period until their records show one. */
const documentedPeriods: Readonly<Partial<Record<SnapshotStream, Micros>>> = {
  market_caps: 300 * MICROS_PER_SECOND,
};
/** A slower refresh is learned after this many; a faster one at once. None is learned while every poll returns a new one. */
const PERIODS_REMEMBERED = 5;
/** One period may come from a stale answer, which looks like a list that was not refreshed. */
const MIN_PERIODS = 2;
/** Two refreshes that are less than this many periods apart have none in between. */
const MAX_PERIODS_APART = 1.5;

/** Polls that are less than this many cadences apart have missed nothing. */
const MAX_CADENCES_APART = 2;
/** A record that polls this many cadences apart returned was not refreshed between them. Polls in quick succession show nothing. */
const MIN_CADENCES_REPEATED = 0.9;

/** How the service has refreshed a list so far. */
export interface Refreshes {
  readonly ts: Micros;
  /** When the first answer with it had arrived. */
  readonly answeredAt: Micros | undefined;
  /** When the last poll that returned it was sent: it was current until then. */
  readonly askedAt: Micros | undefined;
  /** Polls a cadence apart returned it, so the service refreshes the list less often than it is polled. */
  readonly isRepeated: boolean;
  readonly periods: readonly Micros[];
}

/**
 * Learns from the timestamps of the records how often the service refreshes a list. If that is less often than the list is
 * polled, a record stands until the next refresh: each poll that returns it again has observed it until then.
 * `range`: what the observation covers, on the grid of the cadence, at least `[ts, ts + cadence)`.
 */
export function observeRefresh(
  last: Refreshes | undefined,
  observation: Observation,
): { readonly range: TimeRange; readonly refreshes: Refreshes } {
  const { stream, ts, askedAt, cadence } = observation;
  const known = last?.periods ?? [];
  const period = known.length >= MIN_PERIODS ? Math.min(...known) : documentedPeriods[stream];
  const floor = (at: Micros) => Math.floor(at / cadence) * cadence;
  const at = floor(ts);
  const reach = period === undefined ? 0 : MAX_PERIODS_APART * period;
  const isNextRefresh = last !== undefined && ts > last.ts && ts - last.ts <= reach;
  // No further than the period of the poll: after it, nothing is known.
  const observedTo = Math.min(floor(askedAt ?? ts) + cadence, at + floor(reach));
  return {
    range: { from: isNextRefresh ? floor(last.ts) : at, to: Math.max(at + cadence, observedTo) },
    refreshes: addObservation(last, observation),
  };
}

function addObservation(last: Refreshes | undefined, observation: Observation): Refreshes {
  const { ts, askedAt, answeredAt, cadence } = observation;
  if (!last) return { ts, answeredAt, askedAt, isRepeated: false, periods: [] };
  // An older answer came late.
  if (ts < last.ts) return last;
  if (ts === last.ts) {
    const cadences = countCadences(last.answeredAt, askedAt, cadence);
    const isSlow = cadences >= MIN_CADENCES_REPEATED && cadences <= MAX_CADENCES_APART;
    return { ...last, askedAt, isRepeated: last.isRepeated || isSlow };
  }
  const isFaster = last.periods.length > 0 && ts - last.ts < Math.min(...last.periods);
  const cadences = countCadences(last.askedAt, answeredAt, cadence);
  const isPeriod = (last.isRepeated || isFaster) && cadences >= 0 && cadences <= MAX_CADENCES_APART;
  const periods = isPeriod ? [...last.periods, ts - last.ts].slice(-PERIODS_REMEMBERED) : last.periods;
  return { ts, answeredAt, askedAt, isRepeated: false, periods };
}

/** From one poll to the next, if both times are known. A clock that was set in between gives a negative or a large number. */
function countCadences(from: Micros | undefined, to: Micros | undefined, cadence: Micros): number {
  return ((to ?? Number.NaN) - (from ?? Number.NaN)) / cadence;
}
