import {
  type AnswerCounts,
  acceptedPerSecond,
  addAnswer,
  type BadSign,
  type CountedRequests,
  countAccepted,
  type LoadSign,
  MANY,
  MEASURED_MS,
  NO_ANSWERS,
  NO_REQUESTS,
  SAMPLE,
  startPeriod,
  totalOf,
  weightOf,
} from "./answer-counts.ts";
import { GROWTH_MS, RESTART_SHARE, recoveryMs, type SpeedLimit, speedOf } from "./speed-limit.ts";

/** The first requests, until some succeeded: a service that handles one at a time must not be flooded. */
const START_AT_ONCE = 2;
/** A third 429 in a row, each sent after the one before was known, is no coincidence. */
const MANY_IN_A_ROW = 3;
/** The speed was the cause of bad answers if at most so many of them remain at half of it. */
const REMAINING_SHARE = 0.25;
/** How long bad answers are ignored that the speed does not cause; doubles with each such finding, up to eight times. */
const IGNORED_MS = 60_000;
/** Each further 429 in a row doubles the silence after it, up to this. */
const MAX_HOLD_MS = 30_000;
/** A late timer may catch up this much, so that coarse timers do not lower the rate. */
const MAX_CATCH_UP_MS = 20;

/** The speed is half of what was accepted, to see whether the bad answers stop: they do if the speed is their cause. */
interface Experiment extends Pick<SpeedLimit, "unit" | "sign" | "ceiling" | "silenceMs" | "since"> {
  /** Of bad answers, before. */
  readonly share: number;
  readonly speed: number;
  readonly answers: number;
  readonly bad: number;
  readonly hasAccepted: boolean;
  readonly isRepeated: boolean;
  readonly before: SpeedLimit | undefined;
}

/** Bad answers that the speed does not cause. */
interface UnrelatedSign {
  readonly share: number;
  readonly since: number;
  readonly until: number;
  readonly periodMs: number;
}

/** All times are monotonic. */
export interface PaceState {
  readonly maxAtOnce: number;
  readonly maxPerSecond: number;
  /** Successes until the first bad answer; undefined: the start is over. */
  readonly startSuccesses: number | undefined;
  /** When the last request started, with that one. */
  readonly inFlight: number;
  /** Undefined: the service showed no limit. */
  readonly limit: SpeedLimit | undefined;
  readonly experiment: Experiment | undefined;
  readonly unrelated: Readonly<Partial<Record<BadSign, UnrelatedSign>>>;
  /** The last answers. Those to requests that started before `changedAt` say nothing about the present speed. */
  readonly counts: AnswerCounts;
  readonly changedAt: number;
  /** Accepted requests: of the last second or sample, and of the last window of a limit. */
  readonly accepted: CountedRequests;
  readonly inWindow: CountedRequests;
  readonly lastStartAt: number;
  readonly nextStartAt: number;
  /** Set after a break, until a request succeeds: the service may have gone meanwhile, so a round does not start at once. */
  readonly unheardUntil: number | undefined;
  readonly pausedUntil: number;
  readonly undelayedStarts: number;
  /** Rejections in a row: `count` of requests that started after the one before was known, `answers` of all. */
  readonly rejections: {
    readonly count: number;
    readonly answers: number;
    readonly firstAt: number;
    readonly lastAt: number;
  };
}

export interface ObservedAnswer {
  readonly sign: LoadSign;
  readonly now: number;
  readonly startedAt: number;
  /** How long the service asked for silence. */
  readonly retryAfterMs: number;
}

const NEVER = Number.NEGATIVE_INFINITY;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** `maxPerSecond`: 0 if none is configured. */
export function createPace(maxAtOnce: number, maxPerSecond: number): PaceState {
  return {
    maxAtOnce,
    maxPerSecond: maxPerSecond > 0 ? maxPerSecond : UNLIMITED,
    startSuccesses: 0,
    inFlight: 0,
    limit: undefined,
    experiment: undefined,
    unrelated: {},
    counts: NO_ANSWERS,
    changedAt: NEVER,
    accepted: NO_REQUESTS,
    inWindow: NO_REQUESTS,
    lastStartAt: NEVER,
    nextStartAt: NEVER,
    unheardUntil: undefined,
    pausedUntil: NEVER,
    undelayedStarts: 0,
    rejections: { count: 0, answers: 0, firstAt: NEVER, lastAt: NEVER },
  };
}

