import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { LedgerLine } from "../../warehouse/coverage/ledger.ts";
import { unservedLines } from "../../warehouse/coverage/not-found.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type Intake, serviceNow } from "../context/context.ts";
import { isAnswered, judge, type Problem, problemOf } from "../context/error-policy.ts";
import { isHopeless, pauseBefore, workThrough } from "../context/retry.ts";
import { Denials, isDenial } from "./confirm-not-found.ts";
import { type FillPlan, lineKey, type Narrowing, openHoles, planFill } from "./gap-planner.ts";
import { urgencies } from "./slices.ts";
import { EDGE_MARGIN, type SliceWalk, walkSlice } from "./walk-slice.ts";

export interface Filling {
  readonly reader: Connection;
  readonly random: Random;
  readonly refreshSeconds: number;
  /** Requests in flight, at most. */
  readonly concurrency: number;
  readonly narrowing: Narrowing;
}

export interface Filled {
  readonly problems: readonly Problem[];
  /** The moment, by the service's clock, up to which holes were looked for. */
  readonly asOf: Micros;
}

/** A round that took longer than this leaves a head worth another round. */
const LONG_ROUND_MS = 120_000;

/**
 * Fills every hole of what is wanted: a first backfill, the rest of one that was interrupted, and gaps of any kind are all
 * the same to it. Each round asks the ledger anew what is missing.
 */
export async function fillHoles(intake: Intake, filling: Filling): Promise<Filled> {
  const { reader, random, refreshSeconds, narrowing } = filling;
  const { clock, ingest, tally, signal, log } = intake;
  const failures = new Map<string, Failures>();
  const denials = new Denials(reader);
  const parked = new Map<string, Problem>();
  /** What stays open, by line: for the report, and for `gaps`. */
  const stuck = new Map<string, { readonly line: LedgerLine; readonly problem: Problem }>();

  let lastTook = Number.POSITIVE_INFINITY;
  for (let round = 0, pauses = 0; ; round++) {
    signal.throwIfAborted();
    const now = serviceNow(intake);
    const begun = clock.monotonic();
    const plan = planFill(reader, now, refreshSeconds, narrowing);
    if (plan.lost.length > 0) await ingest.call("commitLosses", plan.lost, [], signal);
    const isOpen = (walk: SliceWalk) =>
      !parked.has(familyOf(walk)) && !failures.get(lineKey(walk.line))?.hopeless;
    const walks = plan.walks.filter(isOpen);
    const asOf = now;
    const finish = async () => {
      await writeOffEdge(intake, reader, narrowing);
      for (const [reason, group] of Map.groupBy(stuck.values(), ({ problem }) => problem.code)) {
        const lines = group.map(({ line }) => line);
        await ingest.call("commitHindrance", { lines, reason }, [], signal);
      }
      const problems = [...stuck.values()].map(({ problem }) => problem);
      return { problems: [...parked.values(), ...problems], asOf };
    };
    if (walks.length === 0) return finish();

    for (const stream of ["index_ticks", "ohlcv"] as const) {
      const counts = tally.of(stream);
      const own = walks.filter(({ line }) => line.stream === stream);
      counts.planned = counts.done + own.reduce((sum, { range }) => sum + range.to - range.from, 0);
    }
    log.debug({ round, walks: walks.length }, "filling holes");
    const { failed, reopened } = await runRound(intake, filling, { plan, walks, parked, denials });
    const denied = new Set<string>();
    for (const { walk, error, isStuck } of failed) {
      const key = lineKey(walk.line);
      const known = failures.get(key) ?? { count: 0, hopeless: false };
      // A 404 is one answer about the index, however many slices of it have heard it in this round.
      if (isStuck && !denied.has(key)) known.count++;
      if (isDenial(error)) denied.add(key);
      known.hopeless ||= judge(error, tally.answers) === "refused" || isHopeless(known.count);
      failures.set(key, known);
    }
    for (const { line } of walks) stuck.delete(lineKey(line));
    for (const { walk, error } of failed) {
      const problem = problemOf(walk.line.stream, `${walk.indexType} ${walk.name}`, error);
      stuck.set(lineKey(walk.line), { line: walk.line, problem });
    }
    if (failed.length === 0) {
      const took = clock.monotonic() - begun;
      // A service that cannot keep up with its own clock would be followed for ever: the head must shrink by half.
      const isGainful = took >= LONG_ROUND_MS && took <= lastTook / 2;
      if (!reopened && !isGainful) return finish();
      lastTook = took;
      pauses = 0;
    } else {
      const pause = pauseBefore(pauses++, random);
      log.warn(
        { failed: failed.length, pauseMs: Math.round(pause) },
        "some ranges stayed open: trying again",
      );
      await clock.sleep(pause, signal);
    }
  }
}

interface Failures {
  count: number;
  hopeless: boolean;
}

interface FailedWalk {
  readonly walk: SliceWalk;
  readonly error: unknown;
  /** The service answered, and it failed all the same. */
  readonly isStuck: boolean;
}

interface Round {
  readonly plan: FillPlan;
  readonly walks: readonly SliceWalk[];
  readonly parked: Map<string, Problem>;
  readonly denials: Denials;
}

