import type { FeedMetrics } from "./metric-inputs.ts";

/** The part of a live feed event that this counter reads. A shape, because telemetry imports no room that it measures. */
interface FeedEventShape {
  readonly kind: string;
  readonly subscription?: object;
}

/** Counts the live feed's subscriptions by state, from the events of the feed. */
export class SubscriptionCounter {
  readonly #states = new Map<string, "following" | "doubt" | "parked">();
  #connected = false;

  update(event: FeedEventShape): FeedMetrics {
    if (event.kind === "connected" || event.kind === "swapped") this.#connected = true;
    if (event.kind === "disconnected") {
      this.#connected = false;
      for (const [key, state] of this.#states) if (state === "following") this.#states.set(key, "doubt");
    }
    if (event.subscription) {
      const key = JSON.stringify(event.subscription);
      if (event.kind === "subscribed") this.#states.set(key, "following");
      if (event.kind === "unconfirmed") this.#states.set(key, "doubt");
      if (event.kind === "parked") this.#states.set(key, "parked");
    }
    const countIn = (counted: string) =>
      [...this.#states.values()].filter((state) => state === counted).length;
    return {
      connected: this.#connected,
      following: countIn("following"),
      doubt: countIn("doubt"),
      parked: countIn("parked"),
    };
  }
}
