import { computeTargetEnd, computeWindowStart } from "../../src/model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../src/model/time.ts";
import { normalise, subtract, type TimeRange } from "../../src/model/time-range.ts";
import {
  NO_LONGER_SERVED,
  NOTHING_OLDER,
  type PageAnswer,
  type PendingClaim,
} from "../../src/rule/answer.ts";
import { loseAgedOut } from "../../src/rule/apply.ts";
import { nextAskAt } from "../../src/rule/confirm.ts";
import { type Decision, decideNotFound, decidePage, type Known } from "../../src/rule/decide.ts";
import { findContradiction } from "../../src/rule/interpret.ts";
import type { PagePosition } from "../../src/service/pagination/history-walk.ts";
import { findKnownEnd } from "../../src/sync/history/walk-planner.ts";
import { toWalkPosition } from "../../src/sync/history/walk-slice.ts";
import type { Chooser } from "./choices.ts";
import type { MemorySeries } from "./memory-series.ts";
import { type Answer, lastingFaults, type Page } from "./service.ts";
import type { Walks } from "./walks.ts";
import { CONFIRMATION, rulesAt, servedAt, slotNow, type World, windowStartAt } from "./world.ts";

/** What happens in a step, besides its choices. */
export interface StepOptions {
  readonly world: World;
  readonly walks: Walks;
  /** The slot. */
  readonly now: number;
  readonly chooser: Chooser;
  /** How many answers may still be wrong, and how often the program may still be killed; counts down. */
  readonly budget: { faults: number; crashes: number };
  /** The choices that were made. */
  readonly trace: string[];
}

const confirmationOf = ({ period }: World) => ({
  answers: CONFIRMATION.answers,
  over: CONFIRMATION.overSlots * period,
});

type Outcome = "done" | "crashed";

/** Fills what is open, as the gap filler does: one walk per gap, the newest first. */
export async function fill(series: MemorySeries, step: StepOptions): Promise<void> {
  const { lost, open } = planGaps(series, step.world, step.now);
  for (const change of loseAgedOut(lost)) series.change(change);
  for (const gap of open.toReversed()) if ((await walk(series, gap, step, "fill")) === "crashed") return;
}

/** The clock of the service is known up to this. */
const MAX_CLOCK_ERROR = 60 * MICROS_PER_SECOND;

export function planGaps(series: MemorySeries, world: World, slot: number) {
  const now = slotNow(world, slot);
  const windowStart = computeWindowStart(
    world.window === undefined ? null : world.window * world.period,
    now,
  );
  const settled = normalise(series.ledger);
  const first = settled[0]?.from ?? Number.POSITIVE_INFINITY;
  // As the SQL of the targets has it: until the oldest part is proven, a target begins where the window does.
  const start = Math.max(0, first <= windowStart + MAX_CLOCK_ERROR ? first : windowStart);
  const unsettled = (from: Micros, to: Micros) => subtract(normalise([{ from, to }]), settled);
  const waiting = series.claims
    .filter((claim) => claim.acceptedAt === null && nextAskAt(claim, confirmationOf(world)) > now)
    .map(({ range }) => range);
  return {
    lost: unsettled(start, Math.min(windowStart, now)),
    open: subtract(
      unsettled(Math.max(start, windowStart), Math.min(now, computeTargetEnd(rulesAt(world, slot), now))),
      normalise(waiting),
    ),
  };
}

/** Compares what is covered with the service, as the rotation of nights does. */
export async function compare(series: MemorySeries, step: StepOptions): Promise<void> {
  const from = windowStartAt(step.world, step.now) ?? 0;
  for (const range of normalise(series.ledger.filter(({ proof }) => proof !== "lost")).toReversed()) {
    const compared = { from: Math.max(from, range.from), to: range.to };
    if (compared.from < compared.to && (await walk(series, compared, step, "compare")) === "crashed") return;
  }
}

/** Asks once more below the newest end of the history, as every night does: one older record disproves all ends. */
export async function checkEnd(series: MemorySeries, step: StepOptions): Promise<void> {
  const end = series.ledger.findLast(({ reason }) => reason === NOTHING_OLDER || reason === NO_LONGER_SERVED);
  if (!end) return;
  const gap = { from: Math.max(end.from, rulesAt(step.world, step.now).floor), to: end.to };
  if (gap.from < gap.to) await walk(series, gap, step, "check end");
}

