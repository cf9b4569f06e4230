import type { Micros } from "../model/instant.ts";
import type { Clock } from "../runtime/clock.ts";
import { type Subscription, subscriptionKey } from "./feed-messages.ts";

/** A tick may be late by one period and lost once without anybody being alarmed. */
const PERIODS = 2.5;
const FALLBACK_MS = 600_000;
const ANSWER_DEADLINE_MS = 30_000;

/** What to do about a subscription whose ticks have stopped while the market has not. */
export type Remedy = "resubscribe" | "reconnect" | "poll";

/** In this order; the last one stays until ticks come again, since one mute stream must not cost the others their connection. */
const remedies: readonly Remedy[] = ["resubscribe", "reconnect", "poll"];

/** REST knows no newer tick than the one heard last: the market is quiet, and so may we be. */
export type IsQuiet = (subscription: Subscription, lastTick: Micros | undefined) => Promise<boolean>;

interface Watched {
  readonly subscription: Subscription;
  /** On the monotonic clock. */
  lookAgainAt: number;
  lastTick: Micros | undefined;
  remediesTried: number;
}

interface CadenceOptions {
  readonly clock: Clock;
  readonly refreshSeconds: number;
  readonly isQuiet: IsQuiet;
  readonly serviceNow: () => Micros;
  readonly onSilent: (subscription: Subscription, remedy: Remedy) => void;
  /** Ticks have come back after the last remedy. */
  readonly onRecovered: (subscription: Subscription) => void;
}

/** A socket that answers every PING and sends no ticks is dead all the same: judged by the ticks of each subscription. */
export class CadenceWatch {
  readonly #options: CadenceOptions;
  readonly #patienceMs: number;
  readonly #watched = new Map<string, Watched>();
  #asking = false;

  constructor(options: CadenceOptions) {
    this.#options = options;
    this.#patienceMs = PERIODS * options.refreshSeconds * 1000;
  }

  /** The subscription is confirmed: ticks are due from now on. */
  expect(subscription: Subscription): void {
    const key = subscriptionKey(subscription);
    const lookAgainAt = this.#options.clock.monotonic() + this.#patienceMs;
    const known = this.#watched.get(key);
    if (known) known.lookAgainAt = Math.max(known.lookAgainAt, lookAgainAt);
    else this.#watched.set(key, { subscription, lookAgainAt, lastTick: undefined, remediesTried: 0 });
  }

  tick(keys: readonly string[]): void {
    for (const key of keys) {
      const watched = this.#watched.get(key);
      if (!watched) continue;
      watched.lookAgainAt = this.#options.clock.monotonic() + this.#patienceMs;
      watched.lastTick = this.#options.serviceNow();
      if (watched.remediesTried === 0) continue;
      if (watched.remediesTried >= remedies.length) this.#options.onRecovered(watched.subscription);
      watched.remediesTried = 0;
    }
  }

  /** Looks after the one that has been silent for longest: at a standstill of everything, REST is not asked for each. */
  async look(): Promise<void> {
    if (this.#asking) return;
    const now = this.#options.clock.monotonic();
    let silent: Watched | undefined;
    for (const watched of this.#watched.values())
      if (watched.lookAgainAt <= now && (!silent || watched.lookAgainAt < silent.lookAgainAt))
        silent = watched;
    if (!silent) return;
    this.#asking = true;
    const verdict = await this.#isQuiet(silent);
    this.#asking = false;
    // A tick came, or a new connection began, while REST was asked.
    if (silent.lookAgainAt > this.#options.clock.monotonic()) return;
    silent.lookAgainAt = this.#options.clock.monotonic() + this.#patienceMs;
    if (verdict !== false) return;
    const remedy = remedies[Math.min(silent.remediesTried, remedies.length - 1)] ?? "poll";
    if (remedy === "poll") silent.lookAgainAt += FALLBACK_MS;
    silent.remediesTried++;
    this.#options.onSilent(silent.subscription, remedy);
  }

  /** Undefined: REST could not say, or not in time. Then nothing is torn down on a suspicion. */
  async #isQuiet({ subscription, lastTick }: Watched): Promise<boolean | undefined> {
    const answered = new AbortController();
    const tooLate = this.#options.clock.sleep(ANSWER_DEADLINE_MS, answered.signal).catch(() => undefined);
    try {
      return (await Promise.race([this.#options.isQuiet(subscription, lastTick), tooLate])) ?? undefined;
    } catch {
      return undefined;
    } finally {
      answered.abort();
    }
  }
}
