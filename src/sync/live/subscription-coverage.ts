import type { ListeningChange, LiveExchange } from "../../ingest/commit/live-coverage.ts";
import type { Micros } from "../../model/time.ts";
import { type FeedMessage, type Subscription, subscriptionKey } from "../../service/live/messages.ts";
import type { LiveSpan } from "../../warehouse/coverage/live-spans.ts";
import type { LiveWishes } from "./desired-subscriptions.ts";

interface Heard {
  readonly subscription: Subscription;
  /** Its ticks have come without a break since then; undefined: they do not, or nobody knows. */
  since: Micros | undefined;
  /** The service has no such source: there is nothing to hear. */
  isAbsent: boolean;
  readonly line: LineHeard | undefined;
}

interface LineHeard {
  readonly exchangeId: string | null;
  readonly keys: readonly string[];
  /** Subscriptions that are not heard. */
  deaf: number;
  since: Micros;
}

/**
 * What is heard live, and since when without a break. Whoever fills holes asks here what REST has to be asked for, and
 * the ledger is told of every change.
 */
export class LiveStanding {
  readonly #cadence: Micros;
  #heard = new Map<string, Heard>();
  #lines = new Map<string | null, LineHeard>();
  #markets: ReadonlySet<string> | undefined;
  /** What the ledger was told last. */
  readonly #toldSpans = new Map<string, LiveSpan>();
  #isLineNews = true;
  #turn: Promise<unknown> = Promise.resolve();
  #isNews = true;
  #isAnew = true;
  #changed = new Set<string>();
  #unobserved: (LiveExchange & { readonly to: Micros })[] = [];

  constructor(cadence: Micros) {
    this.#cadence = cadence;
  }

