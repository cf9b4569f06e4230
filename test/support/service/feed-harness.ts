import { EventEmitter } from "node:events";
import { onTestFinished } from "vitest";
import { silentLog } from "../../../src/runtime/log.ts";
import type { AccessToken } from "../../../src/service/auth/access-tokens.ts";
import type { ClientEvent } from "../../../src/service/http/client-events.ts";
import { ServerClock } from "../../../src/service/http/server-clock.ts";
import {
  type FeedClient,
  type FeedOptions,
  followFeed,
  type UnknownMessage,
} from "../../../src/service/live/feed.ts";
import {
  type FeedMessage,
  type Subscription,
  SubscriptionStates,
} from "../../../src/service/live/subscription-states.ts";
import { ManualClock } from "../manual-clock.ts";
import { seededRandom } from "../seeded-random.ts";
import { timeLimit } from "../time-limit.ts";
import {
  type Json,
  type ServerBehaviour,
  type ServerConnection,
  WebSocketTestServer,
} from "./websocket-server.ts";

export const gwa: Subscription = { source: "index", indexType: "GWA" };
export const lx: Subscription = { source: "index", indexType: "LX" };
export const kraken: Subscription = { source: "exchange", exchangeId: "kraken" };

export type FeedTokens = ReturnType<FeedClient["tokensOf"]>;

/** Issues tokens with characters that a URL must escape. */
export class FakeTokens implements FeedTokens {
  issuedCount = 0;
  acceptedCount = 0;
  lifetimeMs: number;
  readonly #clock: ManualClock;
  #token: AccessToken | undefined;

  constructor(clock: ManualClock, lifetimeMs = 86_400_000) {
    this.#clock = clock;
    this.lifetimeMs = lifetimeMs;
  }

  async get(): Promise<AccessToken> {
    if (!this.#token || this.#clock.boottime() >= this.#token.expiresAt) this.#token = this.#issue();
    return this.#token;
  }

  async refresh(): Promise<AccessToken> {
    this.#token = this.#issue();
    return this.#token;
  }

  reportRejected(token: AccessToken): void {
    if (token === this.#token) this.#token = undefined;
  }

  reportAccepted(): void {
    this.acceptedCount++;
  }

  #issue(): AccessToken {
    const now = this.#clock.boottime();
    this.issuedCount++;
    const text = `canary+/=&?#%-${this.issuedCount}`;
    return { text, scopes: undefined, firstSeenAt: now, expiresAt: now + this.lifetimeMs };
  }
}

type FeedReaderOptions = Pick<FeedOptions, "wsUrl"> &
  Partial<Omit<FeedOptions, "subscriptions"> & FeedClient> & {
    readonly tokens: FeedTokens;
    readonly subscriptions?: readonly Subscription[] | SubscriptionStates;
  };

/** A running feed and all that its reader received. */
export class FeedReader {
  readonly clock: ManualClock;
  readonly messages: FeedMessage[] = [];
  readonly unknown: UnknownMessage[] = [];
  readonly events: ClientEvent[] = [];
  readonly logLines: [fields: unknown, message: string][] = [];
  /** Set to false to stall the reader. */
  isReading = true;
  readonly #stop = new AbortController();
  readonly #reading: Promise<void>;

  constructor(clock: ManualClock, { subscriptions = [gwa], ...options }: FeedReaderOptions) {
    this.clock = clock;
    const client = {
      server: new ServerClock(clock),
      bell: new EventEmitter<{ ring: [] }>(),
      isDown: () => false,
      waitForTurn: () => new Promise<void>(() => {}),
      tokensOf: () => options.tokens,
      onEvent: (event: ClientEvent) => void this.events.push(event),
      ...options,
    };
    const record = (fields: unknown, message: string) => void this.logLines.push([fields, message]);
    this.#reading = this.#read(
      followFeed({
        client,
        subscriptions:
          subscriptions instanceof SubscriptionStates ? subscriptions : new SubscriptionStates(subscriptions),
        clock,
        random: seededRandom(1),
        log: { ...silentLog, info: record, warn: record, error: record },
        onUnknown: (message) => this.unknown.push(message),
        refreshSeconds: 30,
        isMarketQuiet: async () => true,
        signal: this.#stop.signal,
        ...options,
      }),
    );
  }