/** How many requests may be in flight and start per second (infinite: any number), and when the next one may start. */
export function decide(state: PaceState): { atOnce: number; perSecond: number; startAt: number } {
  const { maxAtOnce, maxPerSecond, limit, experiment, startSuccesses = UNLIMITED } = state;
  const unit = experiment?.unit ?? limit?.unit;
  const speed = experiment?.speed ?? (limit ? speedOf(limit) : UNLIMITED);
  const atOnce = unit === "at_once" ? Math.round(speed) : Math.max(START_AT_ONCE, startSuccesses - 1);
  return {
    atOnce: Math.min(maxAtOnce, Math.max(1, atOnce)),
    perSecond: unit === "per_second" ? Math.min(maxPerSecond, speed) : maxPerSecond,
    startAt: Math.max(state.nextStartAt, state.pausedUntil, state.unheardUntil ?? NEVER),
  };
}

/** A request starts. `hadToWait`: the pace delayed it. `inFlight`: with this one. */
export function recordStart(
  previous: PaceState,
  { now, hadToWait, inFlight }: { now: number; hadToWait: boolean; inFlight: number },
): PaceState {
  const { perSecond } = decide(previous);
  const isAfterBreak = inFlight === 1 && !hadToWait && now - previous.lastStartAt >= MEASURED_MS;
  const isUnheard = isAfterBreak || previous.unheardUntil !== undefined;
  // Two that hang hold the others up for a second, not for a minute.
  const unheardUntil = inFlight >= START_AT_ONCE ? now + MEASURED_MS : NEVER;
  const before = { ...previous, unheardUntil: isUnheard ? unheardUntil : undefined };
  const undelayedStarts = hadToWait ? 0 : before.undelayedStarts + 1;
  if (perSecond === UNLIMITED) return { ...before, lastStartAt: now, undelayedStarts, inFlight };
  const interval = 1000 / perSecond;
  const catchUpMs = hadToWait ? Math.min(interval, MAX_CATCH_UP_MS) : 0;
  const nextStartAt = Math.max(before.nextStartAt, now - catchUpMs) + interval;
  const state = { ...before, lastStartAt: now, nextStartAt, undelayedStarts, inFlight };
  const { limit } = state;
  if (limit?.unit !== "per_second" || state.experiment) return state;
  const isUsed = hadToWait && state.rejections.count === 0;
  const growthMs = limit.growthMs + (isUsed ? Math.min(now - before.lastStartAt, MEASURED_MS) : 0);
  const isUnused = undelayedStarts >= MANY && growthMs > recoveryMs(limit);
  return {
    ...state,
    limit: isUnused || perSecond >= state.maxPerSecond ? undefined : { ...limit, growthMs },
  };
}

export function observe(before: PaceState, answer: ObservedAnswer): PaceState {
  const { sign, startedAt } = answer;
  const successes = sign === "success" ? (before.startSuccesses ?? UNLIMITED) + 1 : UNLIMITED;
  const started = {
    ...before,
    startSuccesses: successes <= before.maxAtOnce ? successes : undefined,
    unheardUntil: sign === "success" || before.unheardUntil === undefined ? undefined : NEVER,
  };
  const state = sign === "rejected" ? hold(started, answer) : measure(started, answer);
  if (startedAt <= before.changedAt) return state;
  const { limit, experiment } = state;
  if (experiment) return continueExperiment(state, experiment, answer);
  // Further rejections in a row say no more about a known limit than the first; that the third is one, too, does.
  const { count } = state.rejections;
  if (sign === "rejected" && limit && count > 1 && count !== MANY_IN_A_ROW) return state;
  const counted = { ...state, counts: addAnswer(state.counts, sign) };
  if (sign === "success") return limit?.unit === "at_once" ? growAtOnce(counted, limit, answer) : counted;
  if (isIgnored(counted, sign, answer.now)) return counted;
  const slowed = limit?.sign === sign ? slowDown(counted, limit, answer) : counted;
  return startExperimentIfNeeded(slowed, sign, answer);
}