  /** These are to be heard from now on; what goes on being wished for stays as it is. */
  wish({ indices, exchanges, selection }: LiveWishes): void {
    const before = this.#heard;
    this.#heard = new Map();
    this.#lines = new Map();
    this.#markets = selection.markets;
    const take = (subscription: Subscription, line: LineHeard | undefined) => {
      const key = subscriptionKey(subscription);
      const known = before.get(key);
      const { since, isAbsent } = known ?? { since: undefined, isAbsent: false };
      this.#heard.set(key, { subscription, since, isAbsent, line });
      if (line) this.#count(line, since, isAbsent);
    };
    for (const subscription of indices) take(subscription, undefined);
    for (const { exchangeId, subscriptions } of exchanges) {
      const line = { exchangeId, keys: subscriptions.map(subscriptionKey), deaf: 0, since: 0 };
      this.#lines.set(exchangeId, line);
      for (const subscription of subscriptions) take(subscription, line);
    }
    for (const key of [...before.keys(), ...this.#heard.keys()]) this.#changed.add(key);
    this.#isNews = true;
    this.#isLineNews = true;
  }

  get subscriptions(): readonly Subscription[] {
    return [...this.#heard.values()].map(({ subscription }) => subscription);
  }

  /** Everything that is wished for flows. */
  get isFlowing(): boolean {
    for (const heard of this.#heard.values()) if (isDeaf(heard)) return false;
    return true;
  }

  /** Since when all ticks of an index have been heard; undefined: they are not. */
  sinceOfIndex(indexType: string, indexId: string): Micros | undefined {
    const single = this.#heard.get(subscriptionKey({ source: "index", indexType, indexId }));
    return (single ?? this.#heard.get(subscriptionKey({ source: "index", indexType })))?.since;
  }

  /** Since when all ticks of a line of the exchange tickers have been heard; undefined: they are not. */
  sinceOfExchange(exchangeId: string | null): Micros | undefined {
    const line = this.#lines.get(exchangeId);
    return line && isWhole(line) ? line.since : undefined;
  }

  /** Takes in what the feed says; `now` by the service's clock. */
  hear(message: Exclude<FeedMessage, { kind: "update" }>, now: Micros): void {
    switch (message.kind) {
      case "subscribed":
        this.#set(message.subscription, message.at, false);
        return;
      case "parked":
        this.#set(message.subscription, undefined, message.code === "404");
        return;
      case "unconfirmed":
        if (message.reason === "silent") this.#missed(message.subscription, message.since, now);
        this.#set(message.subscription, undefined, false);
        return;
      case "disconnected":
        for (const { subscription, isAbsent } of this.#heard.values())
          this.#set(subscription, undefined, isAbsent);
        return;
      case "gap":
        for (const { subscription, since, isAbsent } of this.#heard.values()) {
          if (since === undefined) continue;
          // The period of the last tick that was held is itself cut short.
          this.#missed(subscription, message.from - this.#cadence, message.to);
          this.#set(subscription, message.to, isAbsent);
        }
        return;
      default:
        return;
    }
  }

  /** Does one thing after the other, in the order in which they were asked for. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work, work);
    this.#turn = done.catch(() => {});
    return done;
  }

  /** What the ledger has not been told yet; undefined: nothing. */
  news(): ListeningChange | undefined {
    if (!this.#isNews) return undefined;
    this.#isNews = false;
    const begun: LiveSpan[] = [];
    const ended: Omit<LiveSpan, "from">[] = [];
    for (const key of this.#changed) {
      const told = this.#toldSpans.get(key);
      const span = this.#spanOf(key);
      if (told?.from === span?.from) continue;
      if (span) begun.push(span);
      else if (told) ended.push({ indexType: told.indexType, indexId: told.indexId });
      if (span) this.#toldSpans.set(key, span);
      else this.#toldSpans.delete(key);
    }
    this.#changed.clear();
    const lines = this.#isLineNews ? { exchanges: this.#wholeLines(), markets: this.#markets ?? null } : {};
    const isSame = !this.#isLineNews;
    this.#isLineNews = false;
    const unobserved = this.#unobserved.map(({ exchangeId, since, to }) => ({ exchangeId, from: since, to }));
    this.#unobserved = [];
    const anew = this.#isAnew;
    this.#isAnew = false;
    if (!anew && isSame && begun.length + ended.length + unobserved.length === 0) return undefined;
    return { anew, begun, ended, unobserved, cadence: this.#cadence, ...lines };
  }

  #wholeLines(): LiveExchange[] {
    return [...this.#lines.values()].filter(isWhole).map(({ exchangeId, since }) => ({ exchangeId, since }));
  }

  #spanOf(key: string): LiveSpan | undefined {
    const heard = this.#heard.get(key);
    if (heard?.subscription.source !== "index" || heard.since === undefined) return undefined;
    const { indexType = "", indexId } = heard.subscription;
    return { indexType, indexId, from: heard.since };
  }

  #set(subscription: Subscription, since: Micros | undefined, isAbsent: boolean): void {
    const key = subscriptionKey(subscription);
    const heard = this.#heard.get(key);
    // It may have been unsubscribed since.
    if (!heard) return;
    const { line } = heard;
    const before = line && isWhole(line) ? line.since : undefined;
    if (line && isDeaf(heard)) line.deaf--;
    heard.since = since;
    heard.isAbsent = isAbsent;
    if (line) this.#count(line, since, isAbsent);
    if (line && before !== (isWhole(line) ? line.since : undefined)) this.#isLineNews = true;
    this.#changed.add(key);
    this.#isNews = true;
  }

  #count(line: LineHeard, since: Micros | undefined, isAbsent: boolean): void {
    if (since === undefined && !isAbsent) line.deaf++;
    line.since = Math.max(line.since, since ?? 0);
  }

  /** Ticks were missed: what was entered as observed meanwhile, on the ticks of others, is taken back. */
  #missed(subscription: Subscription, lastTick: Micros | undefined, until: Micros): void {
    const heard = this.#heard.get(subscriptionKey(subscription));
    const from = lastTick ?? heard?.since;
    if (!heard?.line || from === undefined) return;
    const begin = (Math.floor(from / this.#cadence) + 1) * this.#cadence;
    const end = Math.ceil(until / this.#cadence) * this.#cadence;
    if (begin < end) this.#unobserved.push({ exchangeId: heard.line.exchangeId, since: begin, to: end });
    this.#isNews = true;
  }
}

function isDeaf({ since, isAbsent }: Heard): boolean {
  return since === undefined && !isAbsent;
}

/** With nothing but absent sources there is nothing that could be heard, and REST says so instead. */
function isWhole({ deaf, since, keys }: LineHeard): boolean {
  return deaf === 0 && since > 0 && keys.length > 0;
}
