import { describe, expect, it, onTestFinished } from "vitest";
import { EventReader } from "../../../src/ingest/decode/live-event.ts";
import { seededRandom } from "../../../src/runtime/backoff.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { createServiceClient } from "../../../src/service/client/client.ts";
import { followFeed } from "../../../src/service/live/feed.ts";
import type { FeedMessage, Subscription } from "../../../src/service/live/messages.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { TurnedClock } from "../../support/manual-clock.ts";

const MINUTE = 60_000;

/** The feed and the tokens as the product has them, against the simulator, on one turned clock. */
class Stage {
  readonly clock = new TurnedClock("2026-03-01T12:00:10Z");
  readonly messages: FeedMessage[] = [];
  readonly secrets = new Set<string>();
  readonly said: unknown[] = [];
  readonly subscriptions: Subscription[];
  readonly simulator: Simulator;

  private constructor(simulator: Simulator, clock: TurnedClock) {
    this.simulator = simulator;
    this.clock = clock;
    this.subscriptions = [
      { source: "index", indexType: "LX" },
      { source: "index", indexType: "GWA", indexId: simulator.universe.assets[0]?.id },
      { source: "exchange", exchangeId: simulator.universe.exchanges[0]?.id },
    ];
  }

  static async start(faults = "", tokenSeconds = 86_400): Promise<Stage> {
    const clock = new TurnedClock("2026-03-01T12:00:10Z");
    const stage = new Stage(await startSimulator({ clock, faults, tokenSeconds }), clock);
    stage.#follow();
    return stage;
  }

  /** Lets time run. */
  async pass(ms: number): Promise<void> {
    await this.clock.runUntil(this.clock.sleep(ms));
  }

  /** Lets time run until something is so. */
  async until(isSo: () => boolean, mostMs = 60 * MINUTE): Promise<void> {
    const end = this.clock.monotonic() + mostMs;
    while (!isSo()) {
      if (this.clock.monotonic() > end) throw new Error(`not so: ${JSON.stringify(this.kinds)}`);
      await this.pass(1_000);
    }
  }

  get kinds(): string[] {
    return this.messages.map(({ kind }) => kind);
  }

  of<K extends FeedMessage["kind"]>(kind: K): Extract<FeedMessage, { kind: K }>[] {
    return this.messages.filter((m): m is Extract<FeedMessage, { kind: K }> => m.kind === kind);
  }

  get ticks(): string[] {
    return this.of("update").flatMap(({ texts }) => texts);
  }

  get struck(): number {
    return this.simulator.struck.reduce((sum, { struck }) => sum + struck, 0);
  }

  /** Ends all faults and waits until each subscription has ticks again, from now on. */
  async heal(): Promise<void> {
    this.simulator.setFaults("");
    const from = this.ticks.length;
    const { assets, exchanges } = this.simulator.universe;
    const marks = ['"indexType":"LX"', `"indexId":"${assets[0]?.id}"`, `"exchangeId":"${exchanges[0]?.id}"`];
    await this.until(() => marks.every((mark) => this.ticks.slice(from).some((text) => text.includes(mark))));
  }

  #follow(): void {
    const { clock, simulator } = this;
    const keep = (...args: unknown[]) => void this.said.push(args);
    const log = { ...silentLog, info: keep, warn: keep, error: keep };
    const client = createServiceClient({
      baseUrl: simulator.baseUrl,
      authUrl: simulator.baseUrl,
      wsUrl: simulator.wsUrl,
      clientId: simulator.clientId,
      readSecret: async () => simulator.clientSecret,
      concurrency: 4,
      maxRequestsPerSecond: 0,
      clock,
      random: seededRandom(1),
      log,
      observe: keep,
    });
    const noted = async <T extends { text: string }>(token: Promise<T>) => {
      this.secrets.add((await token).text);
      return token;
    };
    const stop = new AbortController();
    const feed = followFeed({
      wsUrl: simulator.wsUrl,
      tokens: {
        ...client.tokens,
        get: (audience, signal) => noted(client.tokens.get(audience, signal)),
        renew: (audience, signal) => noted(client.tokens.renew(audience, signal)),
      },
      subscriptions: this.subscriptions,
      clock,
      random: seededRandom(2),
      log,
      observe: keep,
      refreshSeconds: 30,
      isQuiet: async () => false,
      signal: stop.signal,
    });
    const reading = (async () => {
      for await (const message of feed) this.messages.push(message);
    })();
    onTestFinished(async () => {
      stop.abort();
      await reading;
      await client.close();
      await simulator.stop();
      const everything = JSON.stringify([this.messages.filter(({ kind }) => kind !== "update"), this.said]);
      expect(this.secrets.size).toBeGreaterThan(0);
      for (const secret of this.secrets) expect(everything).not.toContain(secret);
    });
  }
}

