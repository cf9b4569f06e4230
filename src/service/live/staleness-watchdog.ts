import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type Subscription, subscriptionKey } from "./messages.ts";

/** A tick may be late by one period and lost once without anybody being alarmed. */
const PERIODS = 2.5;
const FALLBACK_MS = 600_000;
const ANSWER_DEADLINE_MS = 30_000;
/** Of all that are silent, REST is asked about so many at a time. */
const MOST_ASKED = 8;

/** What to do about a subscription whose ticks have stopped while the market has not. */
export type Remedy = "resubscribe" | "reconnect" | "poll";

/**
 * In this order; the last one stays until ticks come again, since one mute stream must not cost the others their
 * connection. Where all are mute there is nothing to lose, and a new connection is tried from time to time.
 */
const remedies: readonly Remedy[] = ["resubscribe", "reconnect", "poll"];

/** REST knows no newer tick than the one heard last: the market is quiet, and so may we be. */
export type IsQuiet = (subscription: Subscription, lastTick: Micros | undefined) => Promise<boolean>;

/** A subscription whose ticks have stopped while the market has not. */
export interface Silent {
  readonly subscription: Subscription;
  readonly remedy: Remedy;
  readonly missingSince: Micros | undefined;
}

interface Watched {
  readonly subscription: Subscription;
  /** On the monotonic clock; infinite while it waits to be subscribed: no ticks are due before. */
  lookAgainAt: number;
  lastTick: Micros | undefined;
  /** REST knew of no newer tick by then: nothing was missed, however long ago the last one came. */
  quietUntil: Micros | undefined;
  remediesTried: number;
  /** It was silent for too long, and REST could not say whether its market was. */
  isUnjudged: boolean;
}

interface CadenceOptions {
  readonly clock: Clock;
  readonly refreshSeconds: number;
  readonly isQuiet: IsQuiet;
  readonly serviceNow: () => Micros;
  readonly onSilent: (silent: readonly Silent[]) => void;
  /**
   * Ticks are missing, though nobody has asked REST about them: they come after a long pause, or nothing comes. Up to
   * `missingSince` none are; undefined: since it was subscribed.
   */
  readonly onLate: (subscription: Subscription, missingSince: Micros | undefined) => void;
  /** Ticks have come back after a remedy, or after a pause. */
  readonly onRecovered: (subscription: Subscription) => void;
}

/** A socket that answers every PING and sends no ticks is dead all the same: judged by the ticks of each subscription. */
export class CadenceWatch {
  readonly #options: CadenceOptions;
  readonly #periodMs: number;
  readonly #patienceMs: number;
  readonly #watched = new Map<string, Watched>();
  #asking = false;
  /** When any tick came, on the monotonic clock. */
  #lastTickAt = Number.NEGATIVE_INFINITY;
  #reconnectedAt = Number.NEGATIVE_INFINITY;

  constructor(options: CadenceOptions) {
    this.#options = options;
    this.#periodMs = options.refreshSeconds * 1000;
    this.#patienceMs = PERIODS * this.#periodMs;
  }

