import type { Skip } from "../../ingest/commit/live-coverage.ts";
import { isDaily } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { FollowedHead } from "../../warehouse/coverage/gaps.ts";
import { storedCount } from "../../warehouse/rows/row-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { BARS_IN_HEAD } from "../history/gap-planner.ts";

/** What decides when REST is asked about the head of a line. All moments are by the service's clock. */
export interface DueRules {
  readonly cadence: Micros;
  readonly settleDelay: Micros;
  /** Since when the live feed has heard all ticks of the line; undefined: it does not. */
  readonly since: Micros | undefined;
  /** How many lines are followed, and how many of them are not heard live. */
  readonly lines: number;
  readonly polled: number;
  /** How many heads may be asked for in a second. */
  readonly pollsASecond: number;
  /** From when on REST may be asked whether the live feed has left a tick out; undefined: it seems not to have. */
  readonly doubted?: Micros | undefined;
  /** Of how many lines it seems to have. */
  readonly doubtedLines?: number;
  /** What is due once a day is asked for without being spread over the hour: the nightly job wants it. */
  readonly isHurried?: boolean;
}

const HOUR = 3600 * MICROS_PER_SECOND;
/** Requests a second, at most, for polls and for second looks: what the budget of a large selection allows. */
const POLLS_A_SECOND = 5;

/** The same under a ceiling on all requests (0: none): half of it is left to history and to what is polled at cadence. */
export function pollsASecond(maxRequestsPerSecond: number): number {
  return maxRequestsPerSecond === 0 ? POLLS_A_SECOND : Math.min(POLLS_A_SECOND, maxRequestsPerSecond / 2);
}

/**
 * When the head of a line is due to be asked for.
 * Heard live and confirmed since: once an hour, each line at a moment of its own. Something was missed: at once, and
 * once more when the service can add nothing to it. A tick seems to have been left out: when the service can add nothing,
 * all such lines in turn. Not heard live: at the service's cadence, or as often as the budget allows, whoever has waited
 * longest first.
 */
export function headDue(head: FollowedHead, rules: DueRules): Micros {
  const { cadence, settleDelay, since, lines, polled, doubted, doubtedLines = 1 } = rules;
  /** How long it takes to ask for so many lines. */
  const roundOf = (count: number) => (count / rules.pollsASecond) * MICROS_PER_SECOND;
  const phase = phaseOf(head);
  const nightly = rules.isHurried ? 0 : phase;
  if (isDaily(head.line.stream)) return barsDue(head, settleDelay, nightly);
  // The claim of whoever asked last ended where the head begins.
  const askedAt = head.from + settleDelay;
  if (head.isUnserved) return nextDay(askedAt) + settleDelay + nightly * HOUR;
  if (since === undefined) return askedAt + Math.max(cadence, roundOf(polled));
  if (askedAt < since) return since;
  if (head.from < since) return since + settleDelay + phase * Math.min(HOUR, roundOf(lines));
  const earliest = askedAt + HOUR / 2;
  const hourly = (Math.ceil(earliest / HOUR - phase) + phase) * HOUR;
  if (doubted === undefined) return hourly;
  // A round after the last question on average, and all in turn even where they were all asked for at once.
  const round = roundOf(doubtedLines);
  return Math.min(hourly, Math.max(doubted + settleDelay + phase * round, askedAt + (phase + 0.5) * round));
}

/** A bar is asked for once its day is closed, spread over the hour that follows; one that is overdue, at once. */
function barsDue(head: FollowedHead, settleDelay: Micros, phase: number): Micros {
  const closed = nextDay(head.from) + settleDelay;
  return closed + phase * HOUR;
}

/** Whether the head's hole is short enough to be filled by one page beside everything else. */
export function isHeadShort(head: FollowedHead, claim: Micros): boolean {
  return !isDaily(head.line.stream) || (!head.isNew && claim - head.from <= BARS_IN_HEAD * MICROS_PER_DAY);
}

function nextDay(moment: Micros): Micros {
  return (Math.floor(moment / MICROS_PER_DAY) + 1) * MICROS_PER_DAY;
}

/** In [0, 1), evenly spread over all lines and the same for a line at every start (FNV-1a). */
function phaseOf({ line, indexType, indexId }: FollowedHead): number {
  let hash = 0x811c9dc5;
  for (const char of `${line.stream} ${indexType} ${indexId}`) {
    hash ^= char.charCodeAt(0);
    hash = Math.imul(hash, 0x01000193);
  }
  // Its low bits follow the last characters too closely.
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 13;
  return (hash >>> 0) / 2 ** 32;
}

const MINUTE = 60 * MICROS_PER_SECOND;
/** After so many doubts in vain the hourly look comes first anyway. */
const MOST_IN_VAIN = 7;
/** Kept while REST does not answer: the oldest decides when it is asked, the newest how far it must answer. */
const MOST_KEPT = 8;

/**
 * The doubts about one line: steps between its live ticks that leave room for another. REST decides. A series that ticks
 * less often than the rest raises one with every tick: the more of them are in vain, the longer the next one waits.
 */
export class HeadDoubts {
  #skips: Skip[] = [];
  #inVain = 0;

  add(skip: Skip): void {
    this.#skips.splice(MOST_KEPT - 1, 1, skip);
  }

  get any(): boolean {
    return this.#skips.length > 0;
  }

  /**
   * From when on the oldest doubt is worth a question; undefined: there is none. `askedAt`: when REST was asked last;
   * `since`: what lies before was missed for another reason, and is asked for as such.
   */
  from(head: FollowedHead, askedAt: Micros, since: Micros): Micros | undefined {
    this.#skips = this.#skips.filter(({ after, at }) => at > head.from && after >= since);
    const [oldest] = this.#skips;
    if (!oldest) return undefined;
    return this.#inVain === 0 ? oldest.at : Math.max(oldest.at, askedAt + 2 ** (this.#inVain - 1) * MINUTE);
  }

  /** REST has told all up to `settledTo`: did it know of ticks that had been left out? */
  answer(reader: Connection, { line, from: settledTo }: FollowedHead): void {
    const answered = this.#skips.filter(({ at }) => at <= settledTo);
    this.#skips = this.#skips.filter(({ at }) => at > settledTo);
    if (answered.length === 0) this.#inVain >>= 1;
    else if (answered.some(({ after, at }) => storedCount(reader, line, { from: after + 1, to: at }) > 0))
      this.#inVain = 0;
    else this.#inVain = Math.min(MOST_IN_VAIN, this.#inVain + 1);
  }
}