describe("the feed against the simulator", () => {
  it("hears every tick of ten minutes, and each can be read to the last property", async () => {
    const stage = await Stage.start();
    await stage.until(() => stage.of("subscribed").length === 3, MINUTE);
    await stage.pass(10 * MINUTE);
    const reader = new EventReader();
    const events = stage.ticks.map((text) => reader.read(text));
    const blx = events.filter((event) => event.kind === "index_tick" && event.tick.name === "BLX");
    expect(blx.length).toBeGreaterThanOrEqual(19);
    expect(events.some((event) => event.kind === "exchange_tick")).toBe(true);
    for (const event of events) {
      expect(event).toMatchObject({ tick: { quality: null, extra: null } });
    }
    expect(reader.unknownFields()).toEqual({ index_ticks: [], exchange_ticks: [] });
    expect(stage.kinds.filter((kind) => kind !== "update" && kind !== "subscribed")).toEqual(["connected"]);
  });

  it("E14: stays for longer than a token lives, and always on a living one", async () => {
    const stage = await Stage.start("", 7_200);
    await stage.pass(150 * MINUTE);
    expect(stage.of("swapped")).toHaveLength(2);
    expect(stage.of("disconnected")).toEqual([]);
    expect(stage.secrets.size).toBe(3);
    await stage.heal();
  });

  it("E5: a scope that is missing parks its subscription, and the others go on", async () => {
    const stage = await Stage.start("POST /oauth/token scope-without scope=read:LX");
    await stage.until(() => stage.of("subscribed").length === 2, MINUTE);
    expect(stage.of("parked")).toMatchObject([{ subscription: { indexType: "LX" }, code: "403" }]);
    await stage.pass(2 * MINUTE);
    expect(stage.ticks.length).toBeGreaterThan(0);
    expect(stage.of("disconnected")).toEqual([]);
  });
});

