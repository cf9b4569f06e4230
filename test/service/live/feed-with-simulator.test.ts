import { describe, expect, it, onTestFinished } from "vitest";
import { decodeLiveMessages } from "../../../src/ingest/decode/live-event.ts";
import { Fault } from "../../simulator/faults.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../simulator/simulator.ts";
import { findFreePort } from "../../support/free-port.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { createTestClient } from "../../support/service/client-harness.ts";
import { FeedReader } from "../../support/service/feed-harness.ts";

const MINUTE = 60_000;

/** The product's feed and tokens against the simulator, on one manual clock. */
class SimulatedFeed extends FeedReader {
  readonly simulator: Simulator;
  readonly tokens: ReadonlySet<string>;

  private constructor(simulator: Simulator, clock: ManualClock) {
    const { baseUrl, wsUrl, clientId, clientSecret, universe } = simulator;
    const { client, ...clientReports } = createTestClient(baseUrl, clock, {
      clientId,
      readSecret: async () => clientSecret,
    });
    const issued = client.tokensOf(wsUrl);
    const tokens = new Set<string>();
    const record = async <T extends { text: string }>(token: Promise<T>) => {
      tokens.add((await token).text);
      return token;
    };
    super(clock, {
      wsUrl,
      tokens: {
        get: (signal) => record(issued.get(signal)),
        refresh: (signal) => record(issued.refresh(signal)),
        reportRejected: (token) => issued.reportRejected(token),
        reportAccepted: (token) => issued.reportAccepted(token),
      },
      subscriptions: [
        { source: "index", indexType: "LX" },
        { source: "index", indexType: "GWA", indexId: universe.assets[0]?.id },
        { source: "exchange", exchangeId: universe.exchanges[0]?.id },
      ],
      random: seededRandom(2),
      isMarketQuiet: async () => false,
    });
    this.simulator = simulator;
    this.tokens = tokens;
    onTestFinished(async () => {
      await this.stop();
      await client.close();
      await simulator.stop();
      const messages = this.messages.filter(({ kind }) => kind !== "update");
      const everything = JSON.stringify([messages, this.unknown, this.logLines, this.events, clientReports]);
      expect(tokens.size).toBeGreaterThan(0);
      for (const token of tokens) expect(everything).not.toContain(token);
    });
  }

  static async start(faults: readonly Fault[] = [], options: SimulatorOptions = {}): Promise<SimulatedFeed> {
    const clock = new ManualClock("2026-03-01T12:00:10Z");
    const simulator = await startSimulator({ clock, faults, ...options, port: await findFreePort() });
    return new SimulatedFeed(simulator, clock);
  }

  async pass(ms: number): Promise<void> {
    await this.clock.runUntil(this.clock.sleep(ms));
  }

  async passUntil(condition: () => boolean, maxMs = 60 * MINUTE): Promise<void> {
    const end = this.clock.monotonic() + maxMs;
    while (!condition()) {
      if (this.clock.monotonic() > end)
        throw new Error(`condition not met; received ${JSON.stringify(this.kinds)}`);
      await this.pass(1_000);
    }
  }

  get struck(): number {
    return this.simulator.faultCounts.reduce((sum, { struck }) => sum + struck, 0);
  }

  /** Ends all faults and waits until each subscription has new ticks. */
  async heal(): Promise<void> {
    this.simulator.setFaults();
    const from = this.ticks.length;
    const { assets, exchanges } = this.simulator.universe;
    const marks = ['"indexType":"LX"', `"indexId":"${assets[0]?.id}"`, `"exchangeId":"${exchanges[0]?.id}"`];
    await this.passUntil(() =>
      marks.every((mark) => this.ticks.slice(from).some((text) => text.includes(mark))),
    );
  }
}

