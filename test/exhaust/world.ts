import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../src/model/time.ts";
import type { SeriesRules } from "../../src/rule/answer.ts";

/** A record of a small service, in slots of time. */
interface RecordSpec {
  readonly slot: number;
  /** The second record of its moment. */
  readonly isTwin?: boolean;
  /** From when REST serves it. Default: its slot. `never`: only the websocket has it. */
  readonly publishedAt?: number | "never";
  /** The service adds it to its old history: only a night finds it. */
  readonly isAdded?: boolean;
  /** From when REST does not serve it any more. Default: it stays. */
  readonly goneAt?: number;
  /** From when REST serves it again. Default: never. */
  readonly backAt?: number;
  /** Until then REST serves an earlier state of it. Default: its first state is the last one. */
  readonly finalAt?: number;
}

/** A small service: what it has, and when. */
export interface WorldSpec {
  readonly stream: "ticks" | "bars";
  /** Records per page. */
  readonly pageSize: number;
  readonly records: readonly RecordSpec[];
  /** How many slots it keeps. Default: all. */
  readonly window?: number;
  /** Its answers have no `Date`. */
  readonly isUndated?: boolean;
  /** REST publishes late as a whole, in order: no other series is ahead either. */
  readonly isLagging?: boolean;
  /** From when it is known that records may be as late as a lag. Default: never. */
  readonly latenessFrom?: number;
}

export interface WorldRecord {
  readonly id: string;
  readonly isTwin: boolean;
  readonly isAdded: boolean;
  readonly ts: Micros;
  readonly slot: number;
  readonly publishedAt: number;
  readonly goneAt: number;
  readonly backAt: number;
  readonly finalAt: number;
}

export interface World extends WorldSpec {
  /** Newest first, as the service lists them. */
  readonly listed: readonly WorldRecord[];
  readonly period: Micros;
}

/** The settle delay, in slots: a record appears so late at most. */
export const SETTLE_SLOTS = 2;
/** Longer than the settle delay. */
const LAG_SLOTS = SETTLE_SLOTS + 1;
/** Without new records a series is covered up to so long before the present, in slots. */
const QUIET_SLOTS = 3;
/** The answers to a claim about an absence: one more than may be wrong. The slots over which they are asked for. */
export const CONFIRMATION = { answers: 3, overSlots: 2 };
/** Where the record of a tick's slot stands: not at its start, so that bounds and records differ. Bars start at midnight. */
const TICK_OFFSET = 3 * MICROS_PER_SECOND;
/** The window moves while a response travels: nothing is claimed so close to its start, in parts of a period. */
const WINDOW_EDGE = 0.1;
const WINDOW_MARGIN = 0.5;

export function createWorld(spec: WorldSpec): World {
  const isTicks = spec.stream === "ticks";
  const period = isTicks ? 30 * MICROS_PER_SECOND : MICROS_PER_DAY;
  const listed = spec.records
    .map(
      ({
        slot,
        isTwin = false,
        isAdded = false,
        publishedAt = slot,
        goneAt = Infinity,
        backAt = Infinity,
        finalAt = 0,
      }) => ({
        id: `${isTwin ? "s" : "r"}${slot}`,
        isTwin,
        isAdded,
        ts: slot * period + (isTicks ? TICK_OFFSET : 0),
        slot,
        publishedAt: publishedAt === "never" ? Infinity : publishedAt,
        goneAt,
        backAt,
        finalAt,
      }),
    )
    .sort((a, b) => b.slot - a.slot || a.id.localeCompare(b.id));
  return { ...spec, listed, period };
}

/** The moment at which most of a slot has passed. */
export function slotNow({ period }: World, slot: number): Micros {
  return slot * period + Math.floor((period * 2) / 3);
}

/** The moment from which the service keeps records; undefined: always. */
export function windowStartAt(world: World, slot: number): Micros | undefined {
  return world.window === undefined ? undefined : slotNow(world, slot) - world.window * world.period;
}

/** How late a record may be as far as is known in a slot, if that is later than the settle delay; 0: it is not. */
export function latenessAt({ latenessFrom = Infinity }: World, slot: number): number {
  return slot >= latenessFrom ? LAG_SLOTS : 0;
}

export function rulesAt(world: World, slot: number): SeriesRules {
  const { period, stream } = world;
  const windowStart = windowStartAt(world, slot);
  return {
    period,
    settleDelay: SETTLE_SLOTS * period,
    lateness: latenessAt(world, slot) * period,
    step: stream === "bars" ? MICROS_PER_DAY : 1,
    isDaily: stream === "bars",
    quietMargin: QUIET_SLOTS * period,
    windowStart: windowStart === undefined ? Number.MIN_SAFE_INTEGER : windowStart + WINDOW_MARGIN * period,
    floor: windowStart === undefined ? 0 : windowStart + WINDOW_EDGE * period,
  };
}

