import { Failure, type FailureCode } from "../../src/model/failure.ts";
import { MICROS_PER_MS, type Micros } from "../../src/model/time.ts";
import { servedAt, versionAt, type World, type WorldRecord } from "./world.ts";

/** Every way in which an answer may differ from that of an honest service. */
export const faults = [
  /** Fewer records than asked for, with a cursor. */
  "short",
  /** Without the records of its oldest moment, and without a cursor. */
  "cut",
  /** From a cache, made two slots ago. */
  "stale",
  /** Made and dated two slots ago: by a server that lags. */
  "old",
  /** From a backend that has only the last two slots. */
  "shallow",
  /** From a backend that lacks everything between the newest and the oldest record, if that is much. */
  "holed",
  /** With a record of another series in the place of its newest one. */
  "foreign",
  /** Oldest first. */
  "disordered",
  "empty",
  "no list",
  "refused cursor",
  "not found",
] as const;

/** Answers that the assumptions of docs/promise.md exclude: tried only where one of them is switched off. */
export const excludedFaults = [
  /** Without a cursor, and without one of two records of its oldest moment. */
  "cut within a moment",
  /** Without one record between two others. */
  "skipping",
  /** From an older state, and dated now. */
  "undeclared stale",
  /** Records of one moment in the other order. */
  "swapped",
  /** The oldest records instead of the newest. */
  "ascending",
] as const;

/** Answers that a server may give to every request of a walk: they count as one. */
export const lastingFaults: readonly Answer[] = ["shallow", "empty", "disordered", "short"];

export type Fault = (typeof faults)[number] | (typeof excludedFaults)[number];
export type Answer = "honest" | Fault;

export interface Page {
  readonly rows: number;
  readonly nextId: string | undefined;
  readonly newest: Micros | undefined;
  readonly oldest: Micros | undefined;
  readonly isDescending: boolean;
  readonly timestamps: readonly Micros[];
  /** The names of its records, as the service has them when it makes the page. */
  readonly versions: readonly string[];
  readonly foreign: number;
  /** The slot in which it was made. */
  readonly madeAt: number;
  readonly isStale: boolean;
}

export interface Query {
  readonly timestamp?: unknown;
  readonly startAfter?: unknown;
  readonly size?: unknown;
}

const STALE_SLOTS = 2;
/** Longer than the settle delay. */
const UNDECLARED_SLOTS = 3;
const SHALLOW_SLOTS = 2;
/** Fewer missing rows than in such a backend count at once. */
const MIN_HOLED = 5;

/** Made once: a stack trace takes longer than an answer. */
const failures = new Map<FailureCode, Failure>();
export function failureOf(code: FailureCode): Failure {
  const failure = failures.get(code) ?? new Failure(code, { code });
  failures.set(code, failure);
  return failure;
}

/** What the service answers to a query in a slot: a page, or a failure. */
export function answer(world: World, now: number, query: Query, how: Answer): Page | Failure {
  if (how === "not found") return failureOf("not_found");
  if (how === "no list") return failureOf("null_list");
  const isOld = how === "stale" || how === "old";
  const age = isOld ? STALE_SLOTS : how === "undeclared stale" ? UNDECLARED_SLOTS : 0;
  const all = servedAt(world, now - age).filter(({ slot }, _, whole) => {
    if (how === "shallow") return slot > now - SHALLOW_SLOTS;
    const isOuter = slot === whole[0]?.slot || slot === whole.at(-1)?.slot;
    return how !== "holed" || isOuter || new Set(whole.map((each) => each.slot)).size < MIN_HOLED;
  });
  const served = how === "swapped" ? all.toSorted((a, b) => b.ts - a.ts || b.id.localeCompare(a.id)) : all;
  const cursor = served.findIndex(({ id }) => id === query.startAfter);
  if (query.startAfter !== undefined && (cursor < 0 || how === "refused cursor"))
    return failureOf("rejected");
  const listed = query.startAfter === undefined ? upTo(served, query) : served.slice(cursor + 1);
  const size = how === "short" ? 1 : Math.min(world.pageSize, Number(query.size));
  const whole = (how === "ascending" ? listed.toReversed() : listed).slice(0, size);
  const page = select(whole, how);
  const last = (how === "foreign" ? whole : page).at(-1);
  const isCut = how === "cut" || how === "cut within a moment" || how === "empty";
  const nextId = last !== undefined && last !== listed.at(-1) && !isCut ? last.id : undefined;
  return toPage(how === "disordered" ? page.toReversed() : page, {
    nextId,
    foreign: how === "foreign" ? 1 : 0,
    madeAt: isOld ? now - age : now,
    isStale: how === "stale",
    versionAt: now - age,
  });
}

function upTo(served: readonly WorldRecord[], { timestamp }: Query): readonly WorldRecord[] {
  const until = Date.parse(String(timestamp)) * MICROS_PER_MS;
  return served.filter(({ ts }) => ts <= until);
}

function select(page: readonly WorldRecord[], how: Answer): readonly WorldRecord[] {
  const oldest = page.at(-1)?.ts;
  if (how === "empty") return [];
  if (how === "cut") return page.filter(({ ts }) => ts !== oldest);
  if (how === "cut within a moment") return page.at(-2)?.ts === oldest ? page.slice(0, -1) : page;
  if (how === "foreign") return page.slice(1);
  if (how === "skipping") return page.length > 2 ? page.toSpliced(1, 1) : page;
  return page;
}

function toPage(
  records: readonly WorldRecord[],
  made: Pick<Page, "nextId" | "foreign" | "madeAt" | "isStale"> & { readonly versionAt: number },
): Page {
  const timestamps = records.map(({ ts }) => ts);
  const { versionAt: slot, ...page } = made;
  return {
    ...page,
    rows: records.length,
    newest: timestamps.length > 0 ? Math.max(...timestamps) : undefined,
    oldest: timestamps.length > 0 ? Math.min(...timestamps) : undefined,
    isDescending: timestamps.every((ts, i) => i === 0 || ts <= (timestamps[i - 1] ?? 0)),
    timestamps,
    versions: records.map((record) => versionAt(record, slot)),
  };
}

/** The page of a list that is null. */
export function emptyPage(madeAt: number): Page {
  return toPage([], { nextId: undefined, foreign: 0, madeAt, isStale: false, versionAt: madeAt });
}
