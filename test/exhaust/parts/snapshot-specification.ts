import { type Micros, MICROS_PER_SECOND as SECOND } from "../../../src/model/time.ts";
import type { SettledRange } from "../../../src/rule/answer.ts";
import type { Snapshot, SnapshotPart } from "../../../src/rule/snapshot.ts";

// What a snapshot stream covers, from all snapshots so far; the rule keeps counters and the last refresh.

/** A snapshot, and when it was taken. */
export interface Taken {
  readonly snapshot: Snapshot;
  readonly now: Micros;
}

/** What stands in the warehouse before the first snapshot. */
export interface Before {
  readonly hadRows: boolean;
  readonly ledger: readonly SettledRange[];
}

const isUnreadable = ({ listed, rejected, timestamps }: SnapshotPart) =>
  listed < rejected || (listed !== 0 && timestamps.length === 0);
const isEmpty = ({ parts }: Snapshot) =>
  parts.every(({ listed, rejected }) => listed === 0 && rejected === 0);
const isImpossible = (snapshot: Snapshot) => isEmpty(snapshot) && snapshot.exchangeId === null;
/** Lists count as equal if they are within the same power of two. */
const sizeOf = (listed: number) => (listed === 0 ? -1 : listed.toString(2).length);

/** How long each list was when it last counted, and the size that a shorter one has had since when. */
interface Lists {
  readonly lengths: Readonly<Record<string, number>>;
  readonly short: Readonly<Record<string, { readonly size: number; readonly since: Micros }>>;
  readonly problem: string | undefined;
}

function specifyLists(taken: readonly Taken[], { hadRows }: Before): Lists {
  let lists: Lists = { lengths: {}, short: {}, problem: undefined };
  for (const { snapshot, now } of taken) {
    if (isImpossible(snapshot)) {
      lists = { ...lists, problem: "empty" };
      continue;
    }
    const lengths: Record<string, number> = { ...lists.lengths };
    const short: Record<string, { size: number; since: Micros }> = {};
    for (const { part, listed } of snapshot.parts.filter((each) => !isUnreadable(each))) {
      const length = lists.lengths[part] ?? (hadRows && isEmpty(snapshot) ? 1 : 0);
      const said = lists.short[part];
      const since = said?.size === sizeOf(listed) ? said.since : now;
      if (listed < length / 2 && now - since < 20 * SECOND) short[part] = { size: sizeOf(listed), since };
      else lengths[part] = listed;
    }
    const isShort = Object.keys(short).length > 0;
    const doubt = isEmpty(snapshot) ? "empty" : "shrunken";
    const problem = snapshot.parts.some(isUnreadable) ? "unreadable" : isShort ? doubt : undefined;
    lists = { lengths, short, problem };
  }
  return lists;
}

/** The time that a list is dated by: its oldest page, apart from those of markets that do not trade. */
function datedAt({ parts, cadence }: Snapshot, now: Micros): Micros {
  const pages = parts.flatMap(({ timestamps }) => timestamps).sort((a, b) => a - b);
  const newest = pages.at(-1) ?? now;
  return pages.find((ts) => ts >= newest - 2 * cadence) ?? now;
}

const between = (from: number, value: number, to: number) => from <= value && value <= to;
const unknown = Number.NaN;

interface Seen {
  readonly ts: Micros;
  readonly asked: Micros;
  readonly answered: Micros;
}

/** The lists that the service has made, each with the polls that returned it. Later polls that returned an older one are left out. */
function specifyRefreshes(seen: readonly Seen[]): readonly (readonly Seen[])[] {
  const inOrder = seen.filter(({ ts }, at) => seen.slice(0, at).every((before) => before.ts <= ts));
  return [...Map.groupBy(inOrder, ({ ts }) => ts).values()];
}

/** The times from one refresh to the next that are known: slower polls would have seen the list twice. */
function specifyPeriods(refreshes: readonly (readonly Seen[])[], cadence: Micros): readonly Micros[] {
  let periods: Micros[] = [];
  for (const [at, [next]] of refreshes.entries()) {
    const polls = refreshes[at - 1];
    const [first, last] = [polls?.[0], polls?.at(-1)];
    if (!polls || !first || !last || !next) continue;
    const isRepeated = polls
      .slice(1)
      .some(({ asked }) => between(0.9 * cadence, asked - first.answered, 2 * cadence));
    const period = next.ts - first.ts;
    const isKnown =
      isRepeated || periods.some((each) => periods.every((other) => each <= other) && period < each);
    if (isKnown && between(0, next.answered - last.asked, 2 * cadence))
      periods = [...periods, period].slice(-5);
  }
  return periods;
}

export interface SpecifiedSnapshot {
  readonly problem: string | undefined;
  readonly lengths: Readonly<Record<string, number>>;
  readonly covered: readonly (readonly [from: Micros, to: Micros, proof: string])[];
  readonly periods: readonly Micros[];
}

/** What the last of the snapshots says. */
export function specifySnapshot(taken: readonly Taken[], before: Before): SpecifiedSnapshot {
  const seen: Seen[] = [];
  let covered: SpecifiedSnapshot["covered"] = [];
  let cadence = 0;
  for (const [at, { snapshot, now }] of taken.entries()) {
    covered = [];
    cadence = snapshot.cadence;
    if (specifyLists(taken.slice(0, at + 1), before).problem !== undefined) continue;
    const ts = datedAt(snapshot, now);
    const start = Math.floor(ts / cadence) * cadence;
    const end = start + cadence;
    if (start > now + 2 * SECOND) continue;
    const stored = snapshot.parts.flatMap(({ storedTimestamps }) => storedTimestamps);
    if (!stored.some((each) => each >= start && each < end)) {
      const moments = Array.from({ length: cadence / SECOND }, (_, second) => start + second * SECOND);
      const isStored = (moment: Micros) =>
        before.ledger.some(({ from, to, proof }) => proof === "rows" && from <= moment && moment < to);
      covered = moments
        .filter((each) => !isStored(each))
        .map((each) => [each, each + SECOND, "empty"] as const);
      continue;
    }
    const refreshes = specifyRefreshes(seen);
    const known = specifyPeriods(refreshes, cadence);
    const documented = snapshot.stream === "market_caps" ? 300 * SECOND : 0;
    const reach = 1.5 * (known.length > 1 ? Math.min(...known) : documented);
    const last = refreshes.at(-1)?.[0]?.ts ?? unknown;
    const asked = snapshot.askedAt ?? unknown;
    const gridOf = (moment: Micros) => Math.floor(moment / cadence) * cadence;
    const from = ts > last && ts - last <= reach ? gridOf(last) : start;
    const polledTo = gridOf(snapshot.askedAt ?? ts) + cadence;
    covered = [[from, Math.max(end, Math.min(polledTo, start + gridOf(reach))), "rows"]];
    seen.push({ ts, asked, answered: snapshot.answeredAt ?? unknown });
  }
  const { lengths, problem } = specifyLists(taken, before);
  return { problem, lengths, covered, periods: specifyPeriods(specifyRefreshes(seen), cadence) };
}