/** What the service serves in a slot, newest first. */
export function servedAt(world: World, slot: number): readonly WorldRecord[] {
  const windowStart = windowStartAt(world, slot) ?? Number.NEGATIVE_INFINITY;
  return world.listed.filter(
    ({ publishedAt, goneAt, backAt, ts }) =>
      publishedAt <= slot && (slot < goneAt || slot >= backAt) && ts >= windowStart,
  );
}

/** The name of what REST serves of a record in a slot. */
export function versionAt({ id, finalAt }: WorldRecord, slot: number): string {
  return slot < finalAt ? `${id}~` : id;
}

export interface WorldShape {
  readonly stream: World["stream"];
  readonly slots: number;
  readonly maxLateness: number;
  readonly pageSizes?: readonly number[];
  /** Only worlds with a record in so many slots at least. */
  readonly minRecords?: number;
  /** Lengths of the service's window to try besides none. */
  readonly windows?: readonly number[];
}

/** Longer than it takes to accept that a record is gone. */
const BACK_SLOTS = 500;
/** So many rows may be missing on a page without a second answer. */
const MAX_FEW = 2;

/** Every world of the shape, the simplest first. */
export function* worlds(shape: WorldShape): Generator<World> {
  const { stream, slots, pageSizes = [1, 2, 3], windows = [], minRecords = 0 } = shape;
  const sets = Array.from({ length: 2 ** slots }, (_, set) => set).sort(
    (a, b) => countBits(a) - countBits(b),
  );
  for (const set of sets) {
    if (countBits(set) < minRecords) continue;
    const present = Array.from({ length: slots }, (_, slot) => slot).filter((slot) => set & (1 << slot));
    for (const records of variants(present, shape))
      for (const pageSize of pageSizes) {
        // A page with room for more than all records is like one with room for them.
        if (pageSize > Math.max(1, records.length)) continue;
        yield createWorld({ stream, pageSize, records });
        if (records.every((each) => Object.keys(each).length === 1))
          for (const window of windows) yield createWorld({ stream, pageSize, records, window });
      }
    // The last one does not lag, but no other series shows that.
    for (let i = 0; i <= present.length; i++) {
      const lag = (j: number) => (j < i ? 0 : LAG_SLOTS);
      const late = present.map((slot, j) => ({ slot, publishedAt: slot + lag(j) }));
      yield createWorld({ stream, pageSize: 2, records: late, isLagging: true });
      if (stream === "ticks") continue;
      // The newest bar that it serves is not final.
      const records = late.map((each) => ({ ...each, finalAt: each.publishedAt + 1 }));
      yield createWorld({ stream, pageSize: 2, records, isLagging: true });
    }
    if (stream === "ticks" && set > 0) {
      const records = present.map((slot) => ({ slot }));
      yield createWorld({ stream, pageSize: 2, records, latenessFrom: slots + 1 });
      for (const late of present)
        yield createWorld({
          stream,
          pageSize: 2,
          records: records.map(({ slot }) =>
            slot === late ? { slot, publishedAt: slot + LAG_SLOTS } : { slot },
          ),
          latenessFrom: 0,
        });
    }
    if (set > 0)
      yield createWorld({ stream, pageSize: 2, records: present.map((slot) => ({ slot })), isUndated: true });
  }
}

/** The plain world, and each that differs from it in one record. */
function* variants(
  present: readonly number[],
  { stream, slots, maxLateness }: WorldShape,
): Generator<readonly RecordSpec[]> {
  const plain: readonly RecordSpec[] = present.map((slot) => ({ slot }));
  yield plain;
  for (const changed of plain) {
    const { slot } = changed;
    const withChange = (change: Partial<RecordSpec>) =>
      plain.map((record) => (record === changed ? { ...record, ...change } : record));
    for (let late = 1; late <= maxLateness; late++) yield withChange({ publishedAt: slot + late });
    // The service loses it after the first look.
    yield withChange({ goneAt: slots + 1 });
    // It comes back when that was accepted.
    if (changed === plain[0]) yield withChange({ goneAt: slots + 1, backAt: slots + BACK_SLOTS });
    if (stream === "bars") {
      // The service serves the bar of a running day, and the last state of it in time or late.
      yield withChange({ finalAt: slot + 1 });
      yield withChange({ finalAt: slot + 2 });
    } else {
      yield [...plain, { slot, isTwin: true }];
      if (slot >= slots - 2) yield withChange({ publishedAt: "never" });
    }
  }
  // The service loses most records between two others.
  if (plain.length > MAX_FEW + 2)
    yield plain.map((each, i) => (i === 0 || i === plain.length - 1 ? each : { ...each, goneAt: slots + 1 }));
  // The service loads its oldest record later than all others.
  const [oldest, ...others] = plain;
  if (oldest && others.length > 0) yield [{ ...oldest, publishedAt: slots + 2, isAdded: true }, ...others];
}

function countBits(set: number): number {
  return set === 0 ? 0 : (set & 1) + countBits(set >> 1);
}
