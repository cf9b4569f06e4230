import type { Skip } from "../../ingest/commit/live-coverage.ts";
import { historyStreams, streamTable } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Random } from "../../runtime/backoff.ts";
import { Alarm, loop } from "../../runtime/loop.ts";
import { type FollowedHead, followedHeads } from "../../warehouse/coverage/gaps.ts";
import { isUnserved } from "../../warehouse/coverage/not-found.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type Intake, serviceNow } from "../context/context.ts";
import { type Problem, problemOf } from "../context/error-policy.ts";
import { Complaints } from "../context/problem-log.ts";
import { pauseBefore } from "../context/retry.ts";
import { Denials } from "../history/confirm-not-found.ts";
import { fillSlice } from "../history/fill-gaps.ts";
import { lineKey, planHead } from "../history/gap-planner.ts";
import { settleDelay } from "../selection/targets.ts";
import { HeadDoubts, headDue, isHeadShort, pollsASecond } from "./head-schedule.ts";
import type { LiveStanding } from "./subscription-coverage.ts";

export interface HeadKeeping {
  readonly reader: Connection;
  readonly random: Random;
  readonly refreshSeconds: number;
  /** Requests in flight, at most. */
  readonly concurrency: number;
  /** The ceiling on all requests; 0: none. */
  readonly maxRequestsPerSecond: number;
  readonly standing: LiveStanding;
  readonly problems: (problems: readonly Problem[]) => void;
  /** A line could not be looked after, and is tried again. Must not throw. */
  readonly failed: (error: unknown) => void;
  /** The service has an index again that it had not: more than the head is open. */
  readonly reopened: () => void;
  /** Every head that was due has been asked for once. */
  readonly caughtUp: () => void;
}

interface Entry {
  head: FollowedHead;
  /** By the service's clock. */
  due: Micros;
  notBefore: Micros;
  failures: number;
  isUnderWay: boolean;
  /** It has been asked for at least once. */
  hasBegun: boolean;
  readonly doubts: HeadDoubts;
}

/** What is forbidden is asked for again so often; the way to the service itself asks once an hour. */
const FORBIDDEN_PAUSE = 600 * MICROS_PER_SECOND;
const LONGEST_SLEEP_MS = 60_000;
/** Thousands of subscriptions may be confirmed in a row: the heads are not all read again for each. */
const RELOAD_PAUSE_MS = 250;
/** A doubt can wait, since the service needs longer to be asked about it; to sort thousands of heads takes its time. */
const DOUBT_PAUSE_MS = 5_000;

/**
 * Asks REST about the head of each followed line when it is due: what the live feed has missed at once, what it has heard
 * once an hour. Lines are independent of each other: one that fails or hangs keeps no other waiting.
 */
export class HeadKeeper {
  readonly #intake: Intake;
  readonly #keeping: HeadKeeping;
  readonly #entries = new Map<string, Entry>();
  readonly #complaints: Complaints;
  readonly #denials: Denials;
  readonly #alarm = new Alarm();
  readonly #underWay = new Set<Promise<void>>();
  /** By the moment that they are due; those under way are left out. */
  #queue: Entry[] = [];
  #polled = 0;
  #isStale = true;
  /** The indices whose ticks are followed, by type and id. */
  readonly #indices = new Map<string, Entry>();
  /** On the monotonic clock; undefined: nothing is in doubt that was not before. */
  #sortFrom: number | undefined;
  #doubted = 0;
  /** On the monotonic clock. */
  #reloadFrom = 0;
  #hasCaughtUp = false;
  #hurriedAt: Micros = 0;

  constructor(intake: Intake, keeping: HeadKeeping) {
    this.#intake = intake;
    this.#keeping = keeping;
    this.#complaints = new Complaints(keeping.problems);
    this.#denials = new Denials(keeping.reader);
  }

  /** The ledger, the selection or what is heard live has changed. */
  lookAgain(): void {
    this.#isStale = true;
    this.#alarm.ring();
  }

  /** What is due once a day is to be asked for now rather than in the course of the hour. */
  hurry(): void {
    this.#hurriedAt = serviceNow(this.#intake);
    this.lookAgain();
  }

