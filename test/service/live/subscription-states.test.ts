import { describe, expect, it } from "vitest";
import type { Subscription } from "../../../src/service/live/messages.ts";
import { SubscriptionStates, TrackedSubscription } from "../../../src/service/live/subscription-states.ts";

const gwa: Subscription = { source: "index", indexType: "GWA" };
const kraken: Subscription = { source: "exchange", exchangeId: "kraken" };

describe("a subscription", () => {
  it("is live once confirmed, and a second confirmation changes nothing", () => {
    const tracked = new TrackedSubscription(gwa);
    expect([tracked.confirm(), tracked.confirm(), tracked.state]).toEqual([true, false, "live"]);
  });

  it("that is silent stays silent until a tick comes, even if it is confirmed again", () => {
    const tracked = new TrackedSubscription(gwa);
    tracked.confirm();
    expect(tracked.apply("silent")).toBe(true);
    tracked.apply("disconnected");
    expect([tracked.confirm(), tracked.state]).toEqual([false, "silent"]);
    expect([tracked.apply("recovered"), tracked.state]).toEqual([true, "live"]);
  });

  it("that is parked stays parked across connections, and reports another code", () => {
    const tracked = new TrackedSubscription(gwa);
    expect(tracked.park("403", 5)).toBe(true);
    tracked.apply("disconnected");
    expect([tracked.state, tracked.parkedUntil]).toEqual(["parked", 5]);
    expect([tracked.park("403", 9), tracked.park("404", 9)]).toEqual([false, true]);
    expect([tracked.confirm(), tracked.parkedUntil]).toEqual([true, 0]);
  });

  it("that got a 401 is suspect until it is confirmed", () => {
    const tracked = new TrackedSubscription(gwa);
    tracked.park("401", 5);
    expect(tracked.isSuspect).toBe(true);
    tracked.confirm();
    expect(tracked.isSuspect).toBe(false);
  });
});

describe("the subscriptions of a feed", () => {
  it("must be confirmed again after a disconnect", () => {
    const states = new SubscriptionStates([gwa]);
    const [tracked] = states.current;
    tracked?.confirm();
    states.disconnect();
    expect(tracked?.state).toBe("interrupted");
    expect(tracked?.confirm()).toBe(true);
  });

  it("keep their state when others are added or removed; a removed one starts anew", () => {
    const states = new SubscriptionStates([gwa, kraken]);
    let changes = 0;
    states.onChange(() => changes++);
    for (const tracked of states.current) tracked.confirm();
    states.replace([gwa]);
    states.replace([{ ...gwa }]);
    states.replace([kraken, gwa]);
    expect(states.current.map(({ state }) => state)).toEqual(["requested", "live"]);
    expect(changes).toBe(2);
  });

  it("start anew with each feed", () => {
    const states = new SubscriptionStates([gwa]);
    states.connect();
    states.current[0]?.park("403", 5);
    states.reset();
    expect(states.isConnected).toBe(false);
    expect(states.current).toMatchObject([{ state: "requested", parkedUntil: 0 }]);
  });
});
