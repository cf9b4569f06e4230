import { cadenceOf, type HistoryStream, isDaily, streamTable } from "../../model/streams.ts";
import { dayOf, MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { intersect, normalise, type TimeRange, type TimeRanges, union } from "../../model/time-range.ts";
import { followedHeads, holes, type LineHoles } from "../../warehouse/coverage/gaps.ts";
import { type LedgerLine, settledRanges } from "../../warehouse/coverage/ledger.ts";
import { type DueReread, dueRereads } from "../../warehouse/coverage/rechecks.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { settleDelay } from "../selection/targets.ts";
import { byUrgency, ROWS_A_PAGE, reachable, slicesOf } from "./slices.ts";
import { EDGE_MARGIN, type SliceWalk } from "./walk-slice.ts";

/** Late corrections are looked for in what is younger than this. */
const REREAD = 2 * MICROS_PER_DAY;
const HOUR = 3600 * MICROS_PER_SECOND;
/** Late ones are looked for in what is younger than this as often as the head is asked for in another hour than before. */
const HOT = 2 * HOUR;
/** A line that lacks more daily bars than this is backfilled. */
export const BARS_IN_HEAD = 30;

/** What a run fills of all that is wanted; left out: all of it. */
export interface Narrowing {
  readonly streams?: ReadonlySet<string> | undefined;
  /** Ids of indices. */
  readonly indexIds?: ReadonlySet<string> | undefined;
  readonly window?: TimeRange | undefined;
  /** Leaves out the heads that one page fills, and what is read again daily: somebody else looks after them. */
  readonly withoutHeads?: boolean | undefined;
}

/** The walks of one round. */
export interface FillPlan {
  /** In the order in which they are begun. */
  readonly walks: readonly SliceWalk[];
  /** What the service's window has left behind. */
  readonly lost: readonly LineHoles[];
  /** Lines whose youngest stretch is among the walks once more, and the day that counts for. */
  readonly rereads: ReadonlySet<string>;
  readonly day: string;
}

export function lineKey({ stream, series }: { stream: string; series: number }): string {
  return `${stream} ${series}`;
}

export function isWithin(narrowing: Narrowing, stream: HistoryStream, indexId: string): boolean {
  return (narrowing.streams?.has(stream) ?? true) && (narrowing.indexIds?.has(indexId) ?? true);
}

/** What is to be walked at `now`: every hole, and once a day what late corrections may have changed. */
export function planFill(
  reader: Connection,
  now: Micros,
  refreshSeconds: number,
  narrowing: Narrowing,
): FillPlan {
  const walks: SliceWalk[] = [];
  const lost: LineHoles[] = [];
  const rereads = new Set<string>();
  const day = dayOf(now);
  for (const stream of ["index_ticks", "ohlcv"] as const) {
    const moment = momentOf(stream, now, refreshSeconds);
    const lines = new Map<number, Line>();
    for (const line of holes(reader, stream, now)) {
      if (!isWithin(narrowing, stream, line.indexId)) continue;
      if (line.agedOut.length > 0) lost.push(line);
      lines.set(line.line.series, line);
    }
    // A part of the youngest stretch would not do: the day's reading again is for all of it.
    const isReread = narrowing.window === undefined && !narrowing.withoutHeads;
    for (const due of isReread ? dueRereads(reader, stream, day) : []) {
      if (!isWithin(narrowing, stream, due.indexId)) continue;
      rereads.add(lineKey(due.line));
      lines.set(due.line.series, withReread(lines.get(due.line.series), due, moment.claim));
    }
    // A line that is followed no longer has nobody else who would look after it.
    const followed = new Set(
      narrowing.withoutHeads ? followedHeads(reader, stream).map(({ line }) => line.series) : [],
    );
    for (const line of lines.values()) {
      const inWindow = narrowing.window ? intersect(line.open, [narrowing.window]) : line.open;
      const head = headOf(moment);
      const isHead = ({ from, to }: TimeRange) => from >= head.from && to >= head.to;
      const within = followed.has(line.line.series) ? inWindow.filter((range) => !isHead(range)) : inWindow;
      walks.push(...walksOf({ ...line, open: within }, moment));
    }
  }
  return { walks: walks.sort(byUrgency), lost, rereads, day };
}

/**
 * What one page fills at the head of one line, and what is due to be read again of it. With `looksBack` the page also
 * covers once more what is settled of the last two hours, which costs no request.
 */
export function planHead(
  reader: Connection,
  now: Micros,
  refreshSeconds: number,
  { stream, series }: { stream: HistoryStream; series: number },
  looksBack: boolean,
): FillPlan {
  const moment = momentOf(stream, now, refreshSeconds);
  const day = dayOf(now);
  const [found] = holes(reader, stream, now, series);
  const [due] = dueRereads(reader, stream, day, series);
  const open = found ? intersect(found.open, [headOf(moment)]) : [];
  const isHot = looksBack && streamTable[stream].event !== null;
  const head = found && { ...found, open: isHot ? withHot(reader, found.line, open, moment.claim) : open };
  const line = due ? withReread(head, due, moment.claim) : head;
  return {
    walks: line ? walksOf(line, moment).sort(byUrgency) : [],
    lost: [],
    rereads: new Set(due ? [lineKey(due.line)] : []),
    day,
  };
}

/** Late rows stand below what was settled last. A poll each half minute need not look for them, one in an hour does. */
function withHot(reader: Connection, line: LedgerLine, open: TimeRanges, claim: Micros): TimeRanges {
  const head = open.at(-1);
  const hourOf = (moment: Micros) => Math.floor(moment / HOUR);
  if (!head || head.to < claim || hourOf(head.from) === hourOf(claim)) return open;
  const proven = settledRanges(reader, line).filter(({ proof }) => proof !== "lost");
  const hot = intersect(normalise(proven), [{ from: claim - HOT, to: claim }]);
  // What is lost in between would make it two questions.
  const reaching = union(open, hot).slice(-1);
  return union(open, reaching);
}

/** What holes of a stream are measured by, at one moment. */
interface Moment {
  readonly stream: HistoryStream;
  readonly now: Micros;
  /** Where the claim ends. */
  readonly claim: Micros;
  readonly cadence: Micros;
  readonly settleDelay: Micros;
}

function momentOf(stream: HistoryStream, now: Micros, refreshSeconds: number): Moment {
  const delay = settleDelay(refreshSeconds);
  const { step } = streamTable[stream];
  const cadence = cadenceOf(stream, refreshSeconds);
  return { stream, now, claim: Math.floor((now - delay) / step) * step, cadence, settleDelay: delay };
}

/** The youngest stretch of a line: what one page holds, or a month of daily bars. */
function headOf({ stream, claim, cadence }: Moment): TimeRange {
  return { from: claim - (isDaily(stream) ? BARS_IN_HEAD : ROWS_A_PAGE) * cadence, to: claim };
}

function walksOf(line: Line, { stream, now, claim, cadence, settleDelay }: Moment): SliceWalk[] {
  const edge = line.keptFor === null ? undefined : now - line.keptFor + EDGE_MARGIN;
  const open = reachable(line.open, edge);
  return slicesOf({ stream, open, claim, edge, cadence }).map((slice) => ({
    ...slice,
    line: { stream, series: line.line.series },
    indexType: line.indexType,
    indexId: line.indexId,
    name: line.name,
    keptFor: line.keptFor,
    isHead: slice.range.to >= claim,
    cadence,
    settleDelay,
    hindrance: line.hindrance,
  }));
}

type Line = Pick<LineHoles, "line" | "indexType" | "indexId" | "name" | "open" | "keptFor" | "hindrance">;

function withReread(line: Line | undefined, due: DueReread, claim: Micros): Line {
  const stretch = { from: Math.max(due.wantedFrom, claim - REREAD), to: claim };
  const open = stretch.from < stretch.to ? union(line?.open ?? [], [stretch]) : (line?.open ?? []);
  return { ...due, open, hindrance: line?.hindrance ?? null };
}

/** What stayed open of all that was wanted at `now`. */
export function openHoles(reader: Connection, now: Micros, narrowing: Narrowing): LineHoles[] {
  return (["index_ticks", "ohlcv"] as const)
    .flatMap((stream) => holes(reader, stream, now))
    .filter(({ line, indexId }) => isWithin(narrowing, line.stream as HistoryStream, indexId))
    .map((line) => ({
      ...line,
      open: narrowing.window ? intersect(line.open, [narrowing.window]) : line.open,
    }))
    .filter(({ open }) => open.length > 0);
}
