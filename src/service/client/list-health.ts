import { noListFailure } from "../../model/response-body.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ServiceRequest } from "../http/request.ts";

/** So many responses in a row without a list show that no request of this kind gets one. */
const MAX_NO_LISTS = 20;
const PROBE_INTERVAL_MS = 60_000;

/** Index and derivative types count as different kinds: one may be broken while the others are served. */
function listKind({ endpoint, params, query }: ServiceRequest): string {
  return `${endpoint} ${query?.indexType ?? params?.derivativeType ?? ""}`;
}

interface MissingLists {
  count: number;
  /** Monotonic. */
  probeAt: number;
}

/**
 * Knows which kinds of lists the service sends. The circuit breaker does not count responses without a list, since the host
 * answers; without this limit thousands of series would ask for them again and again.
 */
export class ListHealth {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #served = new Set<string>();
  readonly #missing = new Map<string, MissingLists>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Whether a request of this kind has got records. */
  hasServed(request: ServiceRequest): boolean {
    return this.#served.has(listKind(request));
  }

  /** Throws while no request of this kind has ever got records or a list; lets one request a minute through. */
  assertAnswered(request: ServiceRequest): void {
    // Some ids may be broken while others are served: those must not wait for a probe.
    if (this.hasServed(request)) return;
    const missing = this.#missing.get(listKind(request));
    if (!missing || missing.count < MAX_NO_LISTS) return;
    const now = this.#clock.monotonic();
    if (now < missing.probeAt) throw noListFailure("like all recent responses of this kind");
    missing.probeAt = now + PROBE_INTERVAL_MS;
  }

  recordPage(request: ServiceRequest, rows: number): void {
    this.#missing.delete(listKind(request));
    if (rows > 0) this.#served.add(listKind(request));
  }

  recordNoList(request: ServiceRequest): void {
    const kind = listKind(request);
    const { count, probeAt } = this.#missing.get(kind) ?? { count: 0, probeAt: 0 };
    const isNowBroken = count + 1 === MAX_NO_LISTS;
    const nextProbeAt = isNowBroken ? this.#clock.monotonic() + PROBE_INTERVAL_MS : probeAt;
    this.#missing.set(kind, { count: count + 1, probeAt: nextProbeAt });
  }
}