describe("the live feed with the simulator", () => {
  it("receives every tick of ten minutes, and the decoder knows every property", async () => {
    const feed = await SimulatedFeed.start();
    await feed.passUntil(() => feed.messagesOf("subscribed").length === 3, MINUTE);
    await feed.pass(10 * MINUTE);
    const { index_ticks: index, exchange_ticks: exchange, events } = decodeLiveMessages(feed.ticks);
    const blx = index.ticks.filter(({ name }) => name === "BLX");
    expect(blx.length).toBeGreaterThanOrEqual(19);
    expect(exchange.ticks).not.toEqual([]);
    for (const tick of [...index.ticks, ...exchange.ticks])
      expect(tick).toMatchObject({ quality: null, extra: null });
    for (const { rejects, fields } of [index, exchange]) expect([...rejects, ...fields]).toEqual([]);
    expect(events).toEqual([]);
    expect(feed.kinds.filter((kind) => kind !== "update" && kind !== "subscribed")).toEqual(["connected"]);
  });

  it("E14: stays connected longer than a token lives, always with a valid one", async () => {
    const feed = await SimulatedFeed.start([], { tokenSeconds: 7_200 });
    await feed.pass(150 * MINUTE);
    expect(feed.messagesOf("swapped")).toHaveLength(2);
    expect(feed.messagesOf("disconnected")).toEqual([]);
    expect(feed.tokens.size).toBe(3);
    await feed.heal();
  });

  it("E15: connects with a token of odd characters", async () => {
    const feed = await SimulatedFeed.start([], { quirks: { awkwardTokens: true } });
    await feed.heal();
    expect(attempts(feed)).toBe(1);
  });

  it("E5: a missing scope parks its subscription; the others continue", async () => {
    const feed = await SimulatedFeed.start([Fault.scopeWithout("read:LX")]);
    await feed.passUntil(() => feed.messagesOf("subscribed").length === 2, MINUTE);
    expect(feed.messagesOf("parked")).toMatchObject([{ subscription: { indexType: "LX" }, code: "403" }]);
    await feed.pass(2 * MINUTE);
    expect(feed.ticks.length).toBeGreaterThan(0);
    expect(feed.messagesOf("disconnected")).toEqual([]);
  });
});

/** What the feed must have reported after five minutes of a fault. */
interface Reported {
  /** A reason among the messages of this kind. */
  readonly disconnected?: string;
  readonly retrying?: string;
  readonly unknown?: string;
  /** So many messages. */
  readonly subscribed?: number;
  readonly unconfirmed?: number;
  readonly atLeastUnconfirmed?: number;
  /** At most. */
  readonly attempts?: number;
  readonly tokenRequests?: number;
  readonly retryMs?: number;
}

const once = { times: 1 };
const atTick = (total: number) => ({ when: "tick", total }) as const;
const tooLong = "ws_err_unsupported_message_length";
const late = [Fault.duplicateTick(), Fault.lateTick(45_000, { p: 0.2 }), Fault.replay(5)];