async function runRound(
  intake: Intake,
  { reader, concurrency }: Filling,
  { plan, walks, parked, denials }: Round,
): Promise<{ failed: FailedWalk[]; reopened: boolean }> {
  const { ingest, signal } = intake;
  const failed: FailedWalk[] = [];
  const freed: LedgerLine[] = [];
  let reopened = false;
  const unserved = {
    index_ticks: unservedLines(reader, "index_ticks"),
    ohlcv: unservedLines(reader, "ohlcv"),
  };
  const left = new Map<string, number>();
  for (const { line } of walks) left.set(lineKey(line), (left.get(lineKey(line)) ?? 0) + 1);

  const servedAgain = async ({ line }: SliceWalk) => {
    if (!unserved[line.stream].delete(line.series)) return;
    reopened = true;
    await ingest.call("commitServedAgain", line, [], signal);
  };
  const fill = async (walk: SliceWalk) => {
    if (parked.has(familyOf(walk))) return;
    const outcome = await fillSlice(intake, walk, denials, () => servedAgain(walk));
    if (outcome.kind === "forbidden") return park(intake, walk, walks, parked, outcome.error);
    if (outcome.kind === "failed") {
      failed.push({ walk, error: outcome.error, isStuck: outcome.isStuck });
      return;
    }
    reopened ||= outcome.reopened;
    if (walk.hindrance !== null) freed.push(walk.line);
    const key = lineKey(walk.line);
    const rest = (left.get(key) ?? 1) - 1;
    left.set(key, rest);
    if (rest === 0 && plan.rereads.has(key)) {
      await ingest.call("commitReread", { line: walk.line, day: plan.day }, [], signal);
    }
  };
  // What is known to be there goes first: many indices in a row that are not found look like a service that is gone.
  const rank = ({ urgency, line }: SliceWalk) =>
    2 * urgencies.indexOf(urgency) + (unserved[line.stream].has(line.series) ? 1 : 0);
  const ordered = walks.toSorted((a, b) => rank(a) - rank(b));
  // Half as many again as requests may be in flight: while the pages of some are read, those of others travel.
  await workThrough(ordered, Math.ceil(concurrency * 1.5), fill);
  if (freed.length > 0) await ingest.call("commitHindrance", { lines: freed, reason: null }, [], signal);
  return { failed, reopened };
}

/** Index families share their scopes, so one refusal speaks for all of the family. */
function familyOf({ line, indexType }: Pick<SliceWalk, "line" | "indexType">): string {
  return `${line.stream} ${indexType}`;
}

async function park(
  { ingest, signal }: Intake,
  walk: SliceWalk,
  walks: readonly SliceWalk[],
  parked: Map<string, Problem>,
  error: unknown,
): Promise<void> {
  const family = familyOf(walk);
  if (parked.has(family)) return;
  parked.set(family, problemOf(walk.line.stream, walk.indexType, error));
  const lines = new Map(
    walks.filter((other) => familyOf(other) === family).map(({ line }) => [lineKey(line), line]),
  );
  await ingest.call("commitHindrance", { lines: [...lines.values()], reason: "forbidden" }, [], signal);
}

/**
 * The last seconds before the window's edge were not asked for, since the answer would have come too late. They are
 * gone in a moment, and only then are they lost.
 */
async function writeOffEdge(intake: Intake, reader: Connection, narrowing: Narrowing): Promise<void> {
  const { clock, ingest, signal } = intake;
  const now = serviceNow(intake);
  const ends = openHoles(reader, now, narrowing).flatMap(({ open, keptFor }) =>
    keptFor === null ? [] : open.map(({ to }) => to + keptFor),
  );
  const soon = ends.filter((end) => end > now && end <= now + 2 * EDGE_MARGIN);
  if (soon.length > 0) await clock.sleep((Math.max(...soon) - now) / MICROS_PER_MS + 50, signal);
  const later = serviceNow(intake);
  const plan = planFill(reader, later, 1, narrowing);
  if (plan.lost.length > 0) await ingest.call("commitLosses", plan.lost, [], signal);
}

export type SliceOutcome =
  | {
      readonly kind: "filled";
      /** What was found refutes what the service said of another range, which is open again. */
      readonly reopened: boolean;
    }
  /** The profile lacks a scope: the rest of the family need not be asked. */
  | { readonly kind: "forbidden"; readonly error: unknown }
  | {
      readonly kind: "failed";
      readonly error: unknown;
      /** The service answered, and it failed all the same. */
      readonly isStuck: boolean;
    };

/**
 * Fills one slice. `servedAgain` is called when the service has records of a line that it once answered with 404;
 * `denials` decide whether a 404 is believed. Throws only where nothing can go on.
 */
export async function fillSlice(
  intake: Intake,
  walk: SliceWalk,
  denials: Denials,
  servedAgain: () => Promise<void>,
): Promise<SliceOutcome> {
  const { ingest, tally, signal } = intake;
  const answered = tally.answers;
  let reopened = false;
  try {
    ({ reopened } = await walkSlice(intake, walk, servedAgain));
    denials.noteFound(walk);
  } catch (error) {
    switch (judge(error, tally.answers)) {
      case "stop":
        throw error;
      case "absent": {
        const verdict = await denials.judge(intake, walk);
        if (verdict.kind === "doubted")
          return { kind: "failed", error: verdict.error, isStuck: verdict.isStuck };
        await ingest.call("commitUnserved", { line: walk.line, range: walk.range }, [], signal);
        tally.of(walk.line.stream).done += walk.range.to - walk.range.from;
        break;
      }
      case "forbidden":
        return { kind: "forbidden", error };
      default:
        return { kind: "failed", error, isStuck: isAnswered(error) || tally.answers > answered };
    }
  }
  return { kind: "filled", reopened };
}