/** What goes wrong for five minutes, and what the reader must have been told. */
const rows: [string, string, (stage: Stage) => void][] = [
  ["E1: a cable is pulled", "ws half-open in=40s times=1", (s) => heard(s, "disconnected", "silent")],
  [
    "E2: every connection is closed at once",
    "ws drop-connection 1011",
    (s) => expect(attempts(s)).toBeLessThan(40),
  ],
  ["E3: no CONNECTED", "ws connected never times=2", (s) => heard(s, "retrying", "no_greeting")],
  ["E3: CONNECTED twice", "ws connected twice", (s) => expect(attempts(s)).toBe(1)],
  ["E3: CONNECTED late", "ws connected late by=8s", (s) => expect(attempts(s)).toBe(1)],
  ["E4: SUBSCRIBED never comes", "ws subscribed never", (s) => expect(s.of("unconfirmed")).toHaveLength(3)],
  // One of them is the answer that an earlier request still waits for, and may be taken as such.
  [
    "E4: SUBSCRIBED for another",
    "ws subscribed other",
    (s) => expect(s.of("unconfirmed").length).toBeGreaterThan(1),
  ],
  [
    "E4: SUBSCRIBED after ticks",
    "ws subscribed late by=9s",
    (s) => expect(s.of("subscribed")).toHaveLength(3),
  ],
  ["E4: SUBSCRIBED twice", "ws subscribed twice", (s) => expect(s.of("subscribed")).toHaveLength(3)],
  ["E5: ERROR 401", "ws error 401 times=1", (s) => heard(s, "disconnected", "error_401")],
  ["E5: ERROR 401, always", "ws error 401", (s) => expect(tokenRequests(s)).toBeLessThan(5)],
  ["E5: ERROR 500", "ws error 500 times=2", (s) => expect(s.of("subscribed").length).toBe(3)],
  ["E5: ERROR without a code", "ws error as=none", (s) => expect(s.of("unconfirmed")).toHaveLength(3)],
  ["E6: PINGs by the dozen", "ws ping-storm every=100ms to=5s", (s) => expect(attempts(s)).toBe(1)],
  [
    "E8: a frame over 1 MiB",
    "ws message oversized on=tick total=1",
    (s) => frame(s, "ws_err_unsupported_message_length"),
  ],
  [
    "E8: endless fragments",
    "ws message fragments on=tick total=1",
    (s) => frame(s, "ws_err_unsupported_message_length"),
  ],
  ["E8: invalid UTF-8", "ws message utf8 on=tick total=1", (s) => frame(s, "ws_err_invalid_utf8")],
  [
    "E8: unagreed compression",
    "ws message deflated on=tick total=1",
    (s) => frame(s, "ws_err_unexpected_rsv_1"),
  ],
  [
    "E8: binary garbage",
    "ws message garbage on=tick total=9",
    (s) => expect(s.of("unknown")).not.toEqual([]),
  ],
  ["E8: ticks in binary frames", "ws binary-tick", (s) => expect(s.ticks.length).toBeGreaterThan(9)],
  ["E9: trades", "ws message trade on=tick total=9", (s) => frame(s, "not an event that this version knows")],
  ["E9: no event", "ws message no-event on=tick total=9", (s) => frame(s, "no event name")],
  ["E9: an array", "ws message array on=tick total=9", (s) => frame(s, "not an object")],
  ["E9: null", "ws message null on=tick total=9", (s) => frame(s, "not an object")],
  ["E9: no JSON", "ws message not-json on=tick total=9", (s) => frame(s, "not JSON")],
  [
    "E10: ticks twice, late and again",
    "ws duplicate-tick\nws late-tick p=0.2\nws replay",
    (s) => expect(attempts(s)).toBe(1),
  ],
  ["E13: a mute service", "ws mute", (s) => heard(s, "disconnected", "no_ticks")],
  ["E15: a token of odd characters", "POST /oauth/token odd-token", (s) => expect(attempts(s)).toBe(1)],
  ["E18: 401 on the upgrade", "ws upgrade-status 401 times=1", (s) => heard(s, "retrying", "http_401")],
  [
    "E18: 429 on the upgrade",
    "ws upgrade-status 429 retry-after=imf wait=100s total=1",
    (s) => heard(s, "retrying", "http_429"),
  ],
  ["E18: 503 on the upgrade", "ws upgrade-status 503 times=4", (s) => heard(s, "retrying", "http_503")],
  ["E18: no answer to the upgrade", "ws upgrade-stall times=2", (s) => heard(s, "retrying", "no_greeting")],
  [
    "E18: close code 1001",
    "ws drop-connection 1001 in=50s total=2",
    (s) => heard(s, "disconnected", "closed_1001"),
  ],
  [
    "E18: close code 4000",
    "ws drop-connection 4000 in=50s total=2",
    (s) => heard(s, "disconnected", "closed_4000"),
  ],
  [
    "E18: the port is closed for a while",
    "port refuse from=60s to=120s",
    (s) => heard(s, "retrying", "econnrefused"),
  ],
];

describe("five bad minutes, and all is well again", () => {
  it.each(rows)("%s", async (_, script, expectation) => {
    const stage = await Stage.start(script);
    await stage.pass(5 * MINUTE);
    expectation(stage);
    expect(stage.struck).toBeGreaterThan(0);
    await stage.heal();
    expect(attempts(stage)).toBeLessThan(60);
  });
});

function heard(stage: Stage, kind: "disconnected" | "retrying", reason: string): void {
  expect(stage.of(kind).map((message) => message.reason)).toContain(reason);
}

function frame(stage: Stage, reason: string): void {
  expect(stage.of("unknown").map((message) => message.reason)).toContain(reason);
}

function tokenRequests({ simulator }: Stage): number {
  return simulator.requests.list.filter(({ target }) => target.endsWith("/oauth/token")).length;
}

function attempts({ simulator }: Stage): number {
  return simulator.requests.list.filter(({ target }) => target.startsWith("/v3/stream")).length;
}