const rows: [title: string, faults: Fault | readonly Fault[], reported: Reported][] = [
  ["E1: a cable is pulled", Fault.halfOpen({ in: 40_000, ...once }), { disconnected: "silent" }],
  ["E2: every connection is closed at once", Fault.dropConnection({ code: 1011 }), { attempts: 39 }],
  ["E3: no CONNECTED", Fault.connected("never", { times: 2 }), { retrying: "no_greeting" }],
  ["E3: CONNECTED twice", Fault.connected("twice"), { attempts: 1 }],
  ["E3: CONNECTED late", Fault.connected("late", { by: 8000 }), { attempts: 1 }],
  ["E4: SUBSCRIBED never comes", Fault.subscribed("never"), { unconfirmed: 3 }],
  // One of them may match an earlier request that still waits for its answer.
  ["E4: SUBSCRIBED for another", Fault.subscribed("other"), { atLeastUnconfirmed: 2 }],
  ["E4: SUBSCRIBED after ticks", Fault.subscribed("late", { by: 9000 }), { subscribed: 3 }],
  ["E4: SUBSCRIBED twice", Fault.subscribed("twice"), { subscribed: 3 }],
  ["E5: ERROR 401", Fault.subscriptionError("401", once), { disconnected: "error_401" }],
  ["E5: ERROR 401, always", Fault.subscriptionError("401"), { tokenRequests: 4 }],
  ["E5: ERROR 500", Fault.subscriptionError("500", { times: 2 }), { subscribed: 3 }],
  ["E5: ERROR without a code", Fault.subscriptionError(undefined), { unconfirmed: 3 }],
  ["E6: PINGs by the dozen", Fault.pingStorm(100, { to: 5_000 }), { attempts: 1 }],
  ["E8: a frame over 1 MiB", Fault.message("oversized", atTick(1)), { unknown: tooLong }],
  ["E8: endless fragments", Fault.message("fragments", atTick(1)), { unknown: tooLong }],
  ["E8: invalid UTF-8", Fault.message("utf8", atTick(1)), { unknown: "ws_err_invalid_utf8" }],
  ["E8: unagreed compression", Fault.message("deflated", atTick(1)), { unknown: "ws_err_unexpected_rsv_1" }],
  ["E8: ticks in binary frames", Fault.binaryTick(), { attempts: 1 }],
  ["E10: ticks twice, late and again", late, { attempts: 1 }],
  ["E13: a service without ticks", Fault.mute(), { disconnected: "no_ticks" }],
  ["E18: 401 on the upgrade", Fault.upgradeStatus(401, once), { retrying: "http_401" }],
  [
    "E18: 429 on the upgrade",
    Fault.upgradeStatus(429, { retryAfter: "imf", wait: 100_000, total: 1 }),
    { retrying: "http_429" },
  ],
  ["E18: 503 on the upgrade", Fault.upgradeStatus(503, { times: 4 }), { retrying: "http_503" }],
  // Exchange ticks have no history: the feed connects again within three seconds.
  ["E18: no answer to the upgrade", Fault.upgradeStall(), { retrying: "no_greeting", retryMs: 3_100 }],
  ["E18: close code 1001", dropTwice(1001), { disconnected: "closed_1001" }],
  ["E18: close code 4000", dropTwice(4000), { disconnected: "closed_4000" }],
  ["E18: the port is closed", Fault.refuse({ from: 60_000, to: 120_000 }), { retrying: "econnrefused" }],
];

function dropTwice(code: number): Fault {
  return Fault.dropConnection({ code, in: 50_000, total: 2 });
}

describe("recovery after five minutes of a fault", () => {
  it.each(rows)("%s", async (_, faults, reported) => {
    const feed = await SimulatedFeed.start([faults].flat());
    await feed.pass(5 * MINUTE);
    const { disconnected, retrying, unknown, subscribed, unconfirmed, atLeastUnconfirmed = 0 } = reported;
    const reasons = (kind: "disconnected" | "retrying") => feed.messagesOf(kind).map(({ reason }) => reason);
    if (disconnected) expect(reasons("disconnected")).toContain(disconnected);
    if (retrying) expect(reasons("retrying")).toContain(retrying);
    if (unknown) expect(feed.unknown.map(({ reason }) => reason)).toContain(unknown);
    if (subscribed) expect(feed.messagesOf("subscribed")).toHaveLength(subscribed);
    if (unconfirmed) expect(feed.messagesOf("unconfirmed")).toHaveLength(unconfirmed);
    expect(feed.messagesOf("unconfirmed").length).toBeGreaterThanOrEqual(atLeastUnconfirmed);
    const { attempts: maxAttempts = 59, tokenRequests: maxTokens = 99, retryMs = Infinity } = reported;
    const waits = feed.messagesOf("retrying").map(({ inMs }) => inMs);
    expect(Math.max(0, ...waits)).toBeLessThanOrEqual(retryMs);
    expect(tokenRequests(feed)).toBeLessThanOrEqual(maxTokens);
    expect(attempts(feed)).toBeLessThanOrEqual(maxAttempts);
    expect(feed.struck).toBeGreaterThan(0);
    await feed.heal();
    expect(attempts(feed)).toBeLessThan(60);
  });
});

function tokenRequests({ simulator }: SimulatedFeed): number {
  return simulator.requests.list.filter(({ target }) => target.endsWith("/oauth/token")).length;
}

function attempts({ simulator }: SimulatedFeed): number {
  return simulator.requests.list.filter(({ target }) => target.startsWith("/v3/stream")).length;
}
