import type { Alarm } from "../../ingest/commit/walk-page.ts";
import { Failure } from "../../model/failure.ts";
import { type Body, malformedBody } from "../../model/response-body.ts";
import { type HistoryStream, isDaily, MAX_PAGE_SIZE, type Series, streamTable } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { priority } from "../../service/http/request.ts";
import { type PagePosition, type Walk, walkBackwards } from "../../service/pagination/history-walk.ts";
import type { LedgerLine } from "../../warehouse/coverage/ledger.ts";
import { type Intake, requestText, serviceNow } from "../context/context.ts";
import type { Slice } from "./slices.ts";

/** A slice, and the series that it is of. */
export interface SliceWalk extends Slice {
  readonly line: LedgerLine & { readonly stream: HistoryStream };
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
  /** How long the service keeps the series' history; null: for ever. */
  readonly keptFor: Micros | null;
  /** The range reaches the claim's end: what is younger is fetched along, though not claimed. */
  readonly isHead: boolean;
  readonly cadence: Micros;
  readonly settleDelay: Micros;
  /** The range is settled already, and what differs is to be counted. */
  readonly compares?: boolean;
  /** Why the series was not filled before. */
  readonly hindrance: string | null;
}

/** More rows than a range should hold are asked for, so that one page reaches below it. */
const SPARE_ROWS = 8;
/** The service's clock is known to about a second, and its window moves on while an answer travels. */
export const EDGE_MARGIN = 3 * MICROS_PER_SECOND;
/** A row this far within the window cannot have left it while an answer travelled. */
const WINDOW_MARGIN = 600 * MICROS_PER_SECOND;

const priorities = {
  head: priority.head,
  expiring: priority.expiring,
  bars: priority.history,
  history: priority.history,
};

/** What a walk found, compared with what was stored. */
export interface Walked {
  /** Records of the range that were not stored; counted only where the slice `compares`. */
  readonly missing: number;
  readonly changed: number;
  readonly withdrawn: number;
  /** Records that came, those beyond the range included. */
  readonly received: number;
  /** What it found refutes what the service said of another range, which is open again. */
  readonly reopened: boolean;
}

/**
 * Walks back over a slice and commits page by page, each with what it proves: the next page is on its way while the last
 * one is written. `served` is called once the service has shown records. Throws when the slice could not be proven down
 * to its start.
 */
export async function walkSlice(
  intake: Intake,
  slice: SliceWalk,
  served: () => Promise<void> = async () => {},
): Promise<Walked> {
  const { client, ingest, tally, signal } = intake;
  const { stream } = slice.line;
  const series: Series = { stream, indexType: slice.indexType, indexId: slice.indexId };
  const walk = walkOf(intake, slice);
  const request = requestText(walk.endpoint, walk.filters);
  let hole = slice.range;
  const walked = { missing: 0, changed: 0, withdrawn: 0, received: 0, reopened: false };

  const read = async (body: Body) => {
    // A cache on the way may answer with what the service said before the range was complete.
    const complete = serviceNow(intake) - slice.settleDelay - body.ageMs * MICROS_PER_MS;
    if (body.ageMs > 0 && hole.to > complete) throw malformedBody("an old answer from a cache");
    return ingest.call("readPage", { stream, series }, [body], signal);
  };
  const commit = async (held: number, position: PagePosition) => {
    const isAnew = position.link === "timestamp" && position.number > 1;
    // What the window dropped while the walk was under way is not empty but lost: it is left to be written off.
    if (position.end === "served_out" && slice.keptFor !== null) {
      const edge = serviceNow(intake) - slice.keptFor + EDGE_MARGIN;
      if (edge > hole.from) hole = { from: Math.min(edge, hole.to), to: hole.to };
    }
    const committed = await ingest.call(
      "commitWalkPage",
      {
        held,
        series,
        position: {
          hole,
          upper: Math.min(position.ceiling, hole.to),
          ...(isAnew ? { anchor: hole.to } : {}),
        },
        ends: position.end === "served_out",
        settleDelay: slice.settleDelay,
        ...(slice.keptFor === null ? {} : { servedFrom: serviceNow(intake) - slice.keptFor + WINDOW_MARGIN }),
        request,
        compares: slice.compares ?? false,
      },
      [],
      signal,
    );
    tally.wrote(stream, committed.written, committed);
    const { inserted, changed, unchanged } = committed.written;
    walked.received += inserted + changed + unchanged;
    walked.missing += committed.missing;
    walked.changed += changed;
    walked.withdrawn += committed.withdrawn;
    walked.reopened ||= committed.reopened;
    if (committed.proven) tally.of(stream).done += committed.proven.to - committed.proven.from;
    if (committed.alarm) throw alarmed(committed.alarm, walk.endpoint);
    return committed.complete || hole.from >= hole.to;
  };

  let committing: Promise<boolean> | undefined;
  for await (const { page, position } of walkBackwards(client, walk, read)) {
    await committing;
    if (page.rows > 0 && position.number === 1) await served();
    committing = commit(page.held, position);
    // Its failure is met at the next await; meanwhile the next page may take long.
    committing.catch(() => {});
  }
  if ((await committing) !== true) throw unproven(walk.endpoint);
  return walked;
}

function walkOf(intake: Intake, slice: SliceWalk): Walk {
  const { range, isHead, cadence } = slice;
  const until = isDaily(slice.line.stream)
    ? // Whether a bar is found by its start or its end is not said, so a day more; and today's bar ends tomorrow.
      range.to + (isHead ? 2 : 1) * MICROS_PER_DAY
    : isHead
      ? Math.max(range.to, serviceNow(intake) + MICROS_PER_SECOND)
      : range.to;
  const rows = Math.ceil((until - range.from) / cadence) + SPARE_ROWS;
  return {
    endpoint: streamTable[slice.line.stream].endpoint,
    filters: { indexType: slice.indexType, indexId: slice.indexId },
    from: range.from,
    until,
    claimedTo: range.to,
    cadence,
    size: Math.min(MAX_PAGE_SIZE, rows),
    priority: priorities[slice.urgency],
    signal: intake.signal,
  };
}

const alarms: Record<Alarm, string> = {
  foreign_rows: "its pages hold records of other indices",
  disordered: "its records come in no order",
  newer_than_proven: "its pages come in the wrong order",
  false_end: "it says that it has nothing older, and has served older records",
  mass_rejection: "most of its records cannot be read",
  older_than_stored: "an old answer of it differs from what is stored",
  mass_withdrawal: "it no longer serves many records that it served before",
};

function alarmed(alarm: Alarm, endpoint: string): Failure {
  return new Failure(`${endpoint} contradicts itself: ${alarms[alarm]}`, {
    family: "retry",
    code: "alarm",
    remedy: "the range stays open and is asked again; if it lasts, tell the service's operator",
  });
}

function unproven(endpoint: string): Failure {
  return new Failure(`${endpoint} ended before the range was whole`, {
    family: "retry",
    code: "unproven",
    remedy: "the range stays open and is asked again",
  });
}