/** A rejection is followed by silence: as long as the service asks for, and twice as long as after the one before. */
function hold(state: PaceState, { now, startedAt, retryAfterMs }: ObservedAnswer): PaceState {
  const pausedUntil = Math.max(state.pausedUntil, now + retryAfterMs);
  const { count, firstAt, lastAt } = state.rejections;
  const answers = state.rejections.answers + 1;
  if (startedAt < lastAt) return { ...state, pausedUntil, rejections: { ...state.rejections, answers } };
  const holdMs = Math.max(1, 1000 / decide(state).perSecond) * 2 ** count;
  // If the window is known, its end is not missed by much.
  const maxMs = Math.min(MAX_HOLD_MS, Math.max(GROWTH_MS, silenceOf(state) / SAMPLE));
  const nextStartAt = Math.max(state.nextStartAt, now + Math.min(holdMs, maxMs));
  const rejections = { count: count + 1, answers, firstAt: count === 0 ? now : firstAt, lastAt: now };
  return { ...state, pausedUntil, nextStartAt, rejections };
}

/** Measures what is accepted. A 500 is, unless 500s are what limits the speed. */
function measure(state: PaceState, { sign, now, startedAt }: ObservedAnswer): PaceState {
  if (sign === "timeout" || sign === (state.experiment ?? state.limit)?.sign) return state;
  const measured = {
    ...state,
    rejections: { ...state.rejections, answers: 0 },
    accepted: countAccepted(state.accepted, now),
    inWindow:
      now - state.inWindow.since >= silenceOf(state)
        ? startPeriod(state.inWindow, now, 1)
        : { ...state.inWindow, count: state.inWindow.count + 1 },
  };
  const isSilenceOver = state.rejections.count > 0 && startedAt >= state.rejections.lastAt;
  return isSilenceOver ? endSilence(measured, now) : measured;
}

/** The longest silence after rejections; infinite before the first. */
function silenceOf({ limit, experiment }: PaceState): number {
  return (experiment ?? limit)?.silenceMs || UNLIMITED;
}

/** After a long silence the window of the limit is long too: what was accepted before it counts for the whole time. */
function endSilence(before: PaceState, now: number): PaceState {
  const { limit, experiment, rejections, inWindow } = before;
  const state = {
    ...before,
    rejections: { ...rejections, count: 0 },
    inWindow: startPeriod(inWindow, now, 0),
  };
  const silenceMs = now - rejections.firstAt;
  if (silenceMs < GROWTH_MS) return state;
  // No window is as long: that was an outage.
  if (silenceMs > 4 * MAX_HOLD_MS)
    return { ...state, experiment: undefined, limit: undefined, counts: NO_ANSWERS };
  const ms = now - inWindow.since + inWindow.before.ms;
  const count = inWindow.count + inWindow.before.count;
  const bound = <T extends SpeedLimit | Experiment>(each: T): T => {
    if (each.unit === "at_once") return each;
    const ceiling = Math.min(each.ceiling, Math.max(1000 / MAX_HOLD_MS, (count * 1000) / ms));
    return { ...each, ceiling, silenceMs: Math.max(silenceMs, each.silenceMs) };
  };
  return {
    ...state,
    accepted: { since: now, count: 1, before: { ms, count } },
    limit: limit && bound(limit),
    experiment: experiment && bound(experiment),
  };
}

/** Whether the speed was found not to cause these, and there are not twice as many since. */
function isIgnored({ unrelated, counts }: PaceState, sign: BadSign, now: number): boolean {
  const found = unrelated[sign];
  if (!found || now >= found.until) return false;
  return counts[sign] < SAMPLE || counts[sign] / totalOf(counts) < 2 * Math.max(found.share, 1 / SAMPLE);
}

