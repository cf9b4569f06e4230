import type { WalkPageCommitResult, WalkPosition } from "../../ingest/commit/walk-page.ts";
import type { AppliedClaims } from "../../ingest/commit/write-page.ts";
import { Failure } from "../../model/failure.ts";
import type { ResponseBody } from "../../model/response-body.ts";
import { fetchableFrom, isDaily, MAX_PAGE_SIZE, type Series, streamTable } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_DAY, MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { ClaimKind } from "../../rule/answer.ts";
import { isIncident } from "../../rule/confirm.ts";
import type { PageAlarm } from "../../rule/interpret.ts";
import { requestPriority } from "../../service/http/request.ts";
import {
  type HistoryWalkOptions,
  type PagePosition,
  walkHistoryPages,
} from "../../service/pagination/history-walk.ts";
import type { RowSpacing } from "../../service/pagination/missing-row-checks.ts";
import type { PageSummary } from "../../service/pagination/request-page.ts";
import { wasNotFound } from "../../warehouse/coverage/ledger.ts";
import type { StoredClaim } from "../../warehouse/coverage/pending-claims.ts";
import { describeRequest, type SyncContext, serviceNow } from "../context/context.ts";
import type { SliceWalk, WalkedSeries } from "./walk-planner.ts";

/** Lets other walks of the series change the range during the walk. */
export interface WalkProgress {
  /** The walk ends here. */
  readonly from: Micros;
  /** End at once, without confirmation, if there is nothing at or before the end of the range. */
  readonly isExploring: boolean;
  /** What other walks of the series have learnt; undefined: there are none. */
  readonly spacing?: RowSpacing | undefined;
  /** How many rows the walk has left, at most a full page. */
  readonly pageSize: number;
  /** The walk has everything down to `lowerBound`: lowers `from` if the walk should go on. */
  extend(lowerBound: Micros): void;
  /** `size`: how many rows were requested. */
  onPage(page: PageSummary, size: number): void;
}

/** Requested in addition to the expected rows, so that the last page reaches below the range. */
const SPARE_ROWS = 8;

const priorityByUrgency = {
  head: requestPriority.head,
  expiring: requestPriority.expiring,
  bars: requestPriority.history,
  history: requestPriority.history,
};

/** What a walk found, compared with the stored rows. */
export type SliceResult = Readonly<Awaited<ReturnType<typeof walkSlice>>>;

export interface WalkOptions {
  /** Called for each response with records of the series, also for one that another contradicts. */
  readonly onFound?: () => void;
  readonly progress?: WalkProgress | undefined;
  /** The range is covered already: count what differs. */
  readonly isComparison?: boolean;
}

/**
 * Walks a slice backwards and commits each page with its proven range; the next page is requested while the last one is
 * written. Throws if the slice is not proven down to its start.
 */