/** Walks one gap, and commits its pages. The program may be killed before each of them. */
async function walk(
  series: MemorySeries,
  gap: TimeRange,
  step: StepOptions,
  why: "fill" | "compare" | "check end",
): Promise<Outcome> {
  const { world, walks, now, budget, chooser, trace } = step;
  const isExploring = why === "check end";
  const isHead = !isExploring && gap.to >= computeTargetEnd(rulesAt(world, now), slotNow(world, now));
  const knownEnd = why === "fill" ? findKnownEnd(series.claims) : undefined;
  const given: Answer[] = [];
  let lasting: Answer | undefined;
  let isProven = false;
  for (;;) {
    const { pages, query, failure } = await walks.follow({ now, gap, isHead, isExploring, knownEnd }, given);
    for (const { page, position } of pages) {
      if (budget.crashes > 0 && chooser.choose(["commit", "crash"]) === "crash") {
        budget.crashes--;
        trace.push("crash");
        return "crashed";
      }
      const outcome = commitPage(series, page, position, gap, { isHead, now }, world);
      if (outcome === "contradicted" || isExploring) return "done";
      isProven = outcome === "proven";
    }
    if (failure?.code === "not_found" && !isExploring) commitNotFound(series, gap, world, now);
    if (query === undefined) {
      const isHonest = failure === undefined && given.every((each) => each === "honest");
      if (isHonest && !isProven && !isExploring)
        series.complaint = `not proven by a walk: ${JSON.stringify(gap)}`;
      return "done";
    }
    if (budget.faults === 0 && lasting === undefined) {
      trace.push("honest");
      given.push("honest");
      continue;
    }
    const answers = walks.answersTo(now, query);
    // Only stored rows show that a backend lacks some between others.
    const possible = why === "compare" ? answers : answers.filter((each) => each !== "holed");
    if (lasting === undefined) {
      const chosen = chooseAnswer(possible, step);
      if (chosen.isLasting) lasting = chosen.answer;
      given.push(chosen.answer);
    } else given.push(possible.find((each) => each === lasting) ?? "honest");
  }
}

interface ChosenAnswer {
  readonly answer: Answer;
  /** The following answers of the walk are like it. */
  readonly isLasting: boolean;
}

const lastingNames = new Map(lastingFaults.map((answer) => [`always ${answer}`, answer]));

function chooseAnswer(answers: readonly Answer[], { budget, chooser, trace }: StepOptions): ChosenAnswer {
  const names = [...lastingNames].filter(([, each]) => answers.includes(each));
  const options: readonly string[] = [...answers, ...names.map(([name]) => name)];
  const chosen = chooser.choose(options);
  if (chosen !== "honest") budget.faults--;
  trace.push(chosen);
  const answer = lastingNames.get(chosen);
  return { answer: answer ?? (chosen as Answer), isLasting: answer !== undefined };
}

/** The `Date` of a page has whole seconds, and clocks differ. */
const CLOCK_SLACK = 5 * MICROS_PER_SECOND;

