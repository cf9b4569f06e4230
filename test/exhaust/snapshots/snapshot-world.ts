import type { SnapshotStream } from "../../../src/model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import type { Snapshot, SnapshotPart } from "../../../src/rule/snapshot.ts";

/** A small service that refreshes a list, and says what it has listed over a websocket too. */
export interface SnapshotSpec {
  readonly stream: SnapshotStream;
  /** The markets of each list, a letter each; the last list stays. */
  readonly lists: readonly string[];
  /** Null: the subscription is to all exchanges. Default: to one. */
  readonly exchangeId?: null;
  /** Slots from one refresh to the next. Default: those of a cadence. */
  readonly every?: number;
  /** The slot of the first refresh. Default: 0. */
  readonly phase?: number;
  /** The markets that the settings select. Default: all. */
  readonly selected?: string;
  /** The socket has their ticks a slot later than the others. */
  readonly late?: string;
  /** They are refreshed a slot later than the others. */
  readonly second?: string;
  /** They are stamped ahead: with a refresh in the second slot of a period, in the next period. */
  readonly ahead?: string;
}

export interface SnapshotWorld extends SnapshotSpec {
  /** Microseconds of a slot; two are a cadence. */
  readonly slot: Micros;
  readonly cadence: Micros;
  readonly subscription: string | null;
}

/** One record of a list that the service has made. */
export interface Listed {
  readonly market: string;
  readonly refresh: number;
  readonly ts: Micros;
  /** Its name among the stored ones. */
  readonly name: string;
}

const SLOTS_PER_CADENCE = 2;
/** Where in its slot the service refreshes, and where the present is. */
const REFRESH_OFFSET = 3 * MICROS_PER_SECOND;
const NOW_OFFSET = 10 * MICROS_PER_SECOND;
/** Past the end of a slot, and plausible at its present. */
const AHEAD = 12 * MICROS_PER_SECOND;

export function createSnapshotWorld(spec: SnapshotSpec): SnapshotWorld {
  // The service documents that it refreshes market caps every 300 seconds: two cadences here.
  const slot = (spec.stream === "market_caps" ? 75 : 15) * MICROS_PER_SECOND;
  const subscription = spec.exchangeId === null ? null : "x";
  return { ...spec, slot, cadence: SLOTS_PER_CADENCE * slot, subscription };
}

export function nowAt({ slot }: SnapshotWorld, at: number): Micros {
  return at * slot + NOW_OFFSET;
}

/** The service makes one list in each cadence. */
export function isRegular({ every = SLOTS_PER_CADENCE }: SnapshotWorld): boolean {
  return every === SLOTS_PER_CADENCE;
}

/** The number of the newest list in a slot; negative: there is none yet. */
export function refreshAt({ every = SLOTS_PER_CADENCE, phase = 0 }: SnapshotWorld, at: number): number {
  return Math.floor((at - phase) / every);
}

export function refreshSlot(
  { every = SLOTS_PER_CADENCE, phase = 0 }: SnapshotWorld,
  refresh: number,
): number {
  return phase + refresh * every;
}

export function refreshTs(world: SnapshotWorld, refresh: number): Micros {
  return refreshSlot(world, refresh) * world.slot + REFRESH_OFFSET;
}

export function marketsOf({ lists }: SnapshotWorld, refresh: number): string {
  return refresh < 0 ? "" : (lists[Math.min(refresh, lists.length - 1)] ?? "");
}

export function listOf(world: SnapshotWorld, refresh: number): readonly Listed[] {
  const at = refreshTs(world, refresh);
  return [...marketsOf(world, refresh)].map((market) => {
    const ts =
      at + (world.ahead?.includes(market) ? AHEAD : 0) + (world.second?.includes(market) ? world.slot : 0);
    return { market, refresh, ts, name: `${market}${refresh}` };
  });
}

export function isSelected({ selected }: SnapshotWorld, market: string): boolean {
  return selected?.includes(market) ?? true;
}