export async function walkSlice(
  context: SyncContext,
  slice: SliceWalk,
  { onFound, progress, isComparison = false }: WalkOptions = {},
) {
  const { client, ingest, reader, stats, signal, log } = context;
  const { key, indexType, indexId, name, serviceWindow, settleDelay, cadence } = slice.series;
  const { period, quietMargin } = slice.series;
  // It crosses to the ingest thread with each page.
  const timing = { period, settleDelay, quietMargin, serviceWindow };
  const { stream } = key;
  const series: Series = { stream, indexType, indexId };
  const walk = buildWalk(context, slice, progress);
  const pages = ingest.openPages({ stream, series, cadence });
  const request = describeRequest(walk.endpoint, walk.filters);
  const { to } = slice.range;
  let provenFrom = to;
  const counts = {
    /** Records of the range that were not stored; counted only in a comparison. */
    missing: 0,
    changed: 0,
    /** Rows with the same figures, but other undocumented properties. */
    extraChanged: 0,
    withdrawn: 0,
    /** Stored rows that the service claims not to have, and must say so again: they stay, and are open. */
    unconfirmed: 0,
    /** From the oldest page with a difference to the newest; undefined: nothing differs. */
    differing: undefined as TimeRange | undefined,
    /** Records received, including those outside the range. */
    received: 0,
    foreign: 0,
    /** A page contradicted an earlier claim of the service, also that the index does not exist: other ranges were reopened. */
    hasReopened: false,
    /** The upper part of the range stays open: the service has shown no record above it so far. */
    isUnpublished: false,
    /** The service says that nothing is older: what is below is settled, or a pending claim. */
    hasFoundEnd: false,
    /** Set if stored rows are older than everything that the service still serves: its oldest record. */
    endsAt: undefined as Micros | undefined,
  };

  const read = async (body: ResponseBody) => {
    // An HTTP cache may serve a response from before the range was settled.
    const completeUntil = serviceNow(context) - settleDelay - body.ageMs * MICROS_PER_MS;
    if (body.ageMs > 0 && to > completeUntil) throw staleResponseFailure(walk.endpoint);
    const page = await pages.read(body);
    if (page.rows > 0) onFound?.();
    return page;
  };
  const commit = async (number: number, position: PagePosition) => {
    const isLast = position.end === "exhausted";
    // A range that left the window during the walk is lost, not empty. Leave it open; the next plan records it as lost.
    const floor = fetchableFrom(serviceWindow, serviceNow(context));
    const from = isLast ? Math.min(to, Math.max(position.from, floor)) : position.from;
    const committed = await ingest.call(
      "commitWalkPage",
      {
        reader: pages.id,
        number,
        series,
        position: toWalkPosition(position, { from, to }),
        isLast,
        isHead: slice.isHead,
        isSilenceConfirmed: position.isSilenceConfirmed,
        acceptsForeign: position.acceptsForeign,
        timing,
        confirmation: context.settings.withdrawals,
        request,
        shouldCountMissing: isComparison,
      },
      signal,
    );
    reportClaims(context, slice.series, committed);
    if (committed.foreign > 0 && counts.foreign === 0)
      log.warn({ stream, indexType, name, records: committed.foreign }, "page has records of other indices");
    counts.foreign += committed.foreign;
    const incidents = committed.pending.filter(({ kind }) => isIncident(kind));
    const alarm = committed.alarm ?? (incidents.length > 0 ? "mass_withdrawal" : undefined);
    stats.addRows(stream, committed.written, { ...committed, alarm });
    const { inserted, changed, unchanged, extraChanged } = committed.written;
    const unconfirmed = incidents.reduce((sum, { rows }) => sum + rows, 0);
    counts.received += inserted + changed + unchanged;
    counts.missing += committed.missing;
    counts.changed += changed;
    counts.extraChanged += extraChanged;
    counts.withdrawn += committed.withdrawn;
    counts.unconfirmed += unconfirmed;
    if (committed.missing + changed + committed.withdrawn + unconfirmed > 0 || committed.hasReopened) {
      const page = committed.proven ?? { from, to };
      counts.differing = { from: page.from, to: counts.differing?.to ?? page.to };
    }
    counts.hasReopened ||= committed.hasReopened;
    counts.isUnpublished ||= committed.isUnpublished;
    if (committed.proven) stats.forStream(stream).doneMicros += committed.proven.to - committed.proven.from;
    if (committed.alarm) throw alarmFailure(committed.alarm, walk.endpoint);
    counts.endsAt = committed.endsAt ?? counts.endsAt;
    if (committed.isComplete || from >= to) {
      provenFrom = Number.NEGATIVE_INFINITY;
      counts.hasFoundEnd ||= isLast;
    } else if (committed.proven) provenFrom = committed.proven.from;
  };

  let committing: Promise<void> | undefined;
  try {
    for await (const { page, position } of walkHistoryPages(client, walk, read)) {
      progress?.onPage(page, position.size);
      await committing;
      if (page.rows > 0 && position.number === 1 && wasNotFound(reader, key)) {
        await ingest.call("commitIndexFoundAgain", key, signal);
        counts.hasReopened = true;
      }
      committing = commit(page.number, position);
      // The next `await committing` throws a failure. Until then this handler prevents an unhandled rejection.
      committing.catch(() => {});
    }
    await committing;
  } finally {
    await committing?.catch(() => {});
    pages.close();
  }
  const isUnexplored = committing === undefined;
  if (!isUnexplored && provenFrom > walk.from)
    throw new Failure(`${walk.endpoint} ended before the range was complete`, {
      code: "unproven",
      remedy: "the range stays open and is fetched again",
    });
  /** `isUnexplored`: an exploring walk found nothing; the range is still open. */
  return { ...counts, isUnexplored };
}

const believedMessages: Readonly<Partial<Record<ClaimKind, string>>> = {
  withdrawn: "mass withdrawal believed",
  "end moved": "service dropped its oldest records",
};