/** Each success stands for its part of the time. A higher number at once must itself succeed before the next. */
function growAtOnce(state: PaceState, limit: SpeedLimit, answer: ObservedAnswer): PaceState {
  const { now, startedAt } = answer;
  const { inFlight } = state;
  const { atOnce } = decide(state);
  if (inFlight < atOnce) return state;
  const ms = now - startedAt;
  // The slower the answers, the more it costs if they time out again.
  const care = limit.sign === "timeout" ? Math.min(1, MEASURED_MS / ms) : 1;
  const growthMs = limit.growthMs + Math.min(ms / inFlight, (care * 2 * MEASURED_MS) / SAMPLE);
  const grown = { ...state, limit: { ...limit, growthMs } };
  const grownTo = decide(grown).atOnce;
  if (grownTo >= state.maxAtOnce) return { ...grown, limit: undefined };
  return grownTo > atOnce ? { ...grown, changedAt: now } : grown;
}

/** A bad answer at the ceiling confirms it; one below it lowers it a little, and is a reason for an experiment. */
function slowDown(state: PaceState, limit: SpeedLimit, { now, retryAfterMs }: ObservedAnswer): PaceState {
  const speed = speedOf(limit);
  const isConfirmed = limit.growthMs >= recoveryMs(limit) / 2;
  const { since, count } = state.inWindow;
  // A bucket fills up in each pause: it accepts as many as in the whole time, with the pause.
  const isRefilled = retryAfterMs > 0 && !isConfirmed;
  const perSecond = isRefilled
    ? (count * 1000) / (now + retryAfterMs - since)
    : acceptedPerSecond(state.accepted, now);
  const minimum = Math.max(1000 / MAX_HOLD_MS, isConfirmed ? 0 : RESTART_SHARE ** 2 * limit.ceiling);
  const ceiling =
    limit.unit === "at_once"
      ? Math.max(1, Math.round(speed) - 1)
      : Math.min(speed, Math.max(perSecond, minimum));
  return {
    ...state,
    limit: {
      ...limit,
      ceiling,
      growthMs: 0,
      early: isConfirmed ? 0 : limit.early + 1,
      confirmed: isConfirmed ? ceiling : limit.confirmed,
    },
    counts: isConfirmed || limit.early === 0 ? NO_ANSWERS : state.counts,
    changedAt: now,
  };
}

function startExperimentIfNeeded(
  state: PaceState,
  sign: BadSign,
  { now, retryAfterMs }: ObservedAnswer,
): PaceState {
  const { limit, counts, inFlight } = state;
  const isKnown = limit?.sign === sign;
  const share = counts[sign] / totalOf(counts);
  // The pause that a 429 asks for is enough, unless many do, and those in flight together.
  const isPaused = retryAfterMs > 0;
  const isCluster = state.rejections.answers >= SAMPLE / 2 && share >= REMAINING_SHARE;
  const isMuch = counts[sign] >= SAMPLE && (isPaused ? isCluster : share >= 1 / SAMPLE);
  const isInARow = sign === "rejected" && state.rejections.count >= (isPaused ? SAMPLE : MANY_IN_A_ROW);
  // Fewer than one a second cannot be too many: that is the demand, not the limit.
  const isFast = sign !== "rejected" || acceptedPerSecond(state.accepted, now) >= 1;
  const isExcess = isKnown ? limit.early >= SAMPLE : (isMuch && isFast) || isInARow;
  if (!isExcess) return state;
  const unit = isKnown ? limit.unit : sign === "rejected" ? "per_second" : "at_once";
  const accepted = sign === "timeout" ? inFlight : Math.max(1, inFlight * (1 - share));
  const ceiling = unit === "per_second" ? Math.max(1, acceptedPerSecond(state.accepted, now)) : accepted;
  const before = limit?.confirmed === undefined ? undefined : { ...limit, ceiling: limit.confirmed };
  const silenceMs = limit?.silenceMs ?? 0;
  const experiment = {
    unit,
    sign,
    share,
    ceiling,
    silenceMs,
    isRepeated: false,
    before,
    since: now,
  } as const;
  return tryHalf(state, experiment, now);
}

function tryHalf(
  state: PaceState,
  experiment: Omit<Experiment, "speed" | "answers" | "bad" | "hasAccepted">,
  now: number,
): PaceState {
  const ceiling = Math.max(experiment.ceiling, 2000 / MAX_HOLD_MS);
  return {
    ...state,
    experiment: { ...experiment, ceiling, speed: ceiling / 2, answers: 0, bad: 0, hasAccepted: false },
    counts: NO_ANSWERS,
    changedAt: now,
    nextStartAt: experiment.unit === "per_second" ? now + 2000 / ceiling : state.nextStartAt,
    rejections: { ...state.rejections, count: 0 },
  };
}