/** What the socket sends in a slot. */
export function sentAt(world: SnapshotWorld, at: number): readonly Listed[] {
  const isDue = ({ market, refresh }: Listed) =>
    refreshSlot(world, refresh) + (`${world.late}${world.second}`.includes(market) ? 1 : 0) === at;
  const newest = refreshAt(world, at);
  return [newest - 1, newest].flatMap((refresh) => (refresh < 0 ? [] : listOf(world, refresh).filter(isDue)));
}

/** Every way in which a list may differ from the newest one. */
export const listFaults = [
  /** Less than half as long as the one before. */
  "cut",
  /** The same, polled twice in quick succession. */
  "cut at once again",
  "empty",
  /** Most of its records cannot be read. */
  "unreadable",
  /** The list before. */
  "stale",
  /** Requested two slots ago, and made then. */
  "slow",
  "forbidden",
] as const;

/** Lists that the assumptions of docs/promise.md exclude. */
export const excludedListFaults = [
  /** Without its last record, and still more than half as long. */
  "shortened",
  /** Its second page is from the refresh before. */
  "torn",
] as const;

export type ListFault = (typeof listFaults)[number] | (typeof excludedListFaults)[number];

export interface ListAnswer {
  readonly records: readonly Listed[];
  readonly snapshot: Snapshot;
}

/** The two lists of a snapshot of derivatives; others have one. */
export const partOf = ({ stream }: SnapshotWorld, market: string) =>
  stream === "derivative_ticks" && market >= "n" ? "options" : "";

/** What the service answers to a poll. `whole`: the length of each list when it was last whole. */
export function answerPoll(
  world: SnapshotWorld,
  at: number,
  how: "honest" | ListFault,
  whole: Readonly<Record<string, number>>,
): ListAnswer {
  const refresh = refreshAt(world, how === "slow" ? at - 2 : at) - (how === "stale" ? 1 : 0);
  const all = refresh < 0 ? [] : listOf(world, refresh);
  const parts = world.stream === "derivative_ticks" ? ["", "options"] : [""];
  const answers = parts.map((part, i) => {
    const own = all.filter(({ market }) => partOf(world, market) === part);
    const records = i === 0 || how === "empty" ? select(world, own, how, whole[part] ?? 0) : own;
    return { part, records, rejected: how === "unreadable" ? own.length - records.length : 0 };
  });
  const { stream, subscription, cadence } = world;
  return {
    records: answers.flatMap(({ records }) => records),
    snapshot: {
      stream,
      exchangeId: subscription,
      cadence,
      parts: answers.map((each) => toPart(world, each, how)),
      askedAt: nowAt(world, how === "slow" ? at - 2 : at),
      answeredAt: nowAt(world, at),
    },
  };
}

function select(
  world: SnapshotWorld,
  list: readonly Listed[],
  how: "honest" | ListFault,
  whole: number,
): readonly Listed[] {
  if (how === "empty") return [];
  if (how === "unreadable") return list.slice(0, Math.ceil(list.length / 2) - 1);
  if (how === "cut" || how === "cut at once again") return list.slice(0, Math.ceil(whole / 2) - 1);
  if (how === "shortened") return list.slice(0, -1);
  if (how !== "torn") return list;
  const [first, ...others] = list;
  const before = listOf(world, (first?.refresh ?? 0) - 1);
  return first
    ? [first, ...before.filter(({ market }) => others.some((each) => each.market === market))]
    : [];
}

function toPart(
  world: SnapshotWorld,
  { part, records, rejected }: { part: string; records: readonly Listed[]; rejected: number },
  how: "honest" | ListFault,
): SnapshotPart {
  // A torn list has a page of each refresh; others have one page.
  const pages = how === "torn" ? [...Map.groupBy(records, ({ refresh }) => refresh).values()] : [records];
  const newest = (of: readonly Listed[]) => (of.length > 0 ? [Math.max(...of.map(({ ts }) => ts))] : []);
  return {
    part,
    listed: records.length,
    rejected,
    timestamps: pages.flatMap(newest),
    storedTimestamps: pages.flatMap((page) => newest(page.filter(({ market }) => isSelected(world, market)))),
  };
}
