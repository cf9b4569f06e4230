import { Agent } from "node:https";
import { Failure } from "../../model/failure.ts";
import { SecretRedactor } from "../../model/secret-redactor.ts";
import { parseServiceUrl } from "../../model/service-url.ts";
import type { Micros } from "../../model/time.ts";
import { backoffDelay, type Clock, type Random } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { finishesWithin } from "../../runtime/timeouts.ts";
import type { AccessToken, AudienceTokens } from "../auth/access-tokens.ts";
import type { ServiceClient } from "../client/client.ts";
import { addressOf, findRoute } from "../http/network-failures.ts";
import { HOUR_MS, TEN_MINUTES_MS, UNWANTED_BACKOFF } from "../limits.ts";
import { type CloseReason, isUnwanted, reconnectDelayMs, remainingAttempts } from "./close-reason.ts";
import { LiveConnection } from "./connection.ts";
import { subscriptionKeysOfTick } from "./frames.ts";
import { DEFAULT_QUEUE_LIMITS, MessageQueue, type QueueLimits } from "./message-queue.ts";
import { type QuietMarketCheck, StalenessWatchdog, type StaleSubscription } from "./staleness-watchdog.ts";
import type { FeedMessage, SubscriptionStates, TrackedSubscription } from "./subscription-states.ts";

/** A message that this version does not know. */
export interface UnknownMessage {
  readonly event: string;
  readonly reason: string;
  readonly sample: string;
}

/** What the feed shares with REST. */
export interface FeedClient
  extends Pick<ServiceClient, "server" | "bell" | "isDown" | "waitForTurn" | "onEvent"> {
  tokensOf(audience: string): Pick<AudienceTokens, "get" | "refresh" | "reportRejected" | "reportAccepted">;
}

export interface FeedOptions {
  /** The websocket's address; also the audience of its tokens. */
  readonly wsUrl: string;
  readonly client: FeedClient;
  readonly subscriptions: SubscriptionStates;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Thousands may arrive: they do not wait in the queue. */
  readonly onUnknown?: (message: UnknownMessage) => void;
  /** The service's intraday cadence. */
  readonly refreshSeconds: number;
  readonly isMarketQuiet: QuietMarketCheck;
  readonly signal?: AbortSignal | undefined;
  readonly limits?: QueueLimits;
}

const MAX_SAMPLE_CHARS = 2_000;

/**
 * Follows the live feed until the signal aborts or the reader stops. Reconnects are messages, in order among
 * the ticks. Messages received before the stop are still delivered.
 */
export async function* followFeed(options: FeedOptions): AsyncGenerator<FeedMessage, void, undefined> {
  const url = parseServiceUrl("service.wsUrl", options.wsUrl);
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  const feed = new LiveFeed(options, url);
  let isOver = false;
  const running = feed.run(signal).finally(() => {
    isOver = true;
    feed.queue.wake();
  });
  // No unhandled rejection: `await running` below throws the failure to the reader, after the last message.
  running.catch(() => {});
  try {
    for (;;) {
      const message = feed.queue.take();
      if (message) yield message;
      else if (isOver) return await running;
      else await feed.queue.waitForMessage();
    }
  } finally {
    stop.abort();
  }
}

class LiveFeed {
  readonly queue: MessageQueue;
  readonly #options: FeedOptions;
  readonly #url: URL;
  readonly #agent: Agent | undefined;
  readonly #redactor = new SecretRedactor("messages");
  readonly #watchdog: StalenessWatchdog;
  /** All open connections: two during a swap. */
  readonly #connections = new Set<LiveConnection>();
  #current: LiveConnection | undefined;
  /** Pausing the sockets did not help: the feed reads them again, and the queue drops ticks. */
  #isDroppingTicks = false;