function continueExperiment(
  state: PaceState,
  experiment: Experiment,
  { sign, now }: ObservedAnswer,
): PaceState {
  const { unit, share, sign: badSign } = experiment;
  const isBad = sign === badSign;
  if (!experiment.hasAccepted && badSign !== "failure") {
    // The window of a limit has to end first, and requests that hang have to be worked off.
    if (isBad && unit === "per_second") return state;
    const slower = { ceiling: experiment.speed, speed: Math.max(1, experiment.speed / 2) };
    if (isBad) return { ...state, experiment: { ...experiment, ...slower }, changedAt: now };
    const ceiling =
      unit === "at_once"
        ? experiment.ceiling
        : Math.min(experiment.ceiling, acceptedPerSecond(state.accepted, now));
    return { ...state, experiment: { ...experiment, ceiling, speed: ceiling / 2, hasAccepted: true } };
  }
  const answers = experiment.answers + weightOf(sign);
  const bad = experiment.bad + (isBad ? weightOf(sign) : 0);
  if (answers <= SAMPLE || answers < Math.min(MANY, 1 / (REMAINING_SHARE * share)))
    return { ...state, experiment: { ...experiment, answers, bad, hasAccepted: true } };
  const nowShare = bad / answers;
  if (nowShare < REMAINING_SHARE * share) return findLimit(state, experiment, now);
  const hasRisen = nowShare > Math.min(2 * share, (1 + share) / 2);
  // The measured speed was too high, or the limit is a rate although it does not answer 429: try once more. The latter
  // takes seconds, so it must show twice.
  const isRate = unit === "per_second";
  const isDoubtful = nowShare < 1 && nowShare >= (isRate ? REMAINING_SHARE : 1 - REMAINING_SHARE);
  const isTriedAgain = isDoubtful && !experiment.isRepeated && (isRate || state.unrelated[badSign]);
  if (hasRisen || isTriedAgain) {
    const accepted = ((answers - bad) * 1000) / (now - state.changedAt);
    const next =
      hasRisen && unit === "at_once"
        ? { ...experiment, ceiling: experiment.speed }
        : {
            ...experiment,
            unit: "per_second" as const,
            ceiling: hasRisen && badSign === "rejected" ? accepted : Math.max(1, accepted),
            isRepeated: !hasRisen,
          };
    return tryHalf(state, { ...next, share: nowShare }, now);
  }
  return ignore(state, experiment, nowShare, isDoubtful ? IGNORED_MS / 4 : IGNORED_MS, now);
}

/** The speed was the cause. */
function findLimit(state: PaceState, experiment: Experiment, now: number): PaceState {
  const { unit, sign, ceiling, silenceMs, since } = experiment;
  const found = state.unrelated[sign];
  const isRate = unit === "per_second";
  return {
    ...state,
    experiment: undefined,
    limit: { unit, sign, ceiling, silenceMs, since, confirmed: undefined, growthMs: 0, early: 0 },
    unrelated: found ? { ...state.unrelated, [sign]: { ...found, until: now } } : state.unrelated,
    accepted: isRate ? { since: now, count: 0, before: { ms: MEASURED_MS, count: ceiling } } : state.accepted,
    counts: NO_ANSWERS,
    changedAt: now,
  };
}

/** The speed was not the cause: it is restored. */
function ignore(
  state: PaceState,
  { sign, before, since }: Experiment,
  share: number,
  firstPeriodMs: number,
  now: number,
): PaceState {
  const { periodMs } = state.unrelated[sign] ?? { periodMs: firstPeriodMs };
  const unrelated = {
    share,
    since,
    until: now + periodMs,
    periodMs: Math.min(SAMPLE * IGNORED_MS, 2 * periodMs),
  };
  return {
    ...state,
    experiment: undefined,
    limit: before && { ...before, growthMs: recoveryMs(before) },
    unrelated: { ...state.unrelated, [sign]: unrelated },
    counts: NO_ANSWERS,
    changedAt: now,
    nextStartAt: now,
  };
}
