import { onTestFinished } from "vitest";
import { seededRandom } from "../../../src/runtime/backoff.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import type { AccessToken } from "../../../src/service/auth/access-tokens.ts";
import type { FeedTokens } from "../../../src/service/live/feed.ts";
import { type FeedObservation, type FeedOptions, followFeed } from "../../../src/service/live/feed.ts";
import type { FeedMessage, Subscription } from "../../../src/service/live/messages.ts";
import { TurnedClock } from "../manual-clock.ts";
import { FeedServer, type Manners } from "./websocket-server.ts";

export const gwa: Subscription = { source: "index", indexType: "GWA" };
export const lx: Subscription = { source: "index", indexType: "LX" };
export const kraken: Subscription = { source: "exchange", exchangeId: "kraken" };

/** Tokens from memory, as the real ones are; each new one has characters that an address must escape. */
export class CountedTokens implements FeedTokens {
  granted = 0;
  accepts = 0;
  lifeMs: number;
  readonly #clock: TurnedClock;
  #token: AccessToken | undefined;

  constructor(clock: TurnedClock, lifeMs = 86_400_000) {
    this.#clock = clock;
    this.lifeMs = lifeMs;
  }

  async get(): Promise<AccessToken> {
    if (!this.#token || this.#clock.boottime() >= this.#token.endsAt) this.#token = this.#grant();
    return this.#token;
  }

  async renew(): Promise<AccessToken> {
    this.#token = this.#grant();
    return this.#token;
  }

  refused(_audience: string, token: AccessToken): void {
    if (token === this.#token) this.#token = undefined;
  }

  accepted(): void {
    this.accepts++;
  }

  onHealed(): () => void {
    return () => {};
  }

  #grant(): AccessToken {
    const now = this.#clock.boottime();
    this.granted++;
    return {
      text: `canary+/=&?#%-${this.granted}`,
      scopes: undefined,
      issuedAt: now,
      endsAt: now + this.lifeMs,
    };
  }
}

export type FollowOptions = Partial<FeedOptions> & { tokenLifeMs?: number };

/** A feed that is being read, and the server that it reads from. */
export class Following {
  readonly clock: TurnedClock;
  readonly server: FeedServer;
  readonly tokens: CountedTokens;
  readonly messages: FeedMessage[] = [];
  readonly observations: FeedObservation[] = [];
  readonly logged: unknown[] = [];
  /** While false, the reader does not read. */
  isReading = true;
  readonly #stop = new AbortController();
  readonly #reading: Promise<void>;

  constructor(server: FeedServer, clock: TurnedClock, options: FollowOptions) {
    this.server = server;
    this.clock = clock;
    this.tokens = new CountedTokens(clock, options.tokenLifeMs);
    const keep = (fields: unknown, message: string) => void this.logged.push([fields, message]);
    const feed = followFeed({
      wsUrl: server.url,
      tokens: this.tokens,
      subscriptions: [gwa],
      clock,
      random: seededRandom(1),
      log: { ...silentLog, info: keep, warn: keep, error: keep },
      observe: (observation) => this.observations.push(observation),
      refreshSeconds: 30,
      isQuiet: async () => true,
      signal: this.#stop.signal,
      ...options,
    });
    this.#reading = this.#read(feed);
  }

  of<K extends FeedMessage["kind"]>(kind: K): Extract<FeedMessage, { kind: K }>[] {
    return this.messages.filter(
      (message): message is Extract<FeedMessage, { kind: K }> => message.kind === kind,
    );
  }

  get kinds(): string[] {
    return this.messages.map(({ kind }) => kind);
  }

  get ticks(): string[] {
    return this.of("update").flatMap(({ texts }) => texts);
  }

  /** Waits, in turns of the event loop and not in time, until something has happened. */
  async until(isSo: () => boolean): Promise<void> {
    for (let turn = 0; !isSo(); turn++) {
      if (turn > 5_000) throw new Error(`waited in vain; heard ${JSON.stringify(this.kinds)}`);
      await new Promise((resolve) => setTimeout(resolve, turn < 50 ? 0 : 1));
    }
  }

  /** Moves time in small steps until something has happened. */
  async elapseUntil(isSo: () => boolean, mostMs = 3_600_000): Promise<number> {
    const start = this.clock.monotonic();
    while (!isSo()) {
      if (this.clock.monotonic() - start > mostMs)
        throw new Error(`not within ${mostMs} ms; heard ${JSON.stringify(this.kinds)}`);
      await this.clock.advance(500);
    }
    return this.clock.monotonic() - start;
  }

  async stop(): Promise<void> {
    this.isReading = true;
    this.#stop.abort();
    await this.#reading;
    await this.server.stop();
  }

  async #read(feed: AsyncGenerator<FeedMessage>): Promise<void> {
    for await (const message of feed) {
      this.messages.push(message);
      while (!this.isReading) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

export async function follow(manners: Manners = {}, options: FollowOptions = {}): Promise<Following> {
  const following = new Following(await FeedServer.start(manners), new TurnedClock(), options);
  onTestFinished(() => following.stop());
  return following;
}

/** The same, once everything is subscribed. */
export async function followSubscribed(
  manners: Manners = {},
  options: FollowOptions = {},
): Promise<Following> {
  const following = await follow(manners, options);
  const { subscriptions = [gwa] } = options;
  const wanted = "current" in subscriptions ? subscriptions.current.length : subscriptions.length;
  await following.until(() => following.of("subscribed").length === wanted);
  return following;
}
