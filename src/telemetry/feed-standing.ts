import type { FeedStanding } from "./observed-facts.ts";

/** What the feed says that changes how its subscriptions stand; a shape, since telemetry looks into no other room. */
export interface FeedSaying {
  readonly kind: string;
  readonly subscription?: object;
}

/** Keeps count of the live feed's subscriptions by what it says about them. */
export class FeedSubscriptions {
  readonly #states = new Map<string, "following" | "doubt" | "parked">();
  #connected = false;

  hear(saying: FeedSaying): FeedStanding {
    if (saying.kind === "connected" || saying.kind === "swapped") this.#connected = true;
    if (saying.kind === "disconnected") {
      this.#connected = false;
      for (const [key, state] of this.#states) if (state === "following") this.#states.set(key, "doubt");
    }
    if (saying.subscription) {
      const key = JSON.stringify(saying.subscription);
      if (saying.kind === "subscribed") this.#states.set(key, "following");
      if (saying.kind === "unconfirmed") this.#states.set(key, "doubt");
      if (saying.kind === "parked") this.#states.set(key, "parked");
    }
    const count = (wanted: string) => [...this.#states.values()].filter((state) => state === wanted).length;
    return {
      connected: this.#connected,
      following: count("following"),
      doubt: count("doubt"),
      parked: count("parked"),
    };
  }
}
