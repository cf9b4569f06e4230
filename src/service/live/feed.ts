import { Agent } from "node:https";
import { Failure } from "../../model/failure.ts";
import { backoffDelay, type Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import type { AccessToken, AccessTokens } from "../auth/access-tokens.ts";
import { encodeOpaque } from "../http/request.ts";
import { Concealment } from "../http/secret-redactor.ts";
import { checkedAddress } from "../http/transport.ts";
import type { Ending } from "./close-reason.ts";
import { LiveConnection } from "./connection.ts";
import { type Frame, ServiceTime, tickIdentity } from "./frames.ts";
import { FeedQueue, type QueueLimits, usualLimits } from "./message-queue.ts";
import { type FeedMessage, keysOfTick, type Subscription } from "./messages.ts";
import { CadenceWatch, type IsQuiet, type Silent } from "./staleness-watchdog.ts";
import { Standing, SubscriptionList } from "./subscription-status.ts";

/** What the feed tells whoever counts. */
export interface FeedObservation {
  readonly kind: "feed";
  readonly event: "attempt" | "connected" | "ended" | "swapped" | "silent";
  /** Why it ended, or what is done about the silence. */
  readonly reason?: string;
}

export interface FeedOptions {
  /** The websocket's address; also the audience of its tokens. */
  readonly wsUrl: string;
  readonly tokens: FeedTokens;
  readonly subscriptions: readonly Subscription[] | SubscriptionList;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly observe: (observation: FeedObservation) => void;
  /** The service's intraday cadence. */
  readonly refreshSeconds: number;
  readonly isQuiet: IsQuiet;
  readonly signal?: AbortSignal | undefined;
  readonly limits?: QueueLimits;
}

const usualPace = { leastMs: 0, baseMs: 1_000, capMs: 60_000 };
const slowPace = { leastMs: 60_000, baseMs: 60_000, capMs: 3_600_000 };
const swapPace = { baseMs: 120_000, capMs: 600_000 };
const STABLE_MS = 60_000;
/** Nobody takes away a token so soon: a 401 is about something else. */
const YOUNG_MS = 600_000;
const LONGEST_SAMPLE = 2_000;

/**
 * Follows the live feed until the signal aborts or the reader stops reading. Connections come and go underneath; that
 * they do is a message like any other, in its place among the ticks. What was heard before the end is still delivered.
 */
export async function* followFeed(options: FeedOptions): AsyncGenerator<FeedMessage, void, undefined> {
  const url = checkedAddress("service.wsUrl", options.wsUrl);
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  const feed = new LiveFeed(options, url);
  let isOver = false;
  const running = feed.run(signal).finally(() => {
    isOver = true;
    feed.queue.wake();
  });
  // Its failure is thrown to the reader below, once there is nothing left to read.
  running.catch(() => {});
  try {
    for (;;) {
      const message = feed.queue.take();
      if (message) yield message;
      else if (isOver) return await running;
      else await feed.queue.filled();
    }
  } finally {
    stop.abort();
  }
}

interface Session {
  readonly token: AccessToken;
  readonly connection: LiveConnection;
  readonly following: Promise<void>;
  readonly ended: Promise<Ending>;
}

class LiveFeed {
  readonly queue: FeedQueue;
  readonly #options: FeedOptions;
  readonly #url: URL;
  readonly #agent: Agent | undefined;
  readonly #concealment = new Concealment();
  readonly #time: ServiceTime;
  readonly #standing: Standing;
  readonly #watch: CadenceWatch;
  readonly #subscriptions: SubscriptionList;
  /** All that are open: two of them during a swap. */
  readonly #connections = new Set<LiveConnection>();
  #current: LiveConnection | undefined;
  /** The reader has been too slow for too long: sockets are read all the same, and ticks dropped. */
  #isShedding = false;

  constructor(options: FeedOptions, url: URL) {
    this.#url = url;
    this.#agent = agentFor(url, process.env);
    const { clock, refreshSeconds, isQuiet, subscriptions } = options;
    this.#options = options;
    this.#subscriptions =
      subscriptions instanceof SubscriptionList ? subscriptions : new SubscriptionList(subscriptions);
    this.#time = new ServiceTime(clock);
    const now = () => this.#time.now();
    this.queue = new FeedQueue(options.limits ?? usualLimits, now);
    this.queue.onRelief = () => this.#relieve();
    this.#standing = new Standing((message) => this.queue.push(message), now);
    this.#watch = new CadenceWatch({
      clock,
      refreshSeconds,
      isQuiet,
      serviceNow: now,
      onSilent: (silent) => this.#heal(silent),
      onLate: (subscription, missingSince) => this.#standing.doubt(subscription, "silent", missingSince),
      onRecovered: (subscription) => this.#standing.recover(subscription),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { random, log } = this.#options;
    const stop = () => {
      for (const connection of this.#connections) connection.end({ reason: "stopped" });
    };
    signal.addEventListener("abort", stop, { once: true });
    const unheed = this.#subscriptions.onChange((removed) => this.#renew(removed));
    // An outage that has gone on for long must not make the first refusal a matter of an hour: each has its own count.
    let refusals = 0;
    for (let attempt = 1; !signal.aborted; attempt++) {
      const { ending, last } = await this.#stay(signal);
      if (signal.aborted) break;
      if (last?.hasServed(STABLE_MS)) attempt = refusals = 0;
      refusals = ending.slow ? refusals + 1 : 0;
      const inMs = this.#pause(ending, ending.slow ? refusals : attempt, random);
      const { reason, remedy } = ending;
      this.#watch.lost();
      if (last?.wasGreeted) {
        this.#standing.lost();
        this.queue.push({ kind: "disconnected", reason, since: last.lastHeard });
      } else this.queue.push({ kind: "retrying", reason, attempt, inMs });
      const told = { reason, ...(remedy === undefined ? {} : { remedy }), attempt, inMs: Math.round(inMs) };
      log.warn(told, "live feed is down, connecting again");
      if (await this.#wait(inMs, ending, signal)) refusals = 0;
    }
    unheed();
    signal.removeEventListener("abort", stop);
  }

  /** True if the wait was cut short: a secret that was mended for REST is as good for the feed. */
  async #wait(ms: number, { noToken }: Ending, signal: AbortSignal): Promise<boolean> {
    const { clock, tokens } = this.#options;
    const healed = new AbortController();
    const unheed = noToken ? tokens.onHealed(() => healed.abort()) : () => {};
    await clock.sleep(ms, AbortSignal.any([signal, healed.signal])).catch(() => {});
    unheed();
    return healed.signal.aborted;
  }

  #pause(ending: Ending, attempt: number, random: Random): number {
    const pace = ending.slow ? slowPace : usualPace;
    const own = pace.leastMs + backoffDelay(Math.max(0, attempt - 1), pace, random);
    return Math.max(own, ending.retryAfterMs ?? 0);
  }

  /** Connects and stays connected, from connection to connection while they overlap. Returns when there is none left. */
  async #stay(signal: AbortSignal): Promise<{ ending: Ending; last: LiveConnection | undefined }> {
    const { clock, random, log, tokens, wsUrl, observe } = this.#options;
    observe({ kind: "feed", event: "attempt" });
    const token = await tokens.get(wsUrl, signal).catch((error: unknown) => endingOfTokens(error));
    if ("reason" in token) return { ending: token, last: undefined };
    let session = this.#dial(token, signal, true);
    let wait = stayMs(token, clock.boottime(), random());
    for (let failures = 0; ; ) {
      const left = new AbortController();
      const due = clock.sleep(wait, left.signal).then(
        () => undefined,
        () => undefined,
      );
      const ending = (await Promise.race([session.ended, due])) ?? (await this.#peek(session));
      left.abort();
      if (ending) return { ending, last: session.connection };
      const successor = await this.#succeed(session, signal);
      if (successor) {
        failures = 0;
        session = successor;
        wait = stayMs(session.token, clock.boottime(), random());
      } else wait = backoffDelay(failures++, swapPace, random);
      log.info({ swapped: successor !== undefined }, "live feed's connection was due for a younger token");
    }
  }

  /** The ending of a session that has ended, undefined for one that goes on. */
  #peek(session: Session): Promise<Ending | undefined> {
    return Promise.race([session.ended, Promise.resolve(undefined)]);
  }

  /** Opens a second connection and, once it is subscribed, leaves the first; undefined if either ended on the way. */
  async #succeed(session: Session, signal: AbortSignal): Promise<Session | undefined> {
    const { tokens, wsUrl } = this.#options;
    const token = await tokens
      .renew(wsUrl, signal)
      .catch(() => tokens.get(wsUrl, signal))
      .catch(() => undefined);
    if (!token || signal.aborted) return undefined;
    const successor = this.#dial(token, signal, false);
    const first = await Promise.race([
      successor.following.then(() => "following" as const),
      successor.ended,
      session.ended,
    ]);
    if (first !== "following") {
      successor.connection.end({ reason: "not_needed" });
      return undefined;
    }
    this.#current = successor.connection;
    session.connection.end({ reason: "superseded" });
    this.queue.push({ kind: "swapped", at: this.#time.now() });
    this.#options.observe({ kind: "feed", event: "swapped" });
    return successor;
  }

  #dial(token: AccessToken, signal: AbortSignal, isFirst: boolean): Session {
    const { wsUrl, clock, random, tokens, log, observe } = this.#options;
    const subscriptions = this.#subscriptions.current;
    this.#concealment.conceal(token.text);
    const following = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<Ending>();
    const connection: LiveConnection = new LiveConnection({
      address: feedAddress(this.#url, token.text),
      agent: this.#agent,
      conceal: (text) => this.#concealment.clean(text),
      subscriptions,
      isTokenYoung: () => clock.boottime() - token.issuedAt < YOUNG_MS,
      clock,
      random,
      standing: this.#standing,
      time: this.#time,
      listener: {
        onGreeted: () => {
          if (isFirst) this.queue.push({ kind: "connected", at: this.#time.now() });
          observe({ kind: "feed", event: "connected" });
          log.info({ subscriptions: subscriptions.length }, "live feed connected");
        },
        onAccepted: () => tokens.accepted(wsUrl, token),
        onTick: (source, text) => this.#tick(source, text),
        onNoise: (frame) => this.#noise(frame),
        onAsked: (subscription) => this.#watch.asked(subscription),
        onConfirmed: (subscription) => this.#watch.expect(subscription),
        onDeclined: (subscription) => this.#watch.forget(subscription),
        onFollowing: () => following.resolve(),
        onPulse: () => {
          if (connection === this.#current) void this.#watch.look();
        },
        onEnded: (ending) => {
          this.#connections.delete(connection);
          if (ending.tokenRefused) tokens.refused(wsUrl, token);
          observe({ kind: "feed", event: "ended", reason: ending.reason });
          ended.resolve(ending);
        },
      },
    });
    if (isFirst) this.#current = connection;
    this.#connections.add(connection);
    if (signal.aborted) connection.end({ reason: "stopped" });
    return { token, connection, following: following.promise, ended: ended.promise };
  }

  #tick(source: "index" | "exchange", text: string): void {
    // First that its subscription flows again, then the tick: the reader counts what comes from then on.
    this.#watch.tick(keysOfTick(tickIdentity(source, text)));
    this.queue.tick(text);
    if (!this.queue.isPressed || this.#isShedding) return;
    for (const connection of this.#connections)
      connection.pause(() => {
        this.#isShedding = true;
      });
  }

  #relieve(): void {
    this.#isShedding = false;
    for (const connection of this.#connections) connection.resume();
  }

  #noise(frame: Extract<Frame, { kind: "unknown" | "error" }>): void {
    if (frame.kind === "error") this.queue.noise({ ...frame, count: 1 });
    else {
      const { kind, event, reason, text } = frame;
      this.queue.noise({ kind, event, reason, sample: text.slice(0, LONGEST_SAMPLE), count: 1 });
    }
  }

  #renew(removed: readonly Subscription[]): void {
    for (const subscription of removed) {
      this.#standing.forget(subscription);
      this.#watch.forget(subscription);
    }
    for (const connection of this.#connections) connection.renew(this.#subscriptions.current);
  }

  #heal(silent: readonly Silent[]): void {
    const { log, observe } = this.#options;
    const [{ subscription, remedy } = {}] = silent;
    log.warn(
      { subscriptions: silent.length, subscription, remedy },
      "ticks of subscriptions have stopped while the market has not",
    );
    for (const { subscription, remedy, missingSince } of silent) {
      observe({ kind: "feed", event: "silent", reason: remedy });
      // Whatever helps in the end: since then something was missed, and REST has to be asked for it.
      this.#standing.doubt(subscription, "silent", missingSince);
      if (remedy !== "reconnect") this.#current?.resubscribe(subscription);
    }
    if (silent.some(({ remedy }) => remedy === "reconnect")) this.#current?.end({ reason: "no_ticks" });
  }
}

function endingOfTokens(error: unknown): Ending {
  if (!(error instanceof Failure)) return { reason: "no_token" };
  return { reason: error.code, slow: error.family === "operator", noToken: true };
}

/** The address to dial, token included: it must never be shown. */
export function feedAddress(wsUrl: URL, token: string): string {
  const url = new URL(wsUrl);
  url.hash = "";
  // By hand: the form encoding of URLSearchParams is not the one that secrets are searched for in texts.
  url.search = `${url.search}${url.search === "" ? "?" : "&"}access_token=${encodeOpaque(token)}`;
  return url.href;
}

/** The way out through `HTTPS_PROXY`, where the environment names one; this machine itself is always dialled directly. */
export function agentFor(wsUrl: URL, env: NodeJS.ProcessEnv): Agent | undefined {
  if (wsUrl.protocol !== "wss:" || (!env.HTTPS_PROXY && !env.https_proxy)) return undefined;
  if (/^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(wsUrl.hostname)) return undefined;
  return new Agent({ proxyEnv: env, keepAlive: false });
}

/** What the feed needs of the access tokens. */
export type FeedTokens = Pick<AccessTokens, "get" | "renew" | "refused" | "accepted" | "onHealed">;

const HOUR_MS = 3_600_000;
const SHORTEST_STAY_MS = 600_000;
const SPREAD_MS = 300_000;

/**
 * How long to stay on a connection before it is replaced by one with a younger token: until the token's last
 * hour. A token with hardly an hour left does not make us hurry, since it is only looked at on connecting.
 */
export function stayMs(token: AccessToken, boottime: number, chance: number): number {
  return Math.max(SHORTEST_STAY_MS, token.endsAt - HOUR_MS - boottime - chance * SPREAD_MS);
}