/** As commitWalkPage does, in memory. */
function commitPage(
  series: MemorySeries,
  page: Page,
  position: PagePosition,
  gap: TimeRange,
  { isHead, now }: { readonly isHead: boolean; readonly now: number },
  world: World,
): "contradicted" | "proven" | "unproven" {
  const rules = rulesAt(world, now);
  const isLast = position.end === "exhausted";
  const from = isLast ? Math.min(gap.to, Math.max(gap.from, rules.floor)) : gap.from;
  const asOf = slotNow(world, page.madeAt);
  const walked = toWalkPosition(position, { from, to: gap.to });
  const shown: PageAnswer = {
    ...walked,
    timestamps: page.timestamps,
    foreign: position.acceptsForeign ? 0 : page.foreign,
    isLast,
    isHead,
    isSilenceConfirmed: position.isSilenceConfirmed,
    madeAt: world.isUndated ? undefined : Math.min(asOf, walked.madeAt ?? asOf),
    asOf,
    isStale: page.isStale,
  };
  const known = knownOf(series, world, now);
  const contradiction = findContradiction(shown);
  // A stored row that a stale page lacks may be newer.
  const expected = [shown.provenFrom - 1, ...page.timestamps];
  const hasConflict = (range: TimeRange) => series.rowsBeside(range, expected).length > 0;
  const decision = decidePage(shown, known, { contradiction, hasConflict });
  const { proven, bound, isComplete, endsAt } = decision;
  series.store(page.timestamps, page.versions, page.isStale ? "live" : "rest");
  applyDecision(series, decision);
  if (contradiction) return "contradicted";
  if (bound.showsRunningDay) series.servesRunningDay = true;
  if (bound.publication) recordPublication(series, bound.publication, isHead && !page.isStale);
  const claimsEnd = isLast && proven?.from !== shown.gap.from;
  if (isComplete && !claimsEnd && !page.isStale) {
    const pending = series.claims.filter(({ acceptedAt }) => acceptedAt === null).map(({ range }) => range);
    const said = { from: shown.gap.from, to: Math.min(bound.until, shown.provenFrom) };
    const open = said.from < said.to ? subtract(series.openIn(said), normalise(pending)) : [];
    if (open.length > 0) series.complaint = `said to be complete: ${JSON.stringify(open)}`;
  }
  const coveredTo = series.ledger.at(-1)?.to ?? Number.NEGATIVE_INFINITY;
  const delay = Math.max(rules.settleDelay, rules.lateness);
  if (isHead && page.madeAt === now && rules.lateness > 0 && coveredTo > asOf + CLOCK_SLACK - delay)
    series.complaint = `covered up to ${coveredTo} at ${asOf}`;
  if (proven && proven.from >= proven.to) series.complaint = `proves nothing: ${JSON.stringify(proven)}`;
  if (endsAt !== undefined && !series.hasRows({ from: Number.MIN_SAFE_INTEGER, to: endsAt }))
    series.complaint = `no row is below the end at ${endsAt}`;
  return isComplete || (proven && proven.from <= shown.gap.from) ? "proven" : "unproven";
}

function recordPublication(
  series: MemorySeries,
  shown: NonNullable<MemorySeries["publication"]>,
  isHead: boolean,
): void {
  const before = series.publication ?? { publishedTo: 0, askedAt: 0, askedTo: 0, quietMargin: 0 };
  const askedTo = Math.max(before.askedTo, shown.askedTo);
  series.publication = isHead
    ? { ...shown, askedTo }
    : { ...before, publishedTo: Math.max(before.publishedTo, shown.publishedTo), askedTo };
}

function commitNotFound(series: MemorySeries, range: TimeRange, world: World, now: number): void {
  applyDecision(series, decideNotFound(range, knownOf(series, world, now)));
}

function knownOf(series: MemorySeries, world: World, slot: number): Known {
  const rules = rulesAt(world, slot);
  const confirmation = confirmationOf(world);
  return { stored: series, pending: series.claims, rules, confirmation, now: slotNow(world, slot) };
}

function applyDecision(series: MemorySeries, { changes, recorded, dropped }: Decision): void {
  if (recorded.some(({ range: { from, to } }) => from >= to)) throw new Error("a claim is about nothing");
  // The warehouse keeps a withdrawal that was accepted for the report only.
  const isUsed = ({ kind, acceptedAt }: PendingClaim) => kind !== "withdrawn" || acceptedAt === null;
  series.claims = [...series.claims.filter((claim) => !dropped.includes(claim)), ...recorded.filter(isUsed)];
  for (const change of changes) series.change(change);
}

/** The websocket delivers a record so many slots late at most. */
const MAX_LIVE_DELAY = 2;

/** The websocket delivers one of the newest records, in time or late. */
export function deliverLive(series: MemorySeries, { world, now, chooser, trace }: StepOptions): void {
  const newest = world.listed.filter(
    ({ slot, goneAt, isTwin }) => slot <= now && slot >= now - MAX_LIVE_DELAY && now < goneAt && !isTwin,
  );
  if (newest.length === 0) return;
  const id = chooser.choose(newest.map((record) => record.id));
  trace.push(id);
  const record = newest.find((each) => each.id === id);
  if (record) series.store([record.ts], [id], "live");
}

/** The moments that the service serves in a slot, ascending. */
export function servedMoments(world: World, slot: number): readonly Micros[] {
  return [...new Set(servedAt(world, slot).map(({ ts }) => ts))].reverse();
}