/** Logs what an operator should know of an answer: once each, since the warehouse stores it. */
export function reportClaims(
  { log }: SyncContext,
  { key, indexType, name }: WalkedSeries,
  { pending, believed, learnedOffset }: AppliedClaims & Partial<WalkPageCommitResult>,
): void {
  const describe = ({ range: { from, to }, rows, answers }: StoredClaim) => ({
    stream: key.stream,
    indexType,
    name,
    from: formatTimestamp(from),
    to: formatTimestamp(to),
    rows,
    answers,
  });
  for (const claim of pending)
    if (claim.answers === 1 && isIncident(claim.kind))
      log.warn(describe(claim), "mass withdrawal unconfirmed");
  for (const claim of believed) log.warn(describe(claim), believedMessages[claim.kind] ?? "claim believed");
  if (learnedOffset !== undefined)
    log.warn(
      { stream: key.stream, offset_ms: learnedOffset / MICROS_PER_MS },
      "websocket and REST timestamps differ",
    );
}

/** The service no longer serves many records; it must say so again before they are withdrawn. */
export function unconfirmedFailure({ series }: SliceWalk, rows: number): Failure {
  const { endpoint } = streamTable[series.key.stream];
  return new Failure(`${endpoint} no longer serves ${rows} records that it served before`, {
    code: "withdrawal_unconfirmed",
    remedy: "they stay until it has said so for a while; `mds-sync verify --accept` believes it at once",
  });
}

/** Converts the position of a page in its walk to what the commit needs to find the proven range. */
export function toWalkPosition(
  { number, link, provenFrom, isContinued, madeAt }: PagePosition,
  gap: TimeRange,
): WalkPosition {
  const isRestart = link === "timestamp" && number > 1;
  return {
    gap,
    provenFrom: Math.min(provenFrom, gap.to),
    isContinued: isContinued && provenFrom <= gap.to,
    madeAt,
    ...(isRestart ? { anchor: gap.to } : {}),
  };
}

function buildWalk(
  context: SyncContext,
  slice: SliceWalk,
  progress: WalkProgress | undefined,
): HistoryWalkOptions {
  const { range, isHead, series } = slice;
  const { key, indexType, indexId, period, cadence, quietMargin, knownEnd } = series;
  const present = Math.max(range.to, serviceNow(context));
  // The spec does not say whether `timestamp` selects bars by start or end, so add a day.
  const until = isHead ? present : Math.min(range.to + (isDaily(key.stream) ? MICROS_PER_DAY : 0), present);
  const countRows = (duration: Micros) => Math.ceil(duration / cadence);
  return {
    endpoint: streamTable[key.stream].endpoint,
    filters: { indexType, indexId },
    get from() {
      return progress?.from ?? range.from;
    },
    extend: (lowerBound) => progress?.extend(lowerBound),
    isExploring: progress?.isExploring ?? false,
    spacing: progress?.spacing ?? { maxDistance: cadence },
    knownEnd,
    until,
    coverageEnd: range.to,
    // So much silence counts, if it is confirmed: see `quietMarginOf`.
    maxSilence: isHead ? Math.max(period, quietMargin - period) : undefined,
    cadence: period,
    get size() {
      const rows = progress?.pageSize ?? countRows(range.to - range.from);
      return Math.min(MAX_PAGE_SIZE, rows + countRows(until - range.to) + SPARE_ROWS);
    },
    priority: priorityByUrgency[slice.urgency],
    signal: context.signal,
  };
}

const alarmTexts: Record<PageAlarm, string> = {
  foreign_rows: "its pages contain records of other indices",
  disordered: "its records are not in order",
  newer_than_proven: "its pages are in the wrong order",
  mass_rejection: "most of its records cannot be read",
  older_than_stored: "a stale response differs from the stored rows",
};

function alarmFailure(alarm: PageAlarm, endpoint: string): Failure {
  return new Failure(`${endpoint} contradicts itself: ${alarmTexts[alarm]}`, {
    code: "alarm",
    remedy: "the range stays open and is fetched again; if it lasts, contact the service's operator",
  });
}

function staleResponseFailure(endpoint: string): Failure {
  return new Failure(`a cache answers for ${endpoint} with a response from before the range was complete`, {
    code: "stale_response",
    remedy: "retried automatically; if it persists, let the cache pass on these requests",
  });
}