  constructor(options: FeedOptions, url: URL) {
    this.#url = url;
    this.#agent = createProxyAgent(url, process.env);
    const { clock, refreshSeconds, isMarketQuiet, subscriptions } = options;
    this.#options = options;
    subscriptions.reset();
    const now = () => options.client.server.nowMicros();
    this.queue = new MessageQueue(options.limits ?? DEFAULT_QUEUE_LIMITS, now);
    this.queue.onDrained = () => this.#resumeSockets();
    this.#watchdog = new StalenessWatchdog({
      subscriptions,
      clock,
      refreshSeconds,
      isMarketQuiet,
      serviceNow: now,
      onStale: (stale) => this.#handleStale(stale),
      onRenew: (tracked) => this.#current?.resubscribe(tracked),
      onTicksMissed: (tracked, missingSince) => this.#reportUnconfirmed(tracked, "silent", missingSince),
      onRecovered: (tracked) => {
        if (tracked.apply("recovered")) this.#reportSubscribed(tracked);
      },
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { random, log, subscriptions, client } = this.#options;
    const forEachConnection = (act: (connection: LiveConnection) => void) => () => {
      for (const connection of this.#connections) act(connection);
    };
    const stop = forEachConnection((connection) => connection.close({ reason: "stopped" }));
    signal.addEventListener("abort", stop, { once: true });
    const retryUpgrades = forEachConnection((connection) => connection.retryUpgrade());
    client.bell.on("ring", retryUpgrades);
    const replaceSubscriptions = forEachConnection((connection) =>
      connection.replaceSubscriptions(subscriptions.current),
    );
    subscriptions.on("change", replaceSubscriptions);
    const reportSilent = (tracked: TrackedSubscription, since: Micros) =>
      this.#watchdog.reportSilent(tracked, since);
    subscriptions.on("silent", reportSilent);
    // Count rejections separately: the first rejection after a long outage must not wait an hour.
    let rejections = 0;
    for (let attempt = 1; !signal.aborted; attempt++) {
      const { closeReason, last } = await this.#stayConnected(signal);
      if (signal.aborted) break;
      attempt = remainingAttempts(attempt, last?.hasReceivedTick ?? false, last?.connectedMs ?? 0);
      if (attempt === 0) rejections = 0;
      const { reason, cause, remedy, end = "dropped", retryAfterMs = 0 } = closeReason;
      rejections = isUnwanted(end) ? rejections + 1 : 0;
      // Exchange ticks have no history.
      const isUrgent = subscriptions.current.some(({ subscription }) => subscription.source === "exchange");
      const outcome = { attempts: attempt, rejections, end, isUrgent, isRestDown: client.isDown() };
      const inMs = Math.max(retryAfterMs, reconnectDelayMs(outcome, random));
      this.#watchdog.suspendAll();
      if (last?.hasReceivedGreeting) {
        subscriptions.disconnect();
        this.queue.push({ kind: "disconnected", reason, since: last.lastReceivedTs });
      } else this.queue.push({ kind: "retrying", reason, attempt, inMs });
      const fields = { reason, address: addressOf(this.#url), cause, remedy, attempt };
      log.warn({ ...fields, inMs: Math.round(inMs) }, "live feed down, reconnecting");
      if (await this.#waitToReconnect(inMs, closeReason, signal)) rejections = 0;
    }
    subscriptions.off("change", replaceSubscriptions);
    subscriptions.off("silent", reportSilent);
    client.bell.off("ring", retryUpgrades);
    signal.removeEventListener("abort", stop);
  }

  /** Returns true if the wait ended early because something of the service works again. */
  async #waitToReconnect(ms: number, closeReason: CloseReason, signal: AbortSignal): Promise<boolean> {
    const { clock, client } = this.#options;
    const { end = "dropped", hasNoToken, retryAfterMs = 0 } = closeReason;
    const recovered = new AbortController();
    const isWoken = hasNoToken || !isUnwanted(end);
    const wake = () => recovered.abort();
    if (isWoken) client.bell.on("ring", wake);
    const ended = new AbortController();
    const ends = AbortSignal.any([signal, recovered.signal, ended.signal]);
    // The service's own wish comes first, whatever else works again.
    if (retryAfterMs > 0) await clock.sleep(retryAfterMs, signal).catch(() => {});
    const waits = [clock.sleep(ms - retryAfterMs, ends)];
    if (isWoken && client.isDown()) waits.push(client.waitForTurn(ends));
    await Promise.race(waits).catch(() => {});
    ended.abort();
    await Promise.allSettled(waits);
    client.bell.off("ring", wake);
    return recovered.signal.aborted;
  }

  /** Connects, and replaces the connection before its token expires. Returns when it has closed. */
  async #stayConnected(
    signal: AbortSignal,
  ): Promise<{ closeReason: CloseReason; last: LiveConnection | undefined }> {
    const { clock, random, log, client, wsUrl } = this.#options;
    client.onEvent({ kind: "feed", event: "attempt" });
    const token = await client.tokensOf(wsUrl).get(signal).catch(classifyTokenError);
    if ("reason" in token) return { closeReason: token, last: undefined };
    let connection = this.#connect(token, signal, true);
    let waitMs = connectionLifetimeMs(token, clock.boottime(), random());
    for (let failures = 0; ; ) {
      if (await finishesWithin(clock, waitMs, connection.closed))
        return { closeReason: await connection.closed, last: connection };
      const successor = await this.#swapConnection(connection, signal);
      if (successor) {
        failures = 0;
        connection = successor;
        waitMs = connectionLifetimeMs(connection.token, clock.boottime(), random());
      } else {
        // The token lasts an hour longer: time for some attempts.
        waitMs = backoffDelay(failures++, { ...UNWANTED_BACKOFF, maxMs: TEN_MINUTES_MS }, random);
      }
      const inMs = Math.round(waitMs);
      if (successor) log.info({ inMs }, "live connection swapped");
      else log.info({ inMs }, "live connection swap failed");
    }
  }

  /** Opens a second connection and, once it is ready, closes the first; undefined if either closes before. */
  async #swapConnection(current: LiveConnection, signal: AbortSignal): Promise<LiveConnection | undefined> {
    const { wsUrl } = this.#options;
    const { tokensOf, server, onEvent } = this.#options.client;
    const tokens = tokensOf(wsUrl);
    const token = await tokens
      .refresh(signal)
      .catch(() => tokens.get(signal))
      .catch(() => undefined);
    if (!token || signal.aborted) return undefined;
    const successor = this.#connect(token, signal, false);
    const ready = successor.subscribed.then(() => "ready" as const);
    const first = await Promise.race([ready, successor.closed, current.closed]);
    if (first !== "ready") {
      successor.close({ reason: "not_needed" });
      return undefined;
    }
    this.#current = successor;
    current.close({ reason: "superseded" });
    this.queue.push({ kind: "swapped", at: server.nowMicros() });
    onEvent({ kind: "feed", event: "swapped" });
    return successor;
  }

  #connect(token: AccessToken, signal: AbortSignal, isFirst: boolean): LiveConnection {
    const { wsUrl, clock, random, log, onUnknown } = this.#options;
    const { tokensOf, server, bell, onEvent } = this.#options.client;
    const tokens = tokensOf(wsUrl);
    const subscriptions = this.#options.subscriptions.current;
    this.#redactor.addSecret(token.text);
    const connection: LiveConnection = new LiveConnection({
      wsUrl: this.#url,
      token,
      agent: this.#agent,
      redact: (text) => this.#redactor.redact(text),
      subscriptions,
      clock,
      random,
      server,
      listener: {
        onGreeting: () => {
          this.#options.subscriptions.isConnected = true;
          if (isFirst) this.queue.push({ kind: "connected", at: server.nowMicros() });
          onEvent({ kind: "feed", event: "connected" });
          log.info({ subscriptions: subscriptions.length }, "live feed connected");
          bell.emit("ring");
        },
        onTokenAccepted: () => tokens.reportAccepted(token),
        onTick: (source, text) => this.#handleTick(source, text),
        onUnknown: ({ event, reason, text }) => {
          onEvent({ kind: "unknown_event" });
          onUnknown?.({ event, reason, sample: text.slice(0, MAX_SAMPLE_CHARS) });
        },
        onError: (code, message) => log.warn({ code, message }, "unexpected error from live feed"),
        onSubscribing: (tracked) => this.#watchdog.restartTimer(tracked),
        onConfirmed: (tracked) => {
          if (tracked.confirm()) this.#reportSubscribed(tracked);
          this.#watchdog.watch(tracked);
        },
        onParked: (tracked, { code, message, until }) => {
          const { subscription } = tracked;
          if (tracked.park(code, until)) this.queue.push({ kind: "parked", subscription, code, message });
        },
        onUnconfirmed: (tracked, reason) => this.#reportUnconfirmed(tracked, reason),
        onHealthCheck: () => {
          if (connection === this.#current) void this.#watchdog.check();
        },
        onClosed: (closeReason) => {
          this.#connections.delete(connection);
          if (closeReason.isTokenRejected) {
            tokens.reportRejected(token);
            // Whoever rejects a token answers: REST may do so too.
            bell.emit("ring");
          }
          onEvent({ kind: "feed", event: "ended", reason: closeReason.reason });
        },
      },
    });
    if (isFirst) this.#current = connection;
    this.#connections.add(connection);
    if (signal.aborted) connection.close({ reason: "stopped" });
    return connection;
  }

  #handleTick(source: "index" | "exchange", text: string): void {
    // Report the recovery before the tick: the reader counts ticks as coverage only after it.
    this.#watchdog.recordTick(subscriptionKeysOfTick(source, text));
    this.queue.pushTick(text);
    if (!this.queue.shouldPause || this.#isDroppingTicks) return;
    for (const connection of this.#connections)
      connection.pause(() => {
        this.#isDroppingTicks = true;
      });
  }

  #resumeSockets(): void {
    this.#isDroppingTicks = false;
    for (const connection of this.#connections) connection.resume();
  }

  #reportSubscribed({ subscription }: TrackedSubscription): void {
    this.queue.push({ kind: "subscribed", subscription, at: this.#options.client.server.nowMicros() });
  }

  #reportUnconfirmed(
    tracked: TrackedSubscription,
    reason: "no answer" | "refused" | "silent",
    missingSince?: Micros,
  ): void {
    if (!tracked.apply(reason)) return;
    const { subscription } = tracked;
    const missing = missingSince === undefined ? {} : { missingSince };
    this.queue.push({ kind: "unconfirmed", subscription, reason, ...missing });
  }

  #handleStale(stale: readonly StaleSubscription[]): void {
    const { log, client } = this.#options;
    const [first] = stale;
    const fields = { subscription: first?.tracked.subscription, remedy: first?.remedy };
    log.warn({ subscriptions: stale.length, ...fields }, "live ticks stopped");
    for (const { tracked, remedy, missingSince } of stale) {
      client.onEvent({ kind: "feed", event: "silent", reason: remedy });
      // Whichever remedy helps, ticks are missing, and REST has to fetch them.
      this.#reportUnconfirmed(tracked, "silent", missingSince);
      if (remedy !== "reconnect") this.#current?.resubscribe(tracked);
    }
    if (stale.some(({ remedy }) => remedy === "reconnect")) this.#current?.close({ reason: "no_ticks" });
  }
}

function classifyTokenError(error: unknown): CloseReason {
  if (!(error instanceof Failure)) return { reason: "no_token" };
  return { reason: error.code, end: error.family === "operator" ? "denied" : "dropped", hasNoToken: true };
}

/** Uses `HTTPS_PROXY` where the environment sets it; loopback addresses are always connected directly. */
export function createProxyAgent(wsUrl: URL, env: NodeJS.ProcessEnv): Agent | undefined {
  const isProxied = wsUrl.protocol === "wss:" && findRoute(wsUrl, env).proxy !== undefined;
  return isProxied ? new Agent({ proxyEnv: env, keepAlive: false }) : undefined;
}

/**
 * How long a connection lives before one with a fresh token replaces it: until the token's last hour.
 * The minimum holds for short-lived tokens too, because the service checks a token only on connecting.
 */
export function connectionLifetimeMs(token: AccessToken, boottime: number, random: number): number {
  return Math.max(TEN_MINUTES_MS, token.expiresAt - HOUR_MS - boottime - (random * TEN_MINUTES_MS) / 2);
}