  /** The live feed seems to have left ticks out. */
  doubt(skips: readonly Skip[]): void {
    for (const skip of skips) this.#indices.get(indexKey(skip))?.doubts.add(skip);
    if (skips.length === 0 || this.#sortFrom !== undefined) return;
    this.#sortFrom = this.#intake.clock.monotonic() + DOUBT_PAUSE_MS;
    this.#alarm.ring();
  }

  async run(): Promise<void> {
    const { clock, signal } = this.#intake;
    await loop({
      clock,
      signal,
      everyMs: () => this.#idleMs(),
      work: async () => this.#dispatch(),
      failed: (error) => this.#keeping.failed(error),
      woken: (until) => this.#alarm.wait(until),
    });
    await Promise.allSettled(this.#underWay);
  }

  #dispatch(): void {
    const { clock } = this.#intake;
    if (this.#isStale && clock.monotonic() >= this.#reloadFrom) {
      this.#reload();
      this.#reloadFrom = clock.monotonic() + RELOAD_PAUSE_MS;
    } else if (clock.monotonic() >= (this.#sortFrom ?? Number.POSITIVE_INFINITY)) this.#sort();
    const most = Math.ceil(this.#keeping.concurrency * 1.5);
    const now = serviceNow(this.#intake);
    while (this.#underWay.size < most && (this.#queue[0]?.due ?? Number.POSITIVE_INFINITY) <= now) {
      const next = this.#queue.shift();
      if (next) this.#begin(next);
    }
    if (this.#hasCaughtUp || this.#isStale) return;
    // Once each is enough: where polls fall due faster than they are answered, history would wait for ever.
    for (const { due, hasBegun } of this.#entries.values()) if (!hasBegun && due <= now) return;
    this.#hasCaughtUp = true;
    this.#keeping.caughtUp();
  }

  /** Until the next line is due; with all hands full, until one of them is free and rings. */
  #idleMs(): number {
    const now = serviceNow(this.#intake);
    const due = this.#queue[0]?.due ?? Number.POSITIVE_INFINITY;
    const wait = due <= now ? LONGEST_SLEEP_MS : (due - now) / MICROS_PER_MS;
    const reload = this.#isStale ? this.#reloadFrom : Number.POSITIVE_INFINITY;
    const sort =
      Math.min(reload, this.#sortFrom ?? Number.POSITIVE_INFINITY) - this.#intake.clock.monotonic();
    return Math.max(0, Math.min(LONGEST_SLEEP_MS, wait, sort));
  }

  #begin(entry: Entry): void {
    entry.isUnderWay = true;
    entry.hasBegun = true;
    const work = this.#fill(entry)
      .catch((error: unknown) => {
        if (this.#intake.signal.aborted) return;
        this.#backOff(entry);
        this.#keeping.failed(error);
      })
      .finally(() => {
        this.#underWay.delete(work);
        entry.isUnderWay = false;
        this.#requeue(entry);
        this.#alarm.ring();
      });
    this.#underWay.add(work);
  }

  async #fill(entry: Entry): Promise<void> {
    const { ingest, tally, signal } = this.#intake;
    const { reader, refreshSeconds, reopened } = this.#keeping;
    const now = serviceNow(this.#intake);
    const { line, indexType, name } = entry.head;
    const { walks, rereads, day } = planHead(reader, now, refreshSeconds, line, entry.failures === 0);
    const servedAgain = async () => {
      if (!isUnserved(reader, line)) return;
      await ingest.call("commitServedAgain", line, [], signal);
      reopened();
    };
    for (const walk of walks) {
      tally.of(line.stream).planned += walk.range.to - walk.range.from;
      const outcome = await fillSlice(this.#intake, walk, this.#denials, servedAgain);
      if (outcome.kind === "filled") {
        if (outcome.reopened) reopened();
        if (walk.hindrance !== null)
          await ingest.call("commitHindrance", { lines: [line], reason: null }, [], signal);
        continue;
      }
      this.#backOff(entry, outcome.kind === "forbidden" ? FORBIDDEN_PAUSE : undefined);
      this.#complaints.raise(lineKey(line), problemOf(line.stream, `${indexType} ${name}`, outcome.error));
      if (outcome.kind === "forbidden" && walk.hindrance !== "forbidden")
        await ingest.call("commitHindrance", { lines: [line], reason: "forbidden" }, [], signal);
      return;
    }
    entry.failures = 0;
    // Where REST lags behind, it is not asked for more often than it can have news.
    const [head] = followedHeads(reader, line.stream, line.series);
    if (head) entry.doubts.answer(reader, head);
    const isNews = (head?.from ?? 0) > entry.head.from;
    entry.notBefore = isNews ? 0 : now + refreshSeconds * MICROS_PER_SECOND;
    this.#complaints.settle(lineKey(line));
    if (rereads.size > 0) await ingest.call("commitReread", { line, day }, [], signal);
  }

  #backOff(entry: Entry, pause?: Micros): void {
    const own = pauseBefore(entry.failures++, this.#keeping.random) * MICROS_PER_MS;
    entry.notBefore = serviceNow(this.#intake) + (pause ?? own);
  }

  /** Reads all heads anew: lines may have come and gone, and others may have filled them. */
  #reload(): void {
    this.#isStale = false;
    const { reader, standing, refreshSeconds } = this.#keeping;
    const claim = serviceNow(this.#intake) - settleDelay(refreshSeconds);
    const heads = historyStreams.flatMap((stream) => followedHeads(reader, stream));
    const kept = heads.filter((head) =>
      isHeadShort(head, Math.floor(claim / MICROS_PER_DAY) * MICROS_PER_DAY),
    );
    const before = new Map(this.#entries);
    this.#entries.clear();
    this.#indices.clear();
    this.#polled = 0;
    for (const head of kept) {
      const { indexType, indexId, line } = head;
      const entry = before.get(lineKey(line)) ?? newEntry(head);
      entry.head = head;
      this.#entries.set(lineKey(line), entry);
      if (streamTable[line.stream].event === null) continue;
      this.#indices.set(indexKey(head), entry);
      const isHeard = standing.sinceOfIndex(indexType, indexId) !== undefined;
      if (!isHeard && !head.isUnserved) this.#polled++;
    }
    this.#sort();
  }

  #sort(): void {
    this.#sortFrom = undefined;
    this.#doubted = 0;
    for (const { doubts } of this.#indices.values()) if (doubts.any) this.#doubted++;
    this.#queue = [...this.#entries.values()].filter(({ isUnderWay }) => !isUnderWay);
    for (const entry of this.#queue) this.#judge(entry);
    this.#queue.sort((a, b) => a.due - b.due);
  }

  /** Puts a line that was just looked after back into its place. */
  #requeue(entry: Entry): void {
    const { reader } = this.#keeping;
    const { line } = entry.head;
    if (this.#intake.signal.aborted || this.#entries.get(lineKey(line)) !== entry) return;
    const [head] = followedHeads(reader, line.stream, line.series);
    if (!head) return;
    entry.head = head;
    this.#judge(entry);
    let [low, high] = [0, this.#queue.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#queue[middle] as Entry).due <= entry.due) low = middle + 1;
      else high = middle;
    }
    this.#queue.splice(low, 0, entry);
  }

  #judge(entry: Entry): void {
    const { standing, refreshSeconds, maxRequestsPerSecond } = this.#keeping;
    const { head, doubts } = entry;
    const since = standing.sinceOfIndex(head.indexType, head.indexId);
    const delay = settleDelay(refreshSeconds);
    const rules = {
      cadence: refreshSeconds * MICROS_PER_SECOND,
      settleDelay: delay,
      since,
      lines: this.#entries.size,
      polled: this.#polled,
      doubtedLines: this.#doubted,
      pollsASecond: pollsASecond(maxRequestsPerSecond),
      doubted: doubts.from(head, head.from + delay, since ?? Number.POSITIVE_INFINITY),
    };
    const hurried = headDue(head, { ...rules, isHurried: true });
    const due = hurried <= this.#hurriedAt ? hurried : headDue(head, rules);
    entry.due = Math.max(due, entry.notBefore);
  }
}

function newEntry(head: FollowedHead): Entry {
  const doubts = new HeadDoubts();
  return { head, due: 0, notBefore: 0, failures: 0, isUnderWay: false, hasBegun: false, doubts };
}

function indexKey({ indexType, indexId }: { readonly indexType: string; readonly indexId: string }): string {
  return `${indexType} ${indexId}`;
}
