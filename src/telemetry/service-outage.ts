import { type Failure, failureCode } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ClientEvent } from "../service/http/client-events.ts";

interface ServiceOutageOptions {
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** For people: scheme, host and port. */
  readonly address: string;
  /** How long requests may only fail before the daemon is unhealthy. */
  readonly unhealthyAfterMs: number;
  /** Why the last request failed. */
  readonly lastFailure: () => Failure | undefined;
}

/** Failures that concern only what was asked: they do not show that the service fails. */
const harmlessOutcomes: ReadonlySet<string> = new Set(["forbidden", "rejected", "aborted", "no_witness"]);
/** The service has answered: with records, or that it has none. */
const usefulOutcomes: ReadonlySet<string> = new Set(["ok", "not_found"]);

/**
 * Notices that data has stopped to arrive: requests have only failed for a while, and no live tick was stored. Silence
 * alone means nothing, because a selection of daily bars has nothing to request for hours.
 */
export class ServiceOutage {
  readonly #options: ServiceOutageOptions;
  readonly #startedAt: number;
  /** Wall time of the last useful answer. */
  #lastAnswerAt: number | undefined;
  /** The first and the last failure since then, on the monotonic clock. */
  #failures: { readonly first: number; last: number } | undefined;

  constructor(options: ServiceOutageOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now();
  }

  onClientEvent(event: ClientEvent): void {
    if (event.kind !== "request") return;
    const isToken = event.endpoint === "/oauth/token";
    if (usefulOutcomes.has(event.outcome)) {
      // A token is no data.
      if (!isToken) this.recordAnswer();
    } else if (!harmlessOutcomes.has(event.outcome)) this.#recordFailure(event.ms);
  }

  /** The service answered a request usefully, or a live tick was stored. */
  recordAnswer(): void {
    this.#lastAnswerAt = this.#options.clock.now();
    this.#failures = undefined;
  }

  /** Which address does not answer, since when, and why; undefined while data arrives or nothing is due. */
  describe(): string | undefined {
    const { clock, unhealthyAfterMs, address } = this.#options;
    const failures = this.#failures;
    if (!failures || clock.monotonic() - failures.first < unhealthyAfterMs) return undefined;
    // Requests are retried within two minutes. A failure that was not repeated concerned something that is no longer due.
    if (failures.last - failures.first < unhealthyAfterMs / 2) return undefined;
    const since = new Date(this.#lastAnswerAt ?? this.#startedAt).toISOString().slice(0, 19);
    const first = this.#lastAnswerAt === undefined ? "the start at " : "";
    return `no useful answer from ${address} since ${first}${since.replace("T", " ")} UTC${this.#describeCause()}`;
  }

  /** What the daemon waits for before the first answer. */
  describeWait(): string {
    return `waiting for the service at ${this.#options.address}${this.#describeCause()}`;
  }

  #describeCause(): string {
    const failure = this.#options.lastFailure();
    return failure ? `: ${failure.summary.replace(/\s+/g, " ")} (${failureCode(failure)})` : "";
  }

  #recordFailure(ms: number): void {
    const now = this.#options.clock.monotonic();
    if (this.#failures) this.#failures.last = now;
    else this.#failures = { first: now - ms, last: now };
  }
}