  count(kind: FeedMessage["kind"]): number {
    return this.messagesOf(kind).length;
  }

  messagesOf<K extends FeedMessage["kind"]>(kind: K): Extract<FeedMessage, { kind: K }>[] {
    return this.messages.filter(
      (message): message is Extract<FeedMessage, { kind: K }> => message.kind === kind,
    );
  }

  get kinds(): string[] {
    return this.messages.map(({ kind }) => kind);
  }

  get ticks(): string[] {
    return this.messagesOf("update").flatMap(({ texts }) => texts);
  }

  async stop(): Promise<void> {
    this.isReading = true;
    this.#stop.abort();
    await this.#reading;
  }

  async #read(feed: AsyncGenerator<FeedMessage>): Promise<void> {
    for await (const message of feed) {
      this.messages.push(message);
      while (!this.isReading) await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

export type FeedHarnessOptions = Partial<FeedReaderOptions> & { tokenLifetimeMs?: number };

/** A feed with a test server and fake tokens. */
export class FeedHarness extends FeedReader {
  readonly server: WebSocketTestServer;
  readonly tokens: FakeTokens;

  constructor(server: WebSocketTestServer, clock: ManualClock, options: FeedHarnessOptions) {
    const tokens = new FakeTokens(clock, options.tokenLifetimeMs);
    super(clock, { wsUrl: server.url, tokens, ...options });
    this.server = server;
    this.tokens = tokens;
  }

  get connection(): ServerConnection {
    return this.server.lastConnection;
  }

  /** How many messages of this event the last connection has received. */
  received(event: string): number {
    return this.connection.receivedEvents(event).length;
  }

  /** The last connection sends a tick of an index or an exchange. */
  sendTick(fields: Json = {}): void {
    const isExchange = "exchangeId" in fields;
    const ids = isExchange ? { marketId: "m" } : { indexType: "GWA", indexId: "btc" };
    this.connection.sendEvent(isExchange ? "EXCHANGE_TICKER" : "INDEX_TICKER", { ...ids, ...fields });
  }

  /** Waits in turns of the event loop; the manual clock stands still. */
  async waitUntil(condition: () => boolean): Promise<void> {
    const deadline = performance.now() + timeLimit(10_000);
    for (let turn = 0; !condition(); turn++) {
      if (performance.now() > deadline)
        throw new Error(`condition not met; received ${JSON.stringify(this.kinds)}`);
      await new Promise((resolve) => setTimeout(resolve, turn < 50 ? 0 : 1));
    }
  }

  /** Advances the clock in small steps; returns the elapsed milliseconds. */
  async advanceUntil(condition: () => boolean, maxMs = 3_600_000): Promise<number> {
    const start = this.clock.monotonic();
    while (!condition()) {
      if (this.clock.monotonic() - start > maxMs)
        throw new Error(`condition not met within ${maxMs} ms; received ${JSON.stringify(this.kinds)}`);
      await this.clock.advance(500);
    }
    return this.clock.monotonic() - start;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.server.stop();
  }
}

export async function startFeed(
  behaviour: ServerBehaviour = {},
  options: FeedHarnessOptions = {},
): Promise<FeedHarness> {
  const feed = new FeedHarness(await WebSocketTestServer.start(behaviour), new ManualClock(), options);
  onTestFinished(() => feed.stop());
  return feed;
}

/** Waits until everything is subscribed. */
export async function startSubscribedFeed(
  behaviour: ServerBehaviour = {},
  options: FeedHarnessOptions = {},
): Promise<FeedHarness> {
  const feed = await startFeed(behaviour, options);
  const { subscriptions = [gwa] } = options;
  const expected = "current" in subscriptions ? subscriptions.current.length : subscriptions.length;
  await feed.waitUntil(() => feed.messagesOf("subscribed").length === expected);
  return feed;
}
