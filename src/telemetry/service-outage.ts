import { type Failure, failureCode } from "../model/failure.ts";
import { formatMoment, MICROS_PER_MS } from "../model/time.ts";
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
  /** Whether the warehouse has any data besides lookups. */
  readonly hasData: () => boolean;
}

/** When requests of one kind have failed, since the last useful answer. Monotonic. */
interface FailingRequests {
  readonly first: number;
  readonly last: number;
}

/** The client gives up an endpoint that fails alone after this time. */
const DEAD_ENDPOINT_MS = 60_000;

/** A shorter burst of failures is not reported. */
const MIN_SILENCE_MS = 5_000;

/** Failures that concern one request, and say nothing about the service. */
const harmlessOutcomes: ReadonlySet<string> = new Set(["forbidden", "rejected", "aborted"]);
/** The service has answered: with records, or that it has none. */
const usefulOutcomes: ReadonlySet<string> = new Set(["ok", "not_found"]);

/**
 * Detects that data has stopped arriving: requests have only failed for a while, and no live tick was stored. Silence
 * alone means nothing, because a selection of daily bars has nothing to request for hours. Before there is any data, one
 * endpoint that only fails is enough.
 */
export class ServiceOutage {
  readonly #options: ServiceOutageOptions;
  readonly #startedAt: number;
  /** Wall time of the last useful answer. */
  #lastAnswerAt: number | undefined;
  /** The first and the last failure since then, on the monotonic clock. */
  #failures: FailingRequests | undefined;
  /** First and last failure of each endpoint. */
  readonly #endpoints = new Map<string, FailingRequests & { readonly cause: string }>();
  #hasData = false;

  constructor(options: ServiceOutageOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now();
  }

  onClientEvent(event: ClientEvent): void {
    if (event.kind !== "request") return;
    const isToken = event.endpoint === "/oauth/token";
    if (usefulOutcomes.has(event.outcome)) {
      // A token is not data.
      if (!isToken) this.recordAnswer();
      this.#endpoints.delete(event.endpoint);
    } else if (!harmlessOutcomes.has(event.outcome)) {
      this.#failures = this.#prolong(this.#failures, event.ms);
      if (isToken) return;
      const { endpoint, status = 0, outcome } = event;
      const cause = status >= 400 ? String(status) : outcome;
      this.#endpoints.set(endpoint, { ...this.#prolong(this.#endpoints.get(endpoint), event.ms), cause });
    }
  }

  /** The service answered a request usefully, or a live tick was stored. */
  recordAnswer(): void {
    this.#lastAnswerAt = this.#options.clock.now();
    this.#failures = undefined;
  }

  /** Describes the outage: who does not answer, since when, and why; undefined while data arrives or nothing is due. */
  describe(): string | undefined {
    return this.#describeSilence() ?? this.#describeNoData();
  }

  /** Requests have only failed for some seconds, and no live tick was stored since: long before the daemon is unhealthy. */
  get isSilent(): boolean {
    return this.#failures !== undefined && this.#isLasting(this.#failures, MIN_SILENCE_MS);
  }

  #describeSilence(): string | undefined {
    const { unhealthyAfterMs, address } = this.#options;
    if (!this.#failures || !this.#isLasting(this.#failures, unhealthyAfterMs)) return undefined;
    const since = formatSecond(this.#lastAnswerAt ?? this.#startedAt);
    const first = this.#lastAnswerAt === undefined ? "the start at " : "";
    return `no useful answer from ${address} since ${first}${since}${this.#describeCause()}`;
  }

  #describeNoData(): string | undefined {
    if (this.#hasData || this.#lastAnswerAt === undefined) return undefined;
    const dead = [...this.#endpoints].find(([, failures]) => this.#isLasting(failures, DEAD_ENDPOINT_MS));
    if (!dead) return undefined;
    this.#hasData = this.#options.hasData();
    if (this.#hasData) return undefined;
    const { clock } = this.#options;
    const [endpoint, { first, cause }] = dead;
    const since = formatSecond(clock.now() - (clock.monotonic() - first));
    return `nothing is synced yet: ${endpoint} fails (${cause}) since ${since}`;
  }

  /** What the daemon waits for before the first answer. */
  describeWait(): string {
    return `waiting for the service at ${this.#options.address}${this.#describeCause()}`;
  }

  #describeCause(): string {
    const failure = this.#options.lastFailure();
    return failure ? `: ${failure.summary.replace(/\s+/g, " ")} (${failureCode(failure)})` : "";
  }

  /** A failure that was not repeated concerned something that is no longer due: requests are retried within two minutes. */
  #isLasting({ first, last }: FailingRequests, ms: number): boolean {
    return this.#options.clock.monotonic() - first >= ms && last - first >= ms / 2;
  }

  /** `ms`: how long the request took that failed now. */
  #prolong(failures: FailingRequests | undefined, ms: number): FailingRequests {
    const now = this.#options.clock.monotonic();
    return { first: failures?.first ?? now - ms, last: now };
  }
}

function formatSecond(wallMs: number): string {
  return `${formatMoment(wallMs * MICROS_PER_MS)} UTC`;
}