  /** The subscription is confirmed: ticks are due from now on. */
  expect(subscription: Subscription): void {
    const key = subscriptionKey(subscription);
    const lookAgainAt = this.#options.clock.monotonic() + this.#patienceMs;
    const known = this.#watched.get(key);
    if (known) {
      const isWaiting = known.lookAgainAt === Number.POSITIVE_INFINITY;
      known.lookAgainAt = isWaiting ? lookAgainAt : Math.max(known.lookAgainAt, lookAgainAt);
    } else
      this.#watched.set(key, {
        subscription,
        lookAgainAt,
        lastTick: undefined,
        quietUntil: undefined,
        remediesTried: 0,
        isUnjudged: false,
      });
  }

  /** It is being asked for again: from now on its silence counts. */
  asked(subscription: Subscription): void {
    const known = this.#watched.get(subscriptionKey(subscription));
    if (known?.lookAgainAt === Number.POSITIVE_INFINITY)
      known.lookAgainAt = this.#options.clock.monotonic() + this.#patienceMs;
  }

  /** The connection is gone: no ticks are due until they have been asked for over another. */
  lost(): void {
    const now = this.#options.clock.monotonic();
    for (const watched of this.#watched.values()) {
      // It was late already, and nobody has looked: its next tick tells.
      if (watched.lookAgainAt <= now) watched.isUnjudged = true;
      watched.lookAgainAt = Number.POSITIVE_INFINITY;
    }
  }

  /** Nobody waits for its ticks any more. */
  forget(subscription: Subscription): void {
    this.#watched.delete(subscriptionKey(subscription));
  }

  tick(keys: readonly string[]): void {
    const now = this.#options.clock.monotonic();
    this.#lastTickAt = now;
    for (const key of keys) {
      const watched = this.#watched.get(key);
      if (!watched) continue;
      // So late that it should have been looked after, and was not yet: what was missed is missed all the same.
      if ((watched.lookAgainAt <= now || watched.isUnjudged) && watched.remediesTried === 0) {
        this.#options.onLate(watched.subscription, missingSince(watched));
        watched.remediesTried = 1;
      }
      watched.isUnjudged = false;
      watched.lookAgainAt = now + this.#patienceMs;
      watched.lastTick = this.#options.serviceNow();
      if (watched.remediesTried === 0) continue;
      watched.remediesTried = 0;
      this.#options.onRecovered(watched.subscription);
    }
  }

  /**
   * Looks after all that have been silent for too long. REST is asked about a few of them, those that have been so for longest: at
   * a standstill of everything it is not asked about each. Where it has heard what we have not, all that are as silent count as
   * deaf at once: thousands that were asked about one by one would be without ticks for an hour.
   */
  async look(): Promise<void> {
    if (this.#asking) return;
    const begun = this.#options.clock.monotonic();
    const due = [...this.#watched.values()].filter(({ lookAgainAt }) => lookAgainAt <= begun);
    if (due.length === 0) return;
    const asked = due.toSorted((a, b) => a.lookAgainAt - b.lookAgainAt).slice(0, MOST_ASKED);
    this.#asking = true;
    const verdicts = new Map(
      await Promise.all(asked.map(async (watched) => [watched, await this.#isQuiet(watched)] as const)),
    );
    this.#asking = false;
    const now = this.#options.clock.monotonic();
    // Not those of which a tick came, or which a new connection asks for, while REST was asked.
    const silent = due.filter(
      (watched) =>
        watched.lookAgainAt <= now && this.#watched.get(subscriptionKey(watched.subscription)) === watched,
    );
    const isDeaf = silent.some((watched) => verdicts.get(watched) === false);
    const deaf: Silent[] = [];
    for (const watched of silent) {
      const wasAsked = verdicts.has(watched);
      if (!wasAsked && !isDeaf) continue;
      const verdict = wasAsked ? verdicts.get(watched) : false;
      watched.lookAgainAt = now + this.#patienceMs;
      // Nobody could say whether the market was quiet or we were deaf: when ticks come again, they come late.
      watched.isUnjudged = verdict === undefined;
      if (verdict === false) deaf.push(this.#remedy(watched, now));
    }
    if (deaf.length === 0) return;
    this.#options.onSilent(deaf);
    if (now - this.#lastTickAt >= this.#patienceMs) this.#doubtAll();
  }

  #remedy(watched: Watched, now: number): Silent {
    const last = watched.remediesTried >= remedies.length - 1;
    const isAllMute = now - this.#lastTickAt > FALLBACK_MS;
    const wanted = last && isAllMute ? "reconnect" : (remedies[watched.remediesTried] ?? "poll");
    // Many that fall silent together do not tear down one connection after the other.
    const isTried = wanted === "reconnect" && now - this.#reconnectedAt < FALLBACK_MS;
    const remedy = isTried ? "poll" : wanted;
    if (remedy === "reconnect") this.#reconnectedAt = now;
    if (remedy === "resubscribe") watched.lookAgainAt = Number.POSITIVE_INFINITY;
    if (last) watched.lookAgainAt += FALLBACK_MS;
    watched.remediesTried++;
    return { subscription: watched.subscription, remedy, missingSince: missingSince(watched) };
  }

  /** Nothing at all is heard while the market goes on: REST need not be asked about each of them to know it. */
  #doubtAll(): void {
    for (const watched of this.#watched.values()) {
      if (watched.remediesTried > 0) continue;
      watched.remediesTried = 1;
      this.#options.onLate(watched.subscription, missingSince(watched));
    }
  }

  /** Undefined: REST could not say, or not in time. Then nothing is torn down on a suspicion. */
  async #isQuiet(watched: Watched): Promise<boolean | undefined> {
    const { subscription, lastTick } = watched;
    // REST, too, may be a period behind.
    const knownBy = this.#options.serviceNow() - this.#periodMs * MICROS_PER_MS;
    const answered = new AbortController();
    const tooLate = this.#options.clock.sleep(ANSWER_DEADLINE_MS, answered.signal).catch(() => undefined);
    try {
      const verdict =
        (await Promise.race([this.#options.isQuiet(subscription, lastTick), tooLate])) ?? undefined;
      if (verdict) watched.quietUntil = knownBy;
      return verdict;
    } catch {
      return undefined;
    } finally {
      answered.abort();
    }
  }
}

/** Up to then nothing was missed, as far as anybody knows. */
function missingSince({ lastTick, quietUntil }: Watched): Micros | undefined {
  if (lastTick === undefined || quietUntil === undefined) return lastTick ?? quietUntil;
  return Math.max(lastTick, quietUntil);
}
