import type { ServerResponse } from "node:http";
import type { Clock } from "../../runtime/clock.ts";
import type { PlainResponse } from "../rest/http-types.ts";
import { plainErrorResponse, withRetryAfter } from "./body-faults.ts";
import type { FaultLine } from "./parser.ts";
import type { TriggeredFault } from "./script.ts";

const WINDOW_MS = 1_000;

/** Accepts `rate` requests per second: counted per second of the clock, over the last second, or by a token bucket. */
class RequestLimit {
  readonly #rate: number;
  readonly #kind: string;
  #accepted: number[] = [];
  #tokens: number;
  #refilledAt = 0;

  constructor(line: FaultLine) {
    this.#rate = line.numberOf("rate");
    this.#kind = line.textOf("window");
    this.#tokens = this.#rate;
  }

  accepts(now: number): boolean {
    if (this.#kind === "bucket") return this.#takeToken(now);
    const since = this.#kind === "sliding" ? now - WINDOW_MS : Math.floor(now / WINDOW_MS) * WINDOW_MS - 1;
    this.#accepted = this.#accepted.filter((at) => at > since);
    if (this.#accepted.length >= this.#rate) return false;
    this.#accepted.push(now);
    return true;
  }

  #takeToken(now: number): boolean {
    const refill = ((now - this.#refilledAt) * this.#rate) / 1000;
    this.#tokens = Math.min(this.#rate, this.#tokens + refill);
    this.#refilledAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

/** Faults that depend on the load: how many requests come per second, and how many are in flight. */
export class LoadFaults {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #limits = new Map<FaultLine, RequestLimit>();
  readonly #inFlight = new Map<FaultLine, number>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Returns the rejection; undefined if the load is acceptable, or for any other fault. */
  apply({ line }: TriggeredFault, rawResponse: ServerResponse, nowMs: number): PlainResponse | undefined {
    switch (line.definition.name) {
      case "request-limit": {
        const limit = this.#limits.get(line) ?? new RequestLimit(line);
        this.#limits.set(line, limit);
        if (limit.accepts(this.#clock.monotonic())) return undefined;
        return withRetryAfter(line, plainErrorResponse(429, "simulated request limit", nowMs), nowMs);
      }
      case "overload": {
        const count = (this.#inFlight.get(line) ?? 0) + 1;
        this.#inFlight.set(line, count);
        rawResponse.once("close", () => this.#inFlight.set(line, (this.#inFlight.get(line) ?? 1) - 1));
        if (count <= line.numberOf("above")) return undefined;
        return plainErrorResponse(line.numberOf("code"), "simulated overload", nowMs);
      }
      default:
        return undefined;
    }
  }
}
